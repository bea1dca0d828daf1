from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from porcelain.providers.redaction import RULES, TABLE, Rule, _redact_line, redact, redact_text

RULE_IDS = [f"{i}-{rule.name}" for i, rule in enumerate(TABLE)]
# Words that end a line of prose or start one: what is likely to stand around a secret.
AROUND = st.text(alphabet="aZ09 .,:;=/+@-_()[]{}<>$%&#*|~\t\né→😀'\"\\", max_size=30)
GITHUB = "ghp_" + "F4kE" * 9
AWS = "AKIA" + "EXAMPLE4" * 2


# What the examples' secrets are made of.
MATTER = (b"F4kEF4kE", b"F4KEF4KE", b"0fa4e0fa4e", b"EXAMPLE4", b"ZmFrZTpm")


def holds_secret(data: bytes) -> bool:
    return any(matter in data for matter in MATTER)


def test_version_is_named() -> None:
    assert RULES == "redact-1"


@pytest.mark.parametrize("rule", TABLE, ids=RULE_IDS)
def test_example_is_replaced_and_named(rule: Rule) -> None:
    clean = redact(rule.example)
    assert b"[redacted:%s]" % rule.name.encode() in clean
    assert holds_secret(rule.example) and not holds_secret(clean)
    assert redact(clean) == clean


@pytest.mark.parametrize("rule", TABLE, ids=RULE_IDS)
@settings(max_examples=30)
@given(before=AROUND, after=AROUND)
def test_example_is_replaced_wherever_it_stands_in_json(rule: Rule, before: str, after: str) -> None:
    # A digit or letter right before a token would make it part of a longer word, one behind it part of the token.
    text = before + " " + rule.example.decode() + " " + after
    inner = json.dumps(text, ensure_ascii=False)
    nested = json.dumps({"out": inner})
    for line in (inner.encode(), nested.encode()):
        clean = redact(line)
        assert b"[redacted:" in clean
        assert not holds_secret(clean)
        assert redact(clean) == clean
        json.loads(clean)
    assert redact_text(text) == json.loads(redact(inner.encode()))


@pytest.mark.parametrize("rule", TABLE, ids=RULE_IDS)
@settings(max_examples=30)
@given(data=st.data())
def test_example_hidden_by_escapes_is_found(rule: Rule, data: st.DataObject) -> None:
    text = rule.example.decode()
    plain = json.dumps("see " + text)
    spots = data.draw(st.sets(st.integers(0, len(text) - 1), max_size=5))
    escaped = "".join(
        f"\\u{ord(c):04x}"
        if i in spots and c not in '"\\' and (i == 0 or text[i - 1] != "\\")
        else json.dumps(c)[1:-1]
        for i, c in enumerate(text)
    )
    line = '{"text":"see ' + escaped + '"}'
    assert json.loads(line) == {"text": "see " + text}
    clean = redact(line.encode())
    assert json.loads(clean) == {"text": json.loads(redact(plain.encode()))}
    assert redact(clean) == clean


@pytest.mark.parametrize(
    "hidden",
    [
        r'{"t":"ghp\u005f' + "F4kE" * 9 + '"}',
        r'{"t":"{\"t\":\"ghp\\u005f' + "F4kE" * 9 + r'\"}"}',
        r'{"t":"https:\/\/ada:F4kEF4kE@example.net\/x"}',
        r'{"t":"Authorization\u003a Bearer F4kEF4kE"}',
    ],
)
def test_escapes_that_other_writers_use(hidden: str) -> None:
    clean = redact(hidden.encode())
    assert b"[redacted:" in clean and b"F4kEF4kE" not in clean
    json.loads(clean)


def test_only_the_secret_loses_its_escapes() -> None:
    line = (r'{"a":"\u0041 \/ \u003c","t":"ghp\u005f' + "F4kE" * 9 + r'","z":"\u005a"}').encode()
    assert redact(line) == rb'{"a":"\u0041 \/ \u003c","t":"[redacted:github-token]","z":"\u005a"}'


@pytest.mark.parametrize(
    "text",
    [
        hashlib.sha1(b"commit").hexdigest(),
        hashlib.sha256(b"object").hexdigest(),
        "sha256:" + hashlib.sha256(b"layer").hexdigest(),
        str(uuid.UUID(int=2**127 + 12345)),
        "task-force and disk-usage, risk-" + hashlib.sha1(b"x").hexdigest(),
        "desk-" + "a1" * 20,
        "ghp_xxx, ghp_xxxxxxxxxxxx, github_pat_<token>, sk-..., sk-ant-..., AKIA..., glpat-xxxx, xoxb-your-token",
        "sk-ant-design-system-components-for-the-web",
        "toolu_01" + "F4kE" * 6 + " msg_01" + "F4kE" * 6 + " req_01" + "F4kE" * 6,
        "AKIA" + "EXAMPLE4" * 3,
        "SK" + "0f" * 16,
        "/home/ada/projects/sk-tools/src/AKIA/hf_model/npm_modules/eyJ.py",
        "data:image/png;base64," + base64.b64encode(hashlib.sha512(b"pixels").digest() * 200).decode(),
        "postgres://${DB_USER}:${DB_PASSWORD}@db/app https://{user}:{password}@host ftp://u:****@host",
        "http://localhost:3000/@scope/package https://example.net:8080?mail=ada@example.net git@github.com:a/b.git",
        "ssh://git@example.net:22/repo.git https://example.net/a:b/c@v1.2.3",
        "Authorization: Bearer $TOKEN, Authorization: Bearer <token>, Authorization: Basic authentication scheme",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\n" + "F4kE" * 16 + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + "F4kE" * 16 + "\n-----END PUBLIC KEY-----",
        "aws_secret_access_key = ...  # 40 characters",
        "const password = prompt(); Server=db;Password={0};",
    ],
)
def test_harmless_text_is_kept(text: str) -> None:
    assert redact_text(text) == text
    line = json.dumps({"text": text, "again": json.dumps(text)}).encode()
    assert redact(line) is line


def test_one_atlas_url_one_aws_key_go_and_one_git_hash_one_uuid_stay() -> None:
    sha, ident = hashlib.sha1(b"c").hexdigest(), str(uuid.UUID(int=77))
    text = f"mongodb+srv://ada:S3cr3tPw@cluster0.ab1cd.mongodb.net/shop {AWS} {sha} {ident}"
    assert redact_text(text) == (
        "mongodb+srv://[redacted:url-credentials]@cluster0.ab1cd.mongodb.net/shop "
        f"[redacted:aws-access-key] {sha} {ident}"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (r"\n", r"\n"),
        (r"\t", r"\""),
        ("\\u001b[01;31m\\u001b[K", "\\u001b[m"),
        ("token%3D", "&x"),
        (r"\"", r"\""),
        ("export KEY=", ";"),
        ("a_", " "),
    ],
)
def test_edges_of_a_token(before: str, after: str) -> None:
    line = f'{{"t":"{before}{AWS}{after}{before}{GITHUB}{after}"}}'.encode()
    clean = redact(line)
    assert json.loads(clean)["t"].count("[redacted:") == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\\n", "\n+", "\n> ", "\n     12→", "\n  7\t"])
def test_private_key_in_listings_and_diffs(newline: str) -> None:
    body = newline.join(["F4kE" * 16, "F4kE" * 16, "F4kE" * 5 + "=="])
    text = f"head\n-----BEGIN OPENSSH PRIVATE KEY-----{newline}{body}{newline}-----END OPENSSH PRIVATE KEY-----\ntail"
    assert redact_text(text) == "head\n[redacted:private-key]\ntail"
    assert json.loads(redact(json.dumps(text).encode())) == "head\n[redacted:private-key]\ntail"
    cut = text[: text.index("-----END")]
    assert "F4kE" not in redact_text(cut)


def test_passwords_with_signs() -> None:
    for password in ("p@ss!w:rd", "p#w?rd$&"):
        text = f"postgres://u:{password}@h:5432/d?mail=a@example.net"
        assert redact_text(text) == "postgres://[redacted:url-credentials]@h:5432/d?mail=a@example.net"
    assert redact_text("redis://:F4kE@h https://F4:kE@h") == (
        "redis://[redacted:url-credentials]@h https://[redacted:url-credentials]@h"
    )


def test_near_word_must_be_on_the_same_line() -> None:
    key = b"SK" + b"0f" * 16
    assert redact(b"twilio\n" + key) == b"twilio\n" + key
    assert redact(b"Twilio " + key) == b"Twilio [redacted:twilio-key]"


LINES = st.lists(
    st.one_of(
        st.sampled_from([rule.example for rule in TABLE]),
        st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")),
        st.sampled_from(
            [b"\\u0041", b"twilio", b"server=", b"\\/", b"://", b"@", b":", b"\\", b"-----", b"\r", b"\xff"]
        ),
    ),
    max_size=6,
).map(b"".join)


@settings(max_examples=300)
@given(st.lists(LINES, max_size=6))
def test_a_chunk_is_its_lines(lines: list[bytes]) -> None:
    chunk = b"\n".join(lines)
    clean = redact(chunk)
    assert clean == b"\n".join(map(redact, lines))
    assert clean.count(b"\n") == chunk.count(b"\n")
    assert redact(clean) == clean


@given(st.text(max_size=40), st.sampled_from(TABLE))
def test_text_keeps_what_is_no_secret(text: str, rule: Rule) -> None:
    assert redact_text(redact_text(text)) == redact_text(text)
    whole = redact_text(f"\ud83d {text}\n{rule.example.decode()}\n")
    assert whole.startswith("\ud83d") and f"[redacted:{rule.name}]" in whole
    assert redact_text(whole) == whole


def test_rules_leave_the_samples_alone(shared: Path) -> None:
    for path in sorted((shared / "samples" / "pi").rglob("*.jsonl")):
        data = path.read_bytes()
        assert redact(data) is data, path


_SECRETS = [
    st.from_regex(re.compile(rule.head + re.escape(rule.anchor) + rule.lead + rule.tail), fullmatch=True)
    for rule in TABLE
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(_SECRETS).flatmap(lambda secret: secret),
    st.sampled_from([b"", b" ", b"=", b"key: ", b"x", b'\\"', b"\\n", b"https://"]),
    st.sampled_from([b"", b" ", b"x", b"\\n"]),
)
def test_no_line_is_passed_over_that_a_rule_would_change(secret: bytes, before: bytes, behind: bytes) -> None:
    """Lines are looked for by patterns that skip more than the rules do."""
    line = b'{"k":"' + before + secret.replace(b"\n", b"") + behind + b'"}'
    assert redact(line) == _redact_line(line)

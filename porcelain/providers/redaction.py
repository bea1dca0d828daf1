"""Secrets are replaced before anything is hashed: one versioned rule set over source bytes and decoded text.

``redact`` takes JSON line bytes, whole chunks of lines as well as one; ``redact_text`` takes a decoded
string. Both replace only characters of the secret, by ``[redacted:<rule>]``, so that line breaks stay where
they were and JSON stays as valid as it was. Everything else keeps its bytes: hashes, UUIDs, base64 images,
paths, and placeholders that are shorter than the real format.

How it is fast: every rule names an *anchor*, one or a few literal bytes that each match contains. All rules
of one anchor are one compiled pattern that starts with it, so that the regular expression engine skips from
anchor to anchor, and what stands before the anchor is tested by lookbehind. A chunk without secrets costs one
pass for each anchor, by patterns that may find too much but never too little; only lines in which a pass found
something are worked on.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct

#: Name of the rule set; pages name it. A change of any rule is a new name.
RULES = "redact-1"

#: How far from a match, in bytes of the same line, the word that a rule's ``near`` names may stand.
NEAR = 200


class Rule(Struct, frozen=True):
    """One kind of secret: a match is ``head``, ``anchor``, ``lead``, ``tail`` in this order.

    ``head``, ``lead`` and ``tail`` are patterns (``head`` of fixed width), ``anchor`` is one literal byte or
    more. The whole match is replaced, and must not start inside a longer word; with ``keep`` only what
    ``tail`` matches is replaced. ``near`` is a lower-case word that must stand near the match. ``sign`` is
    what each match contains too, beginning with the anchor of other rules: lines are looked for by it.
    """

    name: str
    head: bytes
    anchor: bytes
    lead: bytes
    tail: bytes
    example: bytes
    keep: bool = False
    near: bytes = b""
    sign: bytes = b""


def _token(
    name: str,
    head: bytes,
    anchor: bytes,
    tail: bytes,
    example: bytes,
    near: bytes = b"",
    sign: bytes = b"",
) -> Rule:
    return Rule(name, head, anchor, b"", tail, example, near=near, sign=sign)


def _value(
    name: str, head: bytes, anchor: bytes, lead: bytes, tail: bytes, example: bytes, near: bytes = b""
) -> Rule:
    return Rule(name, head, anchor, lead, tail, example, keep=True, near=near)


# Examples are put together from these, so that this file holds nothing that looks like a live secret.
_FAKE = b"F4kE" * 32
_HEX = b"0fa4e" * 20

_DIGIT = rb"(?=[A-Za-z_-]*[0-9])"
# Digits, or lower case followed by upper case: what a base64 value has and an English word has not.
_OPAQUE = rb"(?=[A-Za-z._~+/=-]*(?:[0-9]|[a-z][A-Z]))"
# What stands between a name and its value in code, JSON, JSON inside JSON, YAML and shell.
_IS = rb"(?:\\+[nrt]|[\"'\\ \t:=>,(]){1,16}"
_AWS_SECRET = rb"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"
_AZURE_KEY = rb"[A-Za-z0-9+/]{43,}={0,2}"
_HEX32 = rb"[0-9a-f]{32}(?![0-9A-Za-z])"
_SCHEME = rb"[\"'\\]* ?[:=,] ?[a-z]?[\"'\\]*(?:[Bb]earer|[Bb]asic|[Tt]oken) +"
_CREDENTIAL = _OPAQUE + rb"[A-Za-z0-9._~+/=-]{8,}"
# user:password of a URL, up to the last @ before the host; not a port followed by a query, not a template.
# 0xFF stands for a line break in decoded text.
_URL = rb"[^\s\"'`<>\\/@\xff]"
_USER = rb"(?!\[redacted:url-credentials\]@)(?:(?!:)" + _URL + rb"){0,128}"
_PASSWORD = rb"(?![0-9]{1,5}[?#]|[$#]?\{|\$|%[sv(]|\*+@|x+@|\.+@)"
_PASSWORD += rb"(?:" + _URL + rb"|@(?=(?:(?![?#&,])" + _URL + rb"){0,256}@)){1,256}(?=@)"
# A PEM key: between its lines stand line breaks, escaped ones too, and what listings and diffs put first.
_PEM_BREAK = rb"(?:\\+(?:[nrt]|u000[9aAdD]|u2192)|[ \t\r>|:,\xff]|\xe2\x86\x92|-(?!----))"
_PEM_BYTE = rb"(?:[A-Za-z0-9+/=]|" + _PEM_BREAK + rb")"
_PEM_NAME = rb" (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = rb"(?=" + _PEM_BYTE + rb"{0,300}?[A-Za-z0-9+]{20})" + _PEM_BYTE + rb"+"
_PEM_END = rb"(?:-----END" + _PEM_NAME + rb")?"
_PEM_KEY = rb"-----BEGIN EC PRIVATE KEY-----\n" + _FAKE[:64] + rb"=\n-----END EC PRIVATE KEY-----"

# fmt: off
TABLE: tuple[Rule, ...] = (
    # Clouds
    _token("aws-access-key", b"", b"A", rb"[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])", b"AKIA" + b"EXAMPLE4" * 2),
    _value("aws-secret-key", b"", b"A", rb"ccessKey" + _IS, _AWS_SECRET,
           b'"SecretAccessKey": "' + _FAKE[:40] + b'"'),
    _value("aws-secret-key", b"", b"_", rb"access_key" + _IS, _AWS_SECRET,
           b"secret_access_key = " + _FAKE[:40]),
    _value("aws-secret-key", b"", b"_", rb"ACCESS_KEY" + _IS, _AWS_SECRET,
           b"export AWS_SECRET_ACCESS_KEY=" + _FAKE[:40]),
    _value("azure-key", b"", b"A", rb"cc(?:ount|ess)Key=", _AZURE_KEY, b"AccountKey=" + _FAKE[:86] + b"=="),
    _value("azure-sas", rb"[?&]sig", b"=", b"", rb"[A-Za-z0-9+/%]{43,}(?:=|%3[dD])",
           b"&sig=" + _FAKE[:43] + b"%3D"),
    _token("digitalocean-token", rb"do[opr]_v1", b"_", rb"[0-9a-f]{64}", b"dop_v1_" + _HEX[:64]),
    _token("google-api-key", b"", b"A", rb"Iza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", b"AIza" + _FAKE[:35]),
    _token("google-oauth-secret", rb"GOCSPX", b"-", rb"[A-Za-z0-9_-]{28}", b"GOCSPX-" + _FAKE[:28]),
    _token("google-oauth-token", rb"ya29", b".", _DIGIT + rb"[A-Za-z0-9_-]{30,}", b"ya29." + _FAKE[:60]),
    _token("vault-token", rb"hv[sbr]", b".", _DIGIT + rb"[A-Za-z0-9_-]{24,}", b"hvs." + _FAKE[:90]),
    # Model providers
    _token("anthropic-key", rb"sk", b"-", rb"ant-" + _DIGIT + rb"[A-Za-z0-9_-]{24,}",
           b"sk-ant-api03-" + _FAKE[:95]),
    _token("openai-key", rb"sk", b"-", rb"(?:proj|svcacct|admin|None)-" + _DIGIT + rb"[A-Za-z0-9_-]{40,}",
           b"sk-proj-" + _FAKE[:80] + b"-_" + _FAKE[:70]),
    _token("openrouter-key", rb"sk", b"-", rb"or-v1-[0-9a-f]{64}", b"sk-or-v1-" + _HEX[:64]),
    _token("openai-key", rb"sk", b"-", _DIGIT + rb"[A-Za-z0-9]{32,}", b"sk-" + _FAKE[:48]),
    _token("xai-key", rb"xai", b"-", rb"[A-Za-z0-9]{60,}", b"xai-" + _FAKE[:80]),
    _token("nvidia-key", rb"nvapi", b"-", _DIGIT + rb"[A-Za-z0-9_-]{60,}", b"nvapi-" + _FAKE[:64]),
    _token("perplexity-key", rb"pplx", b"-", _DIGIT + rb"[A-Za-z0-9]{40,}", b"pplx-" + _FAKE[:48]),
    _token("groq-key", rb"gsk", b"_", rb"[A-Za-z0-9]{40,}", b"gsk_" + _FAKE[:52]),
    _token("huggingface-token", rb"hf", b"_", rb"[A-Za-z0-9]{34,}", b"hf_" + _FAKE[:34]),
    _token("replicate-token", rb"r8", b"_", rb"[A-Za-z0-9]{37}", b"r8_" + _FAKE[:37]),
    # Code hosts and package registries
    _token("github-token", rb"gh[pousr]", b"_", rb"[A-Za-z0-9]{36,255}", b"ghp_" + _FAKE[:36]),
    _token("github-token", rb"github_pat", b"_", rb"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
           b"github_pat_" + _FAKE[:22] + b"_" + _FAKE[:59]),
    _token("gitlab-token", rb"gl(?:pat|ptt|cbt|oas)", b"-", _DIGIT + rb"[A-Za-z0-9_-]{20,}",
           b"glpat-" + _FAKE[:20]),
    _token("gitlab-token", rb"gl[drf]t", b"-", _DIGIT + rb"[A-Za-z0-9_-]{20,}", b"gldt-" + _FAKE[:20]),
    _token("npm-token", rb"npm", b"_", rb"[A-Za-z0-9]{36}(?![A-Za-z0-9])", b"npm_" + _FAKE[:36]),
    _token("pypi-token", rb"pypi", b"-", rb"AgE[A-Za-z0-9_-]{50,}", b"pypi-AgE" + _FAKE[:100]),
    _token("rubygems-key", rb"rubygems", b"_", rb"[0-9a-f]{48}", b"rubygems_" + _HEX[:48]),
    _token("docker-token", rb"dckr_[op]at", b"_", _DIGIT + rb"[A-Za-z0-9_-]{27,}", b"dckr_pat_" + _FAKE[:27]),
    # Services
    _token("slack-token", rb"xox[a-eo-s]", b"-", _DIGIT + rb"[A-Za-z0-9%-]{20,}",
           b"xoxb-1234567890-" + _FAKE[:24]),
    _token("slack-token", rb"xapp", b"-", rb"[0-9]-[A-Za-z0-9-]{30,}",
           b"xapp-1-" + _FAKE[:11] + b"-" + _HEX[:64]),
    _value("slack-webhook", b"", b"hooks", rb"\.slack\.com/(?:services|workflows)/",
           rb"[A-Z0-9]{7,}/[A-Za-z0-9/]{20,}",
           b"https://hooks.slack.com/services/T0FAKE000/B0FAKE000/" + _FAKE[:24]),
    _value("discord-webhook", rb"/api/web", b"hooks", rb"/", rb"[0-9]{15,22}/[A-Za-z0-9_-]{50,}",
           b"https://discord.com/api/webhooks/123456789012345678/" + _FAKE[:68]),
    _token("stripe-key", rb"[rs]k_(?:live|test)", b"_", rb"[A-Za-z0-9]{20,}", b"sk_live_" + _FAKE[:24]),
    _token("stripe-webhook", rb"whsec", b"_", rb"[A-Za-z0-9]{32,}", b"whsec_" + _FAKE[:32]),
    _token("sendgrid-key", rb"SG", b".", rb"[\w-]{22}\.[\w-]{43}", b"SG." + _FAKE[:22] + b"." + _FAKE[:43]),
    _token("twilio-key", b"", b"SK", _HEX32, b"TWILIO_API_KEY=SK" + _HEX[:32], near=b"twilio"),
    _value("twilio-token", b"", b"A", rb"UTH_TOKEN" + _IS, _HEX32, b"TWILIO_AUTH_TOKEN=" + _HEX[:32],
           near=b"twilio"),
    _token("telegram-token", rb"[0-9]{8}:", b"A", rb"A[\w-]{33}(?![\w-])", b"12345678:AA" + _FAKE[:33]),
    _token("shopify-token", rb"shp(?:at|ca|pa|ss)", b"_", rb"[0-9a-fA-F]{32}", b"shpat_" + _HEX[:32]),
    _token("supabase-token", rb"sbp", b"_", rb"[0-9a-f]{40}", b"sbp_" + _HEX[:40]),
    _token("grafana-token", rb"glsa", b"_", rb"[A-Za-z0-9]{32}_[0-9a-f]{8}",
           b"glsa_" + _FAKE[:32] + b"_" + _HEX[:8]),
    _token("linear-key", rb"lin_api", b"_", rb"[A-Za-z0-9]{40}", b"lin_api_" + _FAKE[:40]),
    _token("notion-token", rb"ntn", b"_", rb"[A-Za-z0-9]{40,}", b"ntn_" + _FAKE[:46]),
    _token("figma-token", rb"figd", b"_", _DIGIT + rb"[A-Za-z0-9_-]{40,}", b"figd_" + _FAKE[:40]),
    _token("sentry-token", rb"sntr(?:ys|yu)", b"_", rb"[A-Za-z0-9+/=_-]{40,}", b"sntrys_" + _FAKE[:100]),
    _token("newrelic-key", rb"NRAK", b"-", rb"[A-Z0-9]{27}", b"NRAK-" + _FAKE[:27].upper()),
    _token("tailscale-key", rb"tskey", b"-", _DIGIT + rb"[a-z]+-[A-Za-z0-9-]{20,}",
           b"tskey-auth-" + _FAKE[:40]),
    _token("postman-key", rb"PMAK", b"-", rb"[0-9a-f]{24}-[0-9a-f]{34}",
           b"PMAK-" + _HEX[:24] + b"-" + _HEX[:34]),
    # Any service
    _token("jwt", b"", b"eyJ", rb"[\w-]{13,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
           b"eyJ" + _FAKE[:33] + b".eyJ" + _FAKE[:40] + b"." + _FAKE[:43], sign=b".eyJ"),
    _token("age-key", rb"AGE-SECRET-KEY", b"-", rb"1[A-Z0-9]{58}", b"AGE-SECRET-KEY-1" + _FAKE[:58].upper()),
    _token("private-key", rb"-----", b"B", rb"EGIN" + _PEM_NAME + _PEM_BODY + _PEM_END, _PEM_KEY),
    _value("authorization", b"", b"uthorization", _SCHEME, _CREDENTIAL, b"Authorization: Basic ZmFrZTpmYWtl"),
    _value("authorization", b"", b"A", rb"UTHORIZATION" + _SCHEME, _CREDENTIAL,
           b"AUTHORIZATION='Bearer F4kEF4kE'"),
    _value("authorization", b"", b"B", rb"earer +", _DIGIT + rb"[A-Za-z0-9._~+/=-]{24,}",
           b"Bearer " + _FAKE[:40]),
    _value("url-credentials", b"", b"://", b"", _USER + rb":" + _PASSWORD,
           b"mongodb+srv://ada:F4kEF4kE@db.example.net"),
    _value("database-password", rb"[Pp]assword", b"=", b"", rb"[^;\s\"'`<>\\{}$%\[\xff]{4,128}(?=;)",
           b"Server=tcp:db.example.net;Password=F4kEF4kE;", near=b"server="),
)
# fmt: on

# What may stand before a token: anything but a letter or digit, and three that end in one: an escaped line
# break, a percent escape, the end of a terminal's colour code.
_EDGES = (
    rb"(?<![A-Za-z0-9]%s)",
    rb"(?<=\\[nrtbf]%s)",
    rb"(?<=\\u[0-9A-Fa-f]{4}%s)",
    rb"(?<=%%[0-9A-Fa-f]{2}%s)",
    rb"(?<=[0-9;\[]m%s)",
    rb"(?<=\[K%s)",
)
# At these frequent anchors a token is tried only if this much of one follows, and not inside a UUID.
_GATE = rb"(?=[A-Za-z0-9%_-]{16})"
_GATES = {b"A": _GATE, b"_": _GATE, b".": _GATE, b"-": rb"(?<![0-9a-f]{2}-)" + _GATE}
# What is looked for first asks for more, which all tokens behind these anchors have: many names have less.
_LONGER = dict.fromkeys((b"_", b".", b"-"), rb"(?=.{16}[A-Za-z0-9%+/=._-]{4})")


def _branch(rule: Rule) -> bytes:
    """The rule as a pattern that starts behind its anchor, with one group: where what is replaced begins."""
    behind = rule.head + re.escape(rule.anchor)
    if rule.keep:
        head = rb"(?<=%s)" % behind if rule.head else b""
        return head + rule.lead + rb"(%s)" % rule.tail
    edge = b"|".join(e % behind for e in _EDGES)
    return rb"(?<=(%s))(?:%s)%s" % (behind, edge, rule.tail)


@cache
def _scanners() -> tuple[tuple[re.Pattern[bytes], tuple[Rule, ...]], ...]:
    """One pattern for each anchor, with the rules that its groups stand for, in order."""
    scanners: list[tuple[re.Pattern[bytes], tuple[Rule, ...]]] = []
    for anchor in dict.fromkeys(rule.anchor for rule in TABLE):
        rules = [rule for rule in TABLE if rule.anchor == anchor]
        gated = [rule for rule in rules if not rule.keep and anchor in _GATES]
        free = [rule for rule in rules if rule not in gated]
        pattern = _pattern(anchor, gated, list(map(_branch, free)))
        scanners.append((pattern, (*gated, *free)))
    return tuple(scanners)


def _pattern(anchor: bytes, gated: list[Rule], branches: list[bytes], gate: bytes = b"") -> re.Pattern[bytes]:
    if gated:
        gate = _GATES[anchor] + gate
        branches = [rb"%s(?:%s)" % (gate, b"|".join(map(_branch, gated))), *branches]
    return re.compile(rb"%s(?:%s)" % (re.escape(anchor), b"|".join(branches)))


# Escapes of printable ASCII other than the quote and the backslash; more backslashes mean JSON inside JSON.
_ESCAPE = re.compile(rb"\\\\*(?:u00(2[013-9A-Fa-f]|[346][0-9A-Fa-f]|5[0-9ABD-Fabd-f]|7[0-9A-Ea-e])|/)")
_ESCAPE_HINT = re.compile(rb"\\(?:u00[2-7]|/)")


@cache
def _detectors() -> tuple[re.Pattern[bytes], ...]:
    """Patterns of which one at least matches in every line that a rule would change something in."""
    found = [_ESCAPE_HINT]
    for anchor in dict.fromkeys(rule.anchor for rule in TABLE):
        rules = [rule for rule in TABLE if rule.anchor == anchor and not rule.sign]
        gated = [rule for rule in rules if not rule.keep and anchor in _GATES]
        branches = [_branch(rule) for rule in rules if rule not in gated]
        branches += [
            re.escape(rule.sign[len(anchor) :])
            for rule in TABLE
            if rule.sign and rule.sign.startswith(anchor)
        ]
        if rules:
            found.append(_pattern(anchor, gated, branches, _LONGER.get(anchor, b"")))
    return tuple(found)


def redact(data: bytes) -> bytes:
    """Replace the secrets in ``data``: whole lines of JSON, one or many, each with or without its newline.

    Returns ``data`` itself when it holds none. A line's result does not depend on the lines around it, and
    redacting again changes nothing. Secrets written with JSON escapes of printable ASCII are found too.
    """
    suspects = set[int]()
    for pattern in _detectors():
        suspects.update(_lines_with(pattern, data))
    if not suspects:
        return data
    out: list[bytes] = []
    done = 0
    for start in sorted(suspects):
        end = _line_end(data, start)
        line = data[start:end]
        clean = _redact_line(line)
        if clean is not line:
            out += (data[done:start], clean)
            done = end
    return b"".join((*out, data[done:])) if out else data


def redact_text(text: str) -> str:
    """Replace the secrets in a decoded string, by the same rules; lone surrogates pass through."""
    # UTF-8 has no byte 0xFF: it stands in for the newline, so that a key of many lines is one line.
    data = text.encode("utf-8", "surrogatepass").replace(b"\n", b"\xff")
    clean = redact(data)
    if clean is data:
        return text
    return clean.replace(b"\xff", b"\n").decode("utf-8", "surrogatepass")


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


def _lines_with(pattern: re.Pattern[bytes], data: bytes) -> Iterator[int]:
    """Where each line starts that ``pattern`` matches in (no pattern matches across a newline)."""
    found = pattern.search(data)
    while found:
        yield data.rfind(b"\n", 0, found.start()) + 1
        found = pattern.search(data, _line_end(data, found.end()))


def _redact_line(line: bytes) -> bytes:
    # Replacing can uncover the edge of another token, or bring a word near to one: until nothing changes.
    while True:
        spans = list(_spans(line))
        plain, places = _unescape(line)
        if places:
            spans += [(_place(places, s), _place(places, e), name) for s, e, name in _spans(plain)]
        if not spans:
            return line
        line = _replace(line, sorted(spans))


def _spans(line: bytes) -> Iterator[tuple[int, int, str]]:
    """Start, end and rule name of each secret as it stands in ``line``; different rules may overlap."""
    for pattern, rules in _scanners():
        for found in pattern.finditer(line):
            group = found.lastindex or 0
            rule = rules[group - 1]
            start, end = found.start(group), found.end()
            if rule.near and rule.near not in line[max(0, start - NEAR) : end + NEAR].lower():
                continue
            yield start, end, rule.name


def _replace(line: bytes, spans: Iterable[tuple[int, int, str]]) -> bytes:
    out: list[bytes] = []
    done = 0
    for start, end, name in spans:
        if start >= done:
            out += (line[done:start], b"[redacted:%s]" % name.encode("ascii"))
        done = max(done, end)
    out.append(line[done:])
    return b"".join(out)


def _unescape(line: bytes) -> tuple[bytes, list[tuple[int, int]]]:
    """``line`` with escapes of printable ASCII decoded, and for each of them where its character stands there
    and where the escape ends in ``line``."""
    out: list[bytes] = []
    places: list[tuple[int, int]] = []
    size = done = 0
    for found in _ESCAPE.finditer(line):
        before = line[done : found.start()]
        out += (before, bytes((int(found[1], 16),)) if found[1] else b"/")
        places.append((size + len(before), found.end()))
        size += len(before) + 1
        done = found.end()
    out.append(line[done:])
    return b"".join(out), places


def _place(places: list[tuple[int, int]], at: int) -> int:
    """The offset in the escaped line of the character at ``at`` of the unescaped one."""
    index = bisect_left(places, (at, 0))
    if not index:
        return at
    character, end = places[index - 1]
    return end + at - character - 1

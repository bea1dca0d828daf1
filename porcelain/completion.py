"""``objstore completion``: a script that teaches a shell to complete the program's commands, options and ref names.

The script is made from the static table of commands and their option tables, so it needs no objstore at run time but
for the names of refs. Those come from other people too: they are quoted, and never expanded, before they reach a
command line.
"""

from __future__ import annotations

from types import ModuleType
from typing import NamedTuple

from objstore.errors import UsageError
from plumbing.interface.options import GLOBAL_OPTIONS, HELP, Arguments, Context, Option
from plumbing.interface.output import encode
from porcelain.commands import COMMANDS, GROUPS, find, load, words_after

SUMMARY = "Print a completion script for a shell."
USAGE = "completion bash|zsh|fish"
OPTIONS: tuple[Option, ...] = ()
ARGUMENTS = (1, 1)
EXAMPLES = (
    'eval "$(objstore completion bash)"',
    "objstore completion zsh > ~/.zfunc/_objstore",
    "objstore completion fish > ~/.config/fish/completions/objstore.fish",
)


class Place(NamedTuple):
    """What may stand after the words ``path`` ("" at the start): ``words`` with their summaries, ``options``, and what
    the arguments are: "files", "refs" or ""."""

    path: str
    words: dict[str, str]
    options: tuple[Option, ...]
    arguments: str


def run(arguments: Arguments, context: Context) -> int:
    """Print the script for the shell that was named."""
    (shell,) = arguments.args
    if shell not in SCRIPTS:
        raise UsageError(
            f"completion: {shell}: none of {', '.join(SCRIPTS)}", hint="objstore completion --help"
        )
    context.stdout.write(encode(SCRIPTS[shell](places())))
    return 0


def places() -> list[Place]:
    """Every place of a command line where completion has something to offer, from the tables."""
    found = [Place("", words_after(), GLOBAL_OPTIONS, "")]
    found += [Place(group, words_after(group), (HELP,), "") for group in GROUPS if find(group) is None]
    for command in COMMANDS:
        module = load(command)
        found.append(
            Place(
                command.name,
                words_after(command.name) or _first_words(module),
                (*module.OPTIONS, HELP),
                _argument_kind(module.USAGE),
            )
        )
    return found


def _first_words(module: ModuleType) -> dict[str, str]:
    """The words that a command takes first: ``WORDS`` of its module, where it has any, else what its usage offers."""
    words: dict[str, str] | None = getattr(module, "WORDS", None)
    return dict.fromkeys(_literal_words(module.USAGE), "") if words is None else words


def _literal_words(usage: str) -> list[str]:
    """The words that a usage line offers as alternatives: ``bash|zsh|fish``."""
    return [
        alternative
        for word in usage.split()
        if "|" in word and (bare := word.strip("[]().")).replace("|", "").isalpha() and bare.islower()
        for alternative in bare.split("|")
    ]


def _argument_kind(usage: str) -> str:
    names = set(usage.replace("[", " ").replace("]", " ").replace(".", " ").split())
    if names & {"FILE", "PATH", "DIR"}:
        return "files"
    return "refs" if names & {"ID", "REF", "NAME"} else ""


def _value_kind(option: Option) -> str:
    """What to offer as the value of ``option``: "files", "directories", "refs", "words" or ""."""
    kinds = {"file": "files", "directory": "directories", "ref": "refs", "id": "refs", "choice": "words"}
    return kinds.get(option.kind, "")


def _quoted(text: str) -> str:
    """``text`` as one word of a POSIX shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def _patterns(words: list[str]) -> str:
    return "|".join(map(_quoted, words)) or "''"


def _valued(table: list[Place]) -> list[tuple[Place, Option, str]]:
    return [
        (place, option, flag)
        for place in table
        for option in place.options
        if option.kind != "flag"
        for flag in option.flags
    ]


def bash(table: list[Place]) -> str:
    """The script for bash 3.2 or newer."""
    values = [
        f"        {_quoted(f'{place.path} {flag}')}) _objstore_{_value_kind(option) or 'nothing'} "
        f"{_quoted(' '.join(option.choices))}; return ;;\n"
        for place, option, flag in _valued(table)
    ]
    offers = []
    for place in table:
        flags = " ".join(flag for option in place.options for flag in option.flags)
        rest = f"_objstore_words {_quoted(' '.join(place.words))}"
        if place.arguments:
            rest += f"; _objstore_{place.arguments}"
        offers.append(
            f"        {_quoted(place.path)}) if [[ $cur == -* ]]; then _objstore_words {_quoted(flags)}; "
            f"else {rest}; fi ;;\n"
        )
    return BASH.format(
        valued=_patterns([f"{place.path} {flag}" for place, _, flag in _valued(table)]),
        paths=_patterns([place.path for place in table if place.path]),
        values="".join(values),
        offers="".join(offers),
    )


BASH = r"""# bash completion for objstore
_objstore_nothing() {{ :; }}
_objstore_words() {{
    local word
    for word in $1; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done
}}
_objstore_files() {{
    local name
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -f -- "$cur")
}}
_objstore_directories() {{
    local name
    compopt -o filenames 2>/dev/null
    while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen -d -- "$cur")
}}
_objstore_refs() {{
    local name
    while IFS= read -r name; do
        [[ $name == "$cur"* ]] && printf -v name %q "$name" && COMPREPLY+=("$name")
    done < <("${{before[@]}}" for-each-ref --format=name 2>/dev/null)
}}
_objstore() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} at="" skip="" word i
    local -a before=("${{COMP_WORDS[0]}}")
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${{COMP_WORDS[i]}}
        if [[ -n $skip ]]; then
            skip=""
        elif [[ $word == -* ]]; then
            case "$at $word" in {valued}) skip=1 ;; esac
        else
            case "${{at:+$at }}$word" in {paths}) at="${{at:+$at }}$word" ;; esac
        fi
        [[ -z $at ]] && before+=("${{word/#\~/$HOME}}")
    done
    case "$at $previous" in
{values}    esac
    case "$at" in
{offers}    esac
}}
complete -F _objstore objstore
"""


def zsh(table: list[Place]) -> str:
    """The script for zsh, to be evaluated or saved as ``_objstore`` in a folder of ``fpath``."""
    values = [
        f"        {_quoted(f'{place.path} {flag}')}) _objstore_{_value_kind(option) or 'nothing'} "
        f"{' '.join(map(_quoted, option.choices))}; return ;;\n"
        for place, option, flag in _valued(table)
    ]
    offers = []
    for place in table:
        flags = [_quoted(f"{flag}:{option.help}") for option in place.options for flag in option.flags]
        rest = [_quoted(f"{word}:{summary}" if summary else word) for word, summary in place.words.items()]
        offers.append(
            f"        {_quoted(place.path)})\n"
            f"            if [[ $cur == -* ]]; then _objstore_words {' '.join(flags)}; return; fi\n"
            + (f"            _objstore_words {' '.join(rest)}\n" if rest else "")
            + (f"            _objstore_{place.arguments}\n" if place.arguments else "")
            + "            ;;\n"
        )
    return ZSH.format(
        valued=_patterns([f"{place.path} {flag}" for place, _, flag in _valued(table)]),
        paths=_patterns([place.path for place in table if place.path]),
        values="".join(values),
        offers="".join(offers),
    )


ZSH = r"""#compdef objstore
_objstore_nothing() {{ _message 'a value' }}
_objstore_words() {{
    local -a offers=("$@")
    _describe objstore offers
}}
_objstore_files() {{ _files }}
_objstore_directories() {{ _files -/ }}
_objstore_refs() {{
    local -a names=("${{(@f)$("${{before[@]}}" for-each-ref --format=name 2>/dev/null)}}")
    compadd -- "${{names[@]}}"
}}
_objstore() {{
    local cur=${{words[CURRENT]}} previous=${{words[CURRENT-1]}} at="" skip="" word
    local -a before=("${{words[1]}}")
    integer i
    for ((i = 2; i < CURRENT; i++)); do
        word=${{words[i]}}
        if [[ -n $skip ]]; then
            skip=""
        elif [[ $word == -* ]]; then
            case "$at $word" in ({valued}) skip=1 ;; esac
        else
            case "${{at:+$at }}$word" in ({paths}) at="${{at:+$at }}$word" ;; esac
        fi
        [[ -z $at ]] && before+=("${{word/#\~/$HOME}}")
    done
    case "$at $previous" in
{values}    esac
    case "$at" in
{offers}    esac
}}
if [[ $funcstack[1] == _objstore ]]; then _objstore "$@"; else compdef _objstore objstore; fi
"""


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(table: list[Place]) -> str:
    """The script for fish 3 or newer."""
    sources = {
        "": "-x",
        "files": "-r -F",
        "directories": "-x -a '(__fish_complete_directories)'",
        "refs": "-x -a '(__objstore_refs)'",
    }
    lines = []
    for place in table:
        start = f"complete -c objstore -n {_fish_quoted('__objstore_at ' + _fish_quoted(place.path))}"
        lines += [
            f"{start} -a {_fish_quoted(word)} -d {_fish_quoted(text)}" for word, text in place.words.items()
        ]
        for option in place.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
            )
            value = ""
            if option.kind == "choice":
                value = f" -x -a {_fish_quoted(' '.join(option.choices))}"
            elif option.kind != "flag":
                value = f" {sources[_value_kind(option)]}"
            lines.append(f"{start} {flags}{value} -d {_fish_quoted(option.help)}")
        if place.arguments:
            lines.append(
                f"{start} {'-F' if place.arguments == 'files' else sources['refs'].removeprefix('-x ')}"
            )
    return FISH.format(
        valued=" ".join(_fish_quoted(f"{place.path} {flag}") for place, _, flag in _valued(table)),
        paths=" ".join(_fish_quoted(place.path) for place in table if place.path),
        lines="\n".join(lines),
    )


FISH = r"""# fish completion for objstore
function __objstore_scan
    set -g __objstore_place ''
    set -g __objstore_before
    set -l skip
    for word in (commandline -opc)
        if not set -q __objstore_before[1]
            set -a __objstore_before $word
            continue
        end
        if test -n "$skip"
            set skip
        else if string match -q -- '-*' $word
            if contains -- "$__objstore_place $word" {valued}
                set skip 1
            end
        else
            set -l next (string trim -- "$__objstore_place $word")
            if contains -- $next {paths}
                set __objstore_place $next
            end
        end
        if test -z "$__objstore_place"
            set -a __objstore_before $word
        end
    end
end
function __objstore_at
    __objstore_scan
    test "$__objstore_place" = "$argv[1]"
end
function __objstore_refs
    __objstore_scan
    command $__objstore_before for-each-ref --format=name 2>/dev/null
end
complete -c objstore -f
{lines}
"""

SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}

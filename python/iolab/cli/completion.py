"""Completion of the command line in bash, zsh and fish, generated from the parsers of the commands.

A script knows every command, the commands of a command (`iolab trace show`), their options with
their help, and the values of options that have a fixed list: also testbeds with the names of
simulated devices, and levels, each of a list with commas. Everything else is completed as the name
of a file. The options of other programs are those of their reference tables.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

from iolab.cli.all_parsers import command_parser, subject_parsers
from iolab.errors import IolabError
from iolab.frozen import frozen
from iolab.library.program_options import program_options
from iolab.library.value_words import PLACE, level_words, place_words

_TYPED: Final = re.compile(r"--?\+?[A-Za-z0-9][\w.-]*")
_REFUSED: Final = "here: refused"
_ABOUT_MAX: Final = 100
"""Columns of the help beside an option of another program."""
SHELLS: Final = ("bash", "zsh", "fish")


@frozen
class Option:
    """One option of a command."""

    names: tuple[str, ...]
    about: str
    takes_value: bool
    choices: tuple[str, ...]
    kind: Literal["one", "list", "place"] = "one"
    """One of the choices; several with commas between; or a testbed, maybe with a file's name."""


@frozen
class Command:
    """One command: its options, and its own commands if it has some."""

    name: str
    about: str
    options: tuple[Option, ...]
    inner: tuple[Command, ...] = ()


def completion(
    shell: str, commands: Sequence[tuple[str, str, str]], programs: Sequence[str]
) -> str:
    """Return the script that a shell sources.

    Parameters
    ----------
    shell : of `SHELLS`.
    commands : name, module of `iolab.cli` and help of each.
    programs : other programs whose command lines are understood.

    Raises
    ------
    IolabError : there is no such shell.
    """
    if shell not in _WRITERS:
        raise IolabError(
            f"--completion {shell or '(nothing)'}: there is no such shell",
            f"shells are {', '.join(SHELLS)}; for bash: source <(iolab --completion bash)",
        )
    words = level_words()
    found = [_command(row, words) for row in commands]
    found += [
        Command(name, f"the command line of {name}", tuple(_options_of_program(name)))
        for name in programs
    ]
    return _WRITERS[shell](found)


def _command(row: tuple[str, str, str], levels: Mapping[str, tuple[str, ...]]) -> Command:
    name, module, about = row
    inner = tuple(
        Command(subject, (parser.description or "").rstrip("."), tuple(_options(parser, levels)))
        for subject, parser in subject_parsers(module).items()
    )
    options = () if inner else tuple(_options(command_parser(module), levels))
    return Command(name, about, options, inner)


def _options(
    parser: argparse.ArgumentParser, levels: Mapping[str, tuple[str, ...]]
) -> Iterator[Option]:
    for action in parser._actions:
        names = tuple(name for name in action.option_strings if name.startswith("--"))
        if names and action.help is not argparse.SUPPRESS:
            about = (action.help or "").replace("%%", "%")
            choices = tuple(str(choice) for choice in action.choices or ())
            takes_value = action.nargs != 0
            if names[0] == PLACE:
                yield Option(names, about, takes_value, place_words(), "place")
            elif takes_value and not choices and names[0] in levels:
                yield Option(names, about, takes_value, levels[names[0]], "list")
            else:
                yield Option(names, about, takes_value, choices)


def _options_of_program(program: str) -> Iterator[Option]:
    """Options of another program, each once; a refused one is none that can be typed."""
    seen = set[str]()
    for name, about, takes_value in program_options(program):
        if name not in seen and _TYPED.fullmatch(name) and _REFUSED not in about:
            seen.add(name)
            yield Option((name,), _brief(about), takes_value, ())


def _brief(about: str) -> str:
    return about if len(about) <= _ABOUT_MAX else about[: _ABOUT_MAX - 3].rstrip() + "..."


# Bash ends a word at a colon: the whole of it is taken from the line, and what stands before its
# colon already is cut off the answer.
_BASH_HEAD: Final = """\
# Completion of iolab for bash; use it with: source <(iolab --completion bash)
_iolab_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$now"); }
_iolab_list() {
    local head=
    [[ $now == *,* ]] && head=${now%,*},
    compopt +o filenames -o nospace
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$1" -- "${now##*,}")
}
_iolab_place() {
    local begin=
    compopt +o filenames -o nospace
    [[ $typed == *:* ]] && begin=${typed%%:*}:
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$typed"; compgen -P "$begin" -f -- \
"${typed#"$begin"}")
    [[ $COMP_WORDBREAKS == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"$begin"}")
}
_iolab() {
    local now=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:COMP_POINT}
    local typed=${line##*[[:blank:]]}
    line=${line%"$typed"}
    line=${line%"${line##*[![:blank:]]}"}
    local before=${line##*[[:blank:]]}
    COMPREPLY=()"""


def _bash(commands: Sequence[Command]) -> str:
    return "\n".join(
        [
            _BASH_HEAD,
            *_bash_choice(commands, 1),
            '    [ "${#COMPREPLY[@]}" = 0 ] && mapfile -t COMPREPLY < <(compgen -f -- "$now")',
            "}",
            "complete -o filenames -F _iolab iolab",
        ]
    )


_BASH_CALLS: Final = {"one": "_iolab_words", "list": "_iolab_list", "place": "_iolab_place"}


def _bash_choice(commands: Sequence[Command], place: int) -> Iterator[str]:
    """Complete the word at a place by the commands, and what follows by the one that is there."""
    names = _joined([command.name for command in commands])
    yield f'    [ "$COMP_CWORD" = {place} ] && {{ _iolab_words {names}; return; }}'
    yield f'    case "${{COMP_WORDS[{place}]}}" in'
    for command in commands:
        yield f"    {command.name})"
        yield from _bash_choice(command.inner, place + 1) if command.inner else _bash_end(command)
        yield "        ;;"
    yield "    esac"


def _bash_end(command: Command) -> Iterator[str]:
    valued = [option for option in command.options if option.choices]
    if valued:
        yield '        case "$before" in'
        for o in valued:
            call = f"{_BASH_CALLS[o.kind]} {_joined(o.choices)}"
            yield f"            {'|'.join(o.names)}) {call}; return ;;"
        yield "        esac"
    names = _joined([name for option in command.options for name in option.names])
    yield f"        [[ $now == -* ]] && {{ _iolab_words {names}; return; }}"


_ZSH_HEAD: Final = """\
#compdef iolab
# Completion of iolab for zsh; use it with: source <(iolab --completion zsh)
_iolab_place() {{
    compadd -S '' -- {places}
    if compset -P '(sim|dir|device):'; then _files; fi
}}"""


def _zsh(commands: Sequence[Command]) -> str:
    return "\n".join(
        [
            _ZSH_HEAD.format(places=" ".join(place_words())),
            "_iolab() {",
            "    local -a commands",
            *_zsh_choice(commands),
            "}",
            "compdef _iolab iolab",
        ]
    )


def _zsh_choice(commands: Sequence[Command]) -> Iterator[str]:
    """Complete the second word by the commands, and what follows by the one that is there."""
    yield "    commands=("
    yield from (f"        {_quoted(f'{c.name}:{_plain(c.about)}')}" for c in commands)
    yield "    )"
    yield "    if (( CURRENT == 2 )); then _describe command commands; return; fi"
    yield "    case $words[2] in"
    for command in commands:
        yield f"    {command.name})"
        yield "        shift words; (( CURRENT-- ))"
        yield from _zsh_choice(command.inner) if command.inner else _zsh_end(command)
        yield "        ;;"
    yield "    esac"


def _zsh_end(command: Command) -> Iterator[str]:
    lines = [
        _quoted(f"*{name}[{_bracketed(o.about)}]" + _zsh_value(o))
        for o in command.options
        for name in o.names
        if "+" not in name  # That has a meaning of its own in a description of zsh.
    ]
    joined = " \\\n            ".join([*lines, "'*:file:_files'"])
    yield f"        _arguments {joined}"


def _zsh_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    words = " ".join(option.choices)
    if option.kind == "list":
        return f":value: _sequence compadd - {words}"
    if option.kind == "place":
        return ":value: _iolab_place"
    return f":value:({words})" if words else ":value:_files"


_FISH_HEAD: Final = """\
# Completion of iolab for fish; use it with: iolab --completion fish | source
function __iolab_within
    set -l words (commandline -opc)
    for place in (seq (count $argv))
        set -l at (math $place + 1)
        test "$words[$at]" = "$argv[$place]"; or return 1
    end
end
function __iolab_after
    set -l words (commandline -opc)
    test (count $words) = (math (count $argv) + 1); and __iolab_within $argv
end
function __iolab_list
    set -l head (commandline -ct | string match -r '^.*,')
    printf '%s\\n' "$head"$argv
end
function __iolab_place
    printf '%s\\n' $argv
    set -l parts (commandline -ct | string match -r '^((?:sim|dir|device):)(.*)$')
    or return
    for path in $parts[3]*
        test -d $path; and set path $path/
        echo $parts[2]$path
    end
end"""


def _fish(commands: Sequence[Command]) -> str:
    return "\n".join([_FISH_HEAD, *_fish_choice(commands, ())])


def _fish_choice(commands: Sequence[Command], path: tuple[str, ...]) -> Iterator[str]:
    """Complete the word after `path` by the commands, and what follows by their options."""
    after = _quoted(" ".join(["__iolab_after", *path]))
    for c in commands:
        named = f"-a {_quoted(c.name)} -d {_quoted(c.about)}"
        yield f"complete -c iolab -n {after} -f {named}"
        yield from _fish_choice(c.inner, (*path, c.name))
        within = _quoted(" ".join(["__iolab_within", *path, c.name]))
        for o in c.options:
            names = " ".join(map(_fish_name, o.names))
            value = " -r" if o.takes_value else ""
            if o.choices:
                call = _FISH_CALLS[o.kind].format(" ".join(o.choices))
                value = f" -x -a {_quoted(call)}"
            yield f"complete -c iolab -n {within} {names}{value} -d {_quoted(o.about)}"


_FISH_CALLS: Final = {"one": "{0}", "list": "(__iolab_list {0})", "place": "(__iolab_place {0})"}


def _fish_name(name: str) -> str:
    if name.startswith("--"):
        return f"-l {name.removeprefix('--')}"
    return f"-s {name[1:]}" if len(name) == 2 else f"-o {_quoted(name[1:])}"


_WRITERS: Final[dict[str, Callable[[Sequence[Command]], str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}


def _quoted(text: str) -> str:
    """A word in single quotes, which all three shells read in the same way."""
    return "'" + text.replace("\\", "/").replace("'", "’").replace("\n", " ") + "'"


def _joined(words: Sequence[str]) -> str:
    return _quoted(" ".join(words))


def _plain(text: str) -> str:
    return text.replace(":", ";")


def _bracketed(text: str) -> str:
    """Help that may stand in brackets of `_arguments`."""
    return text.replace("[", "(").replace("]", ")").replace(":", ";")

"""Completion of the command line in bash, zsh and fish, generated from the parsers of the commands.

A script knows every command, its options with their help, and the values of options that have a
fixed list. Everything else is completed as the name of a file. Left out: levels inside a list with
commas, and the options of other programs' command lines.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Final

from iolab.errors import IolabError

SHELLS: Final = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command."""

    names: tuple[str, ...]
    about: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its options, and its own commands if it has some."""

    name: str
    about: str
    options: tuple[Option, ...]
    words: tuple[str, ...]


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
    found = [_command(*row) for row in commands]
    found += [Command(name, f"the command line of {name}", (), ()) for name in programs]
    return _WRITERS[shell](found)


def _command(name: str, module: str, about: str) -> Command:
    parser = argparse.ArgumentParser(prog=f"iolab {name}")
    import_module(f"iolab.cli.{module}").add_arguments(parser)
    return Command(name, about, tuple(_options(parser)), tuple(_words(parser)))


def _options(parser: argparse.ArgumentParser) -> Iterator[Option]:
    for action in parser._actions:
        names = tuple(name for name in action.option_strings if name.startswith("--"))
        if names and action.help is not argparse.SUPPRESS:
            about = (action.help or "").replace("%%", "%")
            choices = tuple(str(choice) for choice in action.choices or ())
            yield Option(names, about, action.nargs != 0, choices)


def _words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if not action.option_strings and isinstance(action.choices, Mapping):
            yield from map(str, action.choices)


def _bash(commands: Sequence[Command]) -> str:
    cases = list[str]()
    for command in commands:
        valued = [
            f"            {'|'.join(o.names)}) _iolab_words {_joined(o.choices)}; return ;;"
            for o in command.options
            if o.choices
        ]
        names = " ".join(name for o in command.options for name in o.names)
        values = ['        case "$before" in', *valued, "        esac"] if valued else []
        inner = f'        [ "$COMP_CWORD" = 2 ] && _iolab_words {_quoted(" ".join(command.words))}'
        cases += [
            f"    {command.name})",
            *values,
            f"        [[ $now == -* ]] && {{ _iolab_words {_quoted(names)}; return; }}",
            *([inner] if command.words else []),
            "        ;;",
        ]
    first = " ".join(command.name for command in commands)
    return "\n".join(
        [
            "# Completion of iolab for bash; use it with: source <(iolab --completion bash)",
            '_iolab_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$now"); }',
            "_iolab() {",
            "    local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
            "    COMPREPLY=()",
            f'    [ "$COMP_CWORD" = 1 ] && {{ _iolab_words {_quoted(first)}; return; }}',
            '    case "${COMP_WORDS[1]}" in',
            *cases,
            "    esac",
            '    [ "${#COMPREPLY[@]}" = 0 ] && mapfile -t COMPREPLY < <(compgen -f -- "$now")',
            "}",
            "complete -o filenames -F _iolab iolab",
        ]
    )


def _zsh(commands: Sequence[Command]) -> str:
    described = [f"        {_quoted(f'{c.name}:{_plain(c.about)}')}" for c in commands]
    cases = list[str]()
    for command in commands:
        lines = [
            _quoted(f"*{name}[{_bracketed(o.about)}]" + _zsh_value(o))
            for o in command.options
            for name in o.names
        ]
        words = [_quoted(f"1:command:({' '.join(command.words)})")] if command.words else []
        joined = " \\\n            ".join([*lines, *words, "'*:file:_files'"])
        cases += [f"    {command.name})", "        shift words; (( CURRENT-- ))"]
        cases += [f"        _arguments {joined} ;;"]
    return "\n".join(
        [
            "#compdef iolab",
            "# Completion of iolab for zsh; use it with: source <(iolab --completion zsh)",
            "_iolab() {",
            "    local -a commands",
            "    commands=(",
            *described,
            "    )",
            "    if (( CURRENT == 2 )); then _describe command commands; return; fi",
            "    case $words[2] in",
            *cases,
            "    esac",
            "}",
            "compdef _iolab iolab",
        ]
    )


def _zsh_value(option: Option) -> str:
    if not option.takes_value:
        return ""
    return f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"


def _fish(commands: Sequence[Command]) -> str:
    lines = ["# Completion of iolab for fish; use it with: iolab --completion fish | source"]
    for c in commands:
        lines.append(
            f"complete -c iolab -n __fish_use_subcommand -f -a {_quoted(c.name)}"
            f" -d {_quoted(c.about)}"
        )
        when = _quoted(f"__fish_seen_subcommand_from {c.name}")
        for o in c.options:
            names = " ".join(f"-l {name.removeprefix('--')}" for name in o.names)
            value = " -r" if o.takes_value else ""
            if o.choices:
                value = f" -x -a {_quoted(' '.join(o.choices))}"
            lines.append(f"complete -c iolab -n {when} {names}{value} -d {_quoted(o.about)}")
        if c.words:
            lines.append(f"complete -c iolab -n {when} -f -a {_quoted(' '.join(c.words))}")
    return "\n".join(lines)


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

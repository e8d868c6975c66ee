"""argparse with messages a user can act on: one line, the nearest valid name, no usage dump."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import Final, NoReturn

from iolab.errors import IolabError
from iolab.wording import nearest

_MAY_BE_EMPTY: Final = ("flags", "mkfs_options", "mount_options")
"""Factors of which nothing at all is a level."""


_SUCH_AS: Final = {"--on": "such as --on loop:1g or --on dir:/var/tmp"}
"""Arguments whose help is too long to be an answer."""


class Parser(argparse.ArgumentParser):
    """Raises :class:`IolabError` instead of printing and exiting."""

    mixes_words = False
    """True if words of one list may stand before and behind flags."""

    def understand(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the meaning of all the words.

        Raises
        ------
        IolabError : nothing knows one of them, or the value of an option is missing or blank.
        """
        for word in words:
            flag, sign, value = word.partition("=")
            if word == "--":
                break
            if flag.startswith("--") and sign and value == "--":
                self.error(f"argument {flag}: expected one argument")
        parse = self.parse_known_intermixed_args if self.mixes_words else self.parse_known_args
        parsed, unknown = parse(words)
        self._refuse_unknown(unknown)
        for action in self._actions:
            if action.option_strings and action.nargs is None and _is_given(action, parsed):
                self._refuse_blank(action, getattr(parsed, action.dest))
        return parsed

    def _refuse_blank(self, action: argparse.Action, given: object) -> None:
        values: list[object] = given if isinstance(given, list) else [given]
        for value in values:
            if isinstance(value, str) and not value.strip(" \t\n,"):
                flag = action.option_strings[0]
                raise IolabError(
                    f"{flag} '{value}': there is nothing in it",
                    f"name a value, or leave {flag} out; see `{self.prog} --help`",
                )

    def error(self, message: str) -> NoReturn:
        """Turn argparse's complaint into ours."""
        lacks_value = re.fullmatch(r"argument (\S+?)(?:/\S+)*: expected one argument", message)
        if lacks_value:
            raise IolabError(
                f"{lacks_value[1]} needs a value",
                f"see `{self.prog} --help`; a value that begins with a dash is written "
                f"{lacks_value[1]}=-VALUE",
            )
        lacks = re.fullmatch(r"the following arguments are required: (.+)", message)
        if lacks:
            self._say_what_is_needed(lacks[1].split(", "))
        lacks_one = re.fullmatch(r"one of the arguments (.+) is required", message)
        if lacks_one:
            message = f"`{self.prog}` needs one of {', '.join(lacks_one[1].split())}"
        self._refuse_choice(message)
        both = re.fullmatch(r"argument (\S+?)(?:/\S+)*: not allowed with argument (\S+)", message)
        if both:
            message = f"{both[1]} and {both[2].partition('/')[0]} exclude each other"
        raise IolabError(message, f"see `{self.prog} --help`")

    def _refuse_choice(self, message: str) -> None:
        """Say which values an option has, if a value is not among them."""
        found = re.match(r"argument (\S+?)(?:/\S+)*: invalid choice: '(.*)' \(choose from", message)
        action = next(
            (a for a in self._actions if found and _name_of(a).partition("/")[0] == found[1]), None
        )
        if found is None or action is None or action.choices is None:
            return
        known = [str(choice) for choice in action.choices]
        raise IolabError(
            f"{found[1]}: '{found[2]}' is none of its values{nearest(found[2], known)}",
            f"values are {', '.join(known)}; see `{self.prog} --help`",
        )

    def _say_what_is_needed(self, names: list[str]) -> NoReturn:
        """Name the arguments that are missing, as they are typed, and what each of them is."""
        typed, about = list[str](), list[str]()
        for name in names:
            action = next((a for a in self._actions if _name_of(a) == name), None)
            is_option = action is not None and action.option_strings
            value = f" {action.metavar}" if action is not None and is_option else ""
            typed.append(f"{name.partition('/')[0]}{value}")
            if name in _SUCH_AS:
                about.append(_SUCH_AS[name])
            elif action is not None and action.help:
                told = " ".join(action.help.split()) % {**vars(action), "prog": self.prog}
                about.append(told if len(names) == 1 else f"{name}: {told}")
        hint = "; ".join([*about, f"see `{self.prog} --help`"])
        needed = f"`{self.prog}` needs {' and '.join(typed)}"
        if len(names) == 1 and about:
            joint = f", {about[0]}" if names[0] in _SUCH_AS else f" ({about[0]})"
            raise IolabError(f"{needed}{joint}", f"see `{self.prog} --help`")
        raise IolabError(needed, hint)

    def _refuse_unknown(self, arguments: list[str]) -> None:
        """Complain about the first argument that nothing takes."""
        if not arguments:
            return
        if not arguments[0].startswith("-"):
            raise IolabError(
                f"'{arguments[0]}' is one argument too many", f"see `{self.prog} --help`"
            )
        first = arguments[0].partition("=")[0]
        known = [name for action in self._actions for name in action.option_strings]
        raise IolabError(
            f"there is no option {first}{nearest(first, known)}", f"see `{self.prog} --help`"
        )


def _name_of(action: argparse.Action) -> str:
    """Name of an argument in argparse's complaints."""
    return "/".join(action.option_strings) or str(action.metavar or action.dest)


def _is_given(action: argparse.Action, parsed: argparse.Namespace) -> bool:
    if action.dest in _MAY_BE_EMPTY or action.dest not in vars(parsed):
        return False
    return getattr(parsed, action.dest) != action.default

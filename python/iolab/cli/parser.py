"""argparse with messages a user can act on: one line, the nearest valid name, no usage dump."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from iolab.errors import IolabError
from iolab.study.factors import nearest


class Parser(argparse.ArgumentParser):
    """Raises :class:`IolabError` instead of printing and exiting."""

    def error(self, message: str) -> NoReturn:
        """Turn argparse's complaint into ours."""
        lacks_value = re.fullmatch(r"argument (\S+?)(?:/\S+)*: expected one argument", message)
        if lacks_value:
            raise IolabError(
                f"{lacks_value[1]} needs a value",
                f"see `{self.prog} --help`; a value that begins with a dash is written "
                f"{lacks_value[1]}=-VALUE",
            )
        raise IolabError(message, f"see `{self.prog} --help`")

    def refuse_unknown(self, arguments: list[str]) -> None:
        """Complain about the first argument that nothing takes."""
        if not arguments:
            return
        first = arguments[0].partition("=")[0]
        if not first.startswith("-"):
            raise IolabError(f"'{first}' is one argument too many", f"see `{self.prog} --help`")
        known = [name for action in self._actions for name in action.option_strings]
        raise IolabError(
            f"there is no option {first}{nearest(first, known)}", f"see `{self.prog} --help`"
        )

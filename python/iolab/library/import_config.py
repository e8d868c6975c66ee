"""Lines that an administrator typed, as a stack file: ``iolab sim import-config``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from iolab.errors import StudyError
from iolab.frozen import frozen
from iolab.json_text import read_json, write_json
from iolab.library.services import Services
from iolab.store.users_files import Allowed, refuse_existing, write_new

if TYPE_CHECKING:
    from iolab.json_text import JsonText
    from iolab.protocol import ImportedConfig, ImportOptions

_STACK_ENDING: Final = ".toml"
_TEXT_BYTES_MAX: Final = 1 << 20
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


class _Importer(Protocol):
    """Functions of the extension that are needed."""

    def sim_import_config(
        self, files: list[tuple[str, str]], options_json: JsonText[ImportOptions], /
    ) -> JsonText[ImportedConfig]: ...
    def sim_stack(self, subject: str, text: str, /) -> str: ...


@frozen
class Unsaid:
    """Facts that lines of an administrator do not tell."""

    device: str | None = None
    """Profile of each disk."""
    memory: str | None = None
    """Memory of the machine, as ``155m``; None: of a line ``physmem``, else 128 MiB."""
    release: int | None = None
    """Release of Solaris; None: 8."""
    fs: str | None = None
    """File system, where lines are of several."""
    name: str | None = None
    """Name of the stack; None: that of its file."""
    title: str | None = None
    """Headline of the stack."""


def import_config(
    paths: Sequence[Path], unsaid: Unsaid, services: Services, *, out: Path | None = None
) -> ImportedConfig:
    """Read lines of an administrator; tells what each does, and the stack that they make.

    Parameters
    ----------
    paths : files with the lines, read in this order as if they were one.
    unsaid : what they do not tell.
    services : the compiled half.
    out : file to which the stack is to be written; it gives the stack its name.

    Raises
    ------
    StudyError : a file cannot be read; a line cannot be meant so; or the simulator does not take
        the stack, for instance because there is no such profile.
    """
    importer = cast("_Importer", services.load_core())
    name = unsaid.name or (out or paths[0]).stem
    options: ImportOptions = {
        "device": unsaid.device,
        "memory": unsaid.memory,
        "release": unsaid.release,
        "fs": unsaid.fs,
        "name": _NO_NAME.sub("-", name).strip("-") or "imported",
        "title": unsaid.title or f"stack of the lines in {', '.join(p.name for p in paths)}",
    }
    files = [(str(path), _read(path)) for path in paths]
    imported = read_json(importer.sim_import_config(files, write_json(options)))
    stack = imported["stack"]
    if stack is not None:
        importer.sim_stack(str(out or "the stack of these lines"), stack)
    return imported


def write_stack(imported: ImportedConfig, out: Path, overwrite: Sequence[str]) -> None:
    """Write the stack file.

    Raises
    ------
    StudyError : there is no stack, or the file cannot be written; says why.
    RefusedError : the file is there, and nobody named it in `overwrite`.
    """
    if out.suffix != _STACK_ENDING:
        raise StudyError(
            f"--out {out} does not end in {_STACK_ENDING}", "as in --out stack.toml, for --on sim:"
        )
    text = stack_of(imported)
    allowed = Allowed.of(overwrite)
    refuse_existing([out], allowed)
    try:
        write_new({out: text.encode()}, allowed)
    except OSError as error:
        raise StudyError(
            f"{out} cannot be written: {error.strerror or error}", "name another place"
        ) from None


def stack_of(imported: ImportedConfig) -> str:
    """Text of the stack file.

    Raises
    ------
    StudyError : there is none; says why.
    """
    if imported["stack"] is None:
        raise StudyError(str(imported["problem"]), str(imported["remedy"]))
    return imported["stack"]


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _TEXT_BYTES_MAX:
            raise StudyError(
                f"{path} is longer than 1 MiB", "name files of an administrator's lines"
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise StudyError(f"{path}: there is no such file", "check its name") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise StudyError(f"{path} cannot be read: {reason}", "name a file of lines") from None

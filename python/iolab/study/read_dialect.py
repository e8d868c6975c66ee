"""Reading a workload that is described by a command or a file (``dialect = ...``)."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError, StudyError
from iolab.regular_file import refuse_endless
from iolab.study.dialects import (
    FILE_DIALECT,
    TEXT_BYTES_MAX,
    Dialect,
    Entry,
    find_dialect,
    with_level,
    words_of,
    workloads_of,
)
from iolab.study.model import DialectWorkload, Factor
from iolab.study.reader import Reader
from iolab.study.recordings import KEY, check_recordings, read_recordings
from iolab.study.settings import SURROUNDINGS, merged, parse_name
from iolab.study.source import folder_of

if TYPE_CHECKING:
    from iolab.study.entry_plan import FileCore

_KEYS: Final = ("name", "kind", "dialect", "command", "file", "text", "vary", "settings", KEY)


def read_dialect(reader: Reader, *, is_line: bool) -> tuple[DialectWorkload, ...]:
    """The workloads that an entry of a study stands for, lowered.

    Parameters
    ----------
    is_line : it is that of a command line, whose words may say what no study can.
    """
    reader.only(_KEYS)
    reader.read_or("kind", _only_kind, DialectWorkload.kind)
    dialect = reader.read_or("dialect", find_dialect, find_dialect(FILE_DIALECT))
    if dialect.has_file:
        key, text, file = _read_file(reader)
    elif dialect.has_jobs and "file" in reader.values:
        key, text, file = _read_job_file(reader)
    else:
        key, text, file = _read_command(reader, takes_file=dialect.has_jobs)
    name = dialect.name
    if file:
        name = Path(file).stem
    if dialect.has_file:
        folder = folder_of(reader.source)
        folder = (folder / file).parent if file else folder
        text = _core().workload_file_anchored(str(folder), text)
    given_name = reader.read_or("name", parse_name, name)
    check_recordings(read_recordings(reader), given_name, _core())
    entry = Entry(
        name=given_name,
        dialect=dialect,
        text=text,
        file=file if dialect.has_file else "",
        vary=_read_vary(reader, dialect, text),
        settings=merged(reader, {}, SURROUNDINGS),
        is_line=is_line,
    )
    return reader.parsed(key, entry, lambda one: workloads_of(one, _core()))


def _core() -> FileCore:
    from iolab import _core as core

    return core


def _read_command(reader: Reader, *, takes_file: bool = False) -> tuple[str, str, str]:
    for key in ("file", "text"):
        if key in reader.values:
            reader.refuse(key, "this dialect is a command, not a file", 'write command = "..."')

    def parse(value: object) -> str:
        if isinstance(value, list):
            given = cast("list[object]", value)
        else:
            given = words_of(cast("str", value))
        words = [word for word in given if isinstance(word, str)]
        if len(words) < len(given):
            raise ValueError("a command is a text, or a list of texts")
        return shlex.join(words)

    if takes_file and "command" not in reader.values:
        reader.refuse(None, "'command' is missing", "add command = ..., or file = ...")
    return "command", reader.read("command", parse), ""


def _read_file(reader: Reader) -> tuple[str, str, str]:
    if "command" in reader.values:
        reader.refuse("command", "this dialect is a file, not a command", 'write file = "..."')
    file = reader.read_or("file", _text, "")
    if "text" in reader.values:
        return "text", reader.read("text", _text), file
    if not file:
        reader.refuse(None, "'file' is missing", "add file = ...")
    return "file", reader.parsed("file", file, lambda name: _text_of(reader, name)), file


def _read_job_file(reader: Reader) -> tuple[str, str, str]:
    """Command that runs a file of jobs; it lies beside the study file unless its name is whole."""
    for key in ("command", "text"):
        if key in reader.values:
            reader.refuse(key, "beside file", "write file or command, not both")
    file = reader.read("file", _text)
    path = folder_of(reader.source) / file
    if not file:
        reader.refuse("file", "file is empty", "name a job file")
    try:
        refuse_endless(path)
    except IolabError as error:
        reader.refuse("file", error.message, error.hint)
    return "file", shlex.join([str(folder_of(reader.source) / file)]), file


def _only_kind(value: object) -> str:
    if value == DialectWorkload.kind:
        return DialectWorkload.kind
    raise ValueError(f"'{value}' has no dialect and no file: leave one of them out")


def _text(value: object) -> str:
    if isinstance(value, str) and "\0" not in value:
        return value
    raise ValueError("this is no text")


def _text_of(reader: Reader, name: str) -> str:
    """Text of a file beside the study file.

    Raises
    ------
    StudyError : it cannot be read, or is no workload.
    """
    path = folder_of(reader.source) / name
    try:
        with path.open("rb") as opened:
            content = opened.read(TEXT_BYTES_MAX + 1)
        if len(content) > TEXT_BYTES_MAX:
            raise StudyError(f"{path} is larger than any workload", "name a workload file")
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise StudyError(
            f"{path} cannot be read: {error.strerror}",
            "name a workload file, or a preset of `iolab workloads`",
        ) from None
    except UnicodeDecodeError:
        raise StudyError(f"{path} is not a text", "name a workload file in UTF-8") from None


def _read_vary(reader: Reader, dialect: Dialect, text: str) -> tuple[Factor, ...]:
    table = reader.table("vary")
    factors = list[Factor]()
    for path, value in table.values.items():
        levels = table.parsed(path, value, _levels)
        table.parsed(path, path, lambda one: with_level(dialect, text, one, "1"))
        factors.append(Factor(path, levels))
    return tuple(factors)


def _levels(value: object) -> tuple[str, ...]:
    is_list = isinstance(value, list)
    items = cast("list[object]", value) if is_list else str(value).split(",")
    levels = tuple(str(item).strip() for item in items)
    if len(levels) < 2 or not all(levels):
        raise ValueError("what is varied has at least two levels")
    repeated = next((level for level, count in Counter(levels).items() if count > 1), None)
    if repeated is not None:
        raise ValueError(f"level '{repeated}' is given twice; rounds repeat it")
    return levels

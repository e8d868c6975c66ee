"""Recordings that workloads do again: what they were when the study began, and whether they are so.

A recorded stream lies in a file outside the study. The stored study holds its name, size and
digest; whoever continues it or runs it again is refused where the file is another one now.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError, StudyError
from iolab.json_text import read_json
from iolab.study.model import DialectWorkload, RecordingIdentity, WorkloadPlan

if TYPE_CHECKING:
    from iolab.protocol import Workload
    from iolab.study.entry_plan import FileCore
    from iolab.study.reader import Reader


class RecordingError(StudyError):
    """A recording of a stored study is not there, or another one now."""

    def __init__(self, message: str, hint: str, recording: RecordingIdentity) -> None:
        super().__init__(message, hint)
        self.recording = recording


KEY: Final = "recordings"
_KEYS: Final = ("file", "size_bytes", "digest")


def recordings_in(workloads: Iterable[Workload]) -> tuple[RecordingIdentity, ...]:
    """Recordings of planned workloads, each once, in the order of their names."""
    found = dict[str, RecordingIdentity]()
    for workload in workloads:
        for tenant in (one for phase in workload["phases"] for one in phase["tenants"]):
            program = tenant.get("program")
            recorded = None if program is None else program.get("recorded")
            content = None if recorded is None else recorded.get("content")
            if recorded is None or content is None:
                continue
            identity = content["identity"]
            found[recorded["file"]] = RecordingIdentity(
                recorded["file"], identity["file_bytes"], identity["digest"]
            )
    return tuple(found[name] for name in sorted(found))


def read_recordings(reader: Reader) -> tuple[RecordingIdentity, ...]:
    """Recordings that an entry of a study names; empty if it names none."""
    found = list[RecordingIdentity]()
    for table in reader.tables(KEY):
        table.only(_KEYS)
        found.append(
            RecordingIdentity(
                table.read("file", _text),
                table.read("size_bytes", _count),
                table.read("digest", _text),
            )
        )
    return tuple(found)


def check_recordings(known: Sequence[RecordingIdentity], name: str, core: FileCore) -> None:
    """Refuse recordings that are not what they were when the study was planned.

    Parameters
    ----------
    known : what they were.
    name : the workload that does them again.
    core : the compiled half, which reads them.

    Raises
    ------
    RecordingError : one is not there, cannot be read, or has another size or digest; says which,
        what differs and what to do.
    """
    for recording in known:
        try:
            Path(recording.file).stat()
            found = read_json(core.recording_identity(recording.file))
        except (OSError, IolabError) as error:
            why = error.strerror if isinstance(error, OSError) else error.message
            raise RecordingError(
                f"{name}: the recording {recording.file} of this study cannot be read: {why}; it "
                f"had {recording.identity}",
                f"{_way_back(recording.file)}; its size and digest are compared",
                recording,
            ) from None
        now = RecordingIdentity(recording.file, found["file_bytes"], found["digest"])
        if now != recording:
            raise changed(name, recording, now)


def is_place_here(file: str) -> bool:
    """Tell whether a file would lie in the working directory, and no part of its path is hidden.

    The study of somebody else may name any file: one that a shell or a service obeys, for example.
    Only of a place here a command is told that makes something there.
    """
    try:
        here = Path.cwd().resolve()
        parts = (here / file).resolve().relative_to(here).parts
    except (OSError, ValueError, RuntimeError):
        return False
    return bool(parts) and not any(part.startswith(".") for part in parts)


def _way_back(file: str) -> str:
    """Advice about a recording that is not at its place."""
    if is_place_here(file):
        link = shlex.quote(f"./{file}" if file.startswith("-") else file)
        return f"put it back, or make a link to where it is now: `ln -s WHERE {link}`"
    return (
        "if the study is your own, put it back there, or make a link there to where it is now; "
        "otherwise do not: look first what lies at that place and who reads it"
    )


def changed(name: str, known: RecordingIdentity, now: RecordingIdentity) -> RecordingError:
    """Error of a recording that is another one now."""
    return RecordingError(
        f"{name}: the recording {known.file} is another one than when the study began: it has "
        f"{now.identity}; it had {known.identity}",
        "put the old recording back to continue; to measure the new one, begin a new study with "
        "the workload it came from, and another --out",
        known,
    )


def recordings_of_spec(spec_toml: str) -> list[tuple[str, RecordingIdentity]]:
    """Workload and recording of each recording that a stored study names; none if it names none."""
    import tomllib  # Most commands never come here.

    try:
        table = tomllib.loads(spec_toml)
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    found = list[tuple[str, RecordingIdentity]]()
    for entry in _tables(table.get("workloads")):
        for one in _tables(entry.get(KEY)):
            file, size, digest = (one.get(key) for key in _KEYS)
            if isinstance(file, str) and isinstance(size, int) and isinstance(digest, str):
                found.append((str(entry.get("name", "")), RecordingIdentity(file, size, digest)))
    return found


def check_same_recordings(spec_toml: str, asked: Sequence[WorkloadPlan]) -> None:
    """Refuse a recording that has the name of a stored one, and another size or digest.

    Raises
    ------
    StudyError : there is one; names it.
    """
    known = {(name, one.file): one for name, one in recordings_of_spec(spec_toml)}
    for workload in asked:
        if not isinstance(workload, DialectWorkload):
            continue
        for recording in workload.recordings:
            before = known.get((workload.entry, recording.file), recording)
            if before != recording:
                raise changed(workload.entry, before, recording)


def _tables(value: object) -> list[Mapping[str, object]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, object]", item) for item in items if isinstance(item, dict)]


def _text(value: object) -> str:
    if isinstance(value, str) and "\0" not in value:
        return value
    raise ValueError("this is no text")


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ValueError("this is no number of bytes")

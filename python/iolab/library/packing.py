"""Content of an archive: the database, and everything that can be made from it, made afresh."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

from iolab.archive.format import DATABASE, Manifest, members_of
from iolab.archive.write import pack
from iolab.errors import AnalysisError, IolabError
from iolab.export.fio import file_name, fio_job
from iolab.export.iozone import iozone_script
from iolab.export.treatments import exported_treatments
from iolab.frozen import replace
from iolab.library.services import Services
from iolab.library.stored import drawable
from iolab.library.trial_pictures import with_traces
from iolab.run.kept_recordings import copy_of, is_copy
from iolab.run.observer import Observer
from iolab.store.contents import Contents
from iolab.store.db import Store
from iolab.store.lock import WriterLock
from iolab.store.machine import machine_text
from iolab.store.owner import distrusted
from iolab.store.rows import StudyData
from iolab.store.users_files import REPORT_FILES
from iolab.study.recordings import recordings_of_spec
from iolab.version import iolab_version

Note: TypeAlias = Callable[[str], None]
"""Hears of what an archive lacks."""

_README: Final = """\
The study '{name}' as iolab stored it, measured on:
{machine}.

report.html    the answer, in any browser; report.xlsx, verdict.json: the same as numbers
study.toml     the question; `iolab run study.toml` asks it of another machine
study.db       every record (SQLite)
facts.json     what the machine was like
commands/      the same trials for fio and IOzone
recordings/    streams of operations that it does again, if it has such
manifest.json  size and SHA-256 of each file

`iolab archive --check FILE` verifies, `iolab report FILE --out DIR` draws the report again,
`iolab archive --extract FILE --out DIR` gives the directory back.
"""


def pack_study(database: Path, services: Services, console: Observer) -> tuple[Manifest, bytes]:
    """Archive of a study that nobody is writing.

    Raises
    ------
    StoreError : it is being written, damaged, or no study.
    """
    with _undisturbed(database), Store.open_reader(database) as store:
        data = drawable(store)
        members = {DATABASE: store.contents.image()}
        members |= _recordings(data, database.parent, services, console.note)
        shown = with_traces(data, database.parent, services)
        members |= made_members(shown, store.contents, services, console.note)
    manifest = Manifest(
        iolab_version(), data.study.study_id, data.study.name, machine_text(data), ()
    )
    manifest = replace(manifest, members=members_of(members))
    return manifest, pack(manifest, members)


def made_members(
    data: StudyData, contents: Contents, services: Services, note: Note
) -> dict[str, bytes]:
    """Members that are a function of the database, but for pictures of traces in the report."""
    members = {"study.toml": data.study.spec_toml.encode(), "facts.json": _facts(data, contents)}
    readme = _README.format(name=data.study.name, machine=machine_text(data))
    members["README.txt"] = readme.encode()
    members |= _commands(data, contents, services, note)
    members |= _reports(data, services, note)
    return members


@contextmanager
def _undisturbed(database: Path) -> Generator[None, None, None]:
    """Keep writers out, as far as this user could be one; makes no file."""
    lock = WriterLock(database)
    file = database.with_name(database.name + ".lock")
    if not os.access(file, os.R_OK | os.W_OK) or distrusted(database.parent):
        yield
        return
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _facts(data: StudyData, contents: Contents) -> bytes:
    document = {
        "machine": machine_text(data),
        "facts": data.facts,
        "varying_facts": data.varying_facts,
        "sessions": contents.sessions(),
    }
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _commands(
    data: StudyData, contents: Contents, services: Services, note: Note
) -> dict[str, bytes]:
    try:
        items = exported_treatments(data, contents, services.load_core())
        found = {f"commands/{file_name(item)}": fio_job(item).encode() for item in items}
        found["commands/iozone.sh"] = iozone_script(items, data.study.name).encode()
    except IolabError as error:
        note(f"iolab: note: the archive has no commands of other programs: {error}")
        return {}
    return found


def _recordings(
    data: StudyData, directory: Path, services: Services, note: Note
) -> dict[str, bytes]:
    """Copies of the recorded streams that lie with the results and are what was measured."""
    members = dict[str, bytes]()
    for _, recording in recordings_of_spec(data.study.spec_toml):
        path = copy_of(directory, recording)
        if is_copy(path, recording, services.load_core()):
            members[str(path.relative_to(directory))] = path.read_bytes()
        else:
            note(
                f"iolab: note: the archive has no copy of the recording {recording.file}: whoever "
                "runs it again needs that file"
            )
    return members


def _reports(data: StudyData, services: Services, note: Note) -> dict[str, bytes]:
    """The report as `iolab report` would write it now; what lies in the directory may be older."""
    try:
        verdict = services.judge(data)
    except AnalysisError as error:
        note(f"iolab: note: the archive has no report, only data: {error}")
        return {}
    with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
        services.write_all(data, verdict, Path(folder))
        return {name: (Path(folder) / name).read_bytes() for name in REPORT_FILES}

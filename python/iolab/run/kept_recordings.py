"""Copies of recorded streams in the results directory, for whoever runs the study elsewhere.

A recording is copied once a trial was measured, if it is small enough; a larger one is named. What
is run is the file at its own place, whose size and digest are compared: the copy is put there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab import units
from iolab.errors import IolabError
from iolab.json_text import read_json
from iolab.pattern import pattern
from iolab.run.attendant import Attendant
from iolab.store.owner import make_directories
from iolab.store.users_files import NOTHING, write_new
from iolab.study.model import DialectWorkload, RecordingIdentity, Study

if TYPE_CHECKING:
    from iolab.protocol import Record
    from iolab.study.entry_plan import RecordingCore
    from iolab.study.plan import Trial

FOLDER: Final = "recordings"
"""Folder of the copies in the results directory."""
COPY_BYTES_MAX: Final = 64 << 20
"""Size of the largest recording that is copied."""
_NAME_MAX: Final = 60
_UNUSUAL: Final = pattern(r"[^A-Za-z0-9._-]")


def copy_of(directory: Path, recording: RecordingIdentity) -> Path:
    """Path of a recording's copy in a results directory, whether or not it is there."""
    name = _UNUSUAL.sub("_", Path(recording.file).name)[-_NAME_MAX:]
    return directory / FOLDER / f"{recording.digest}-{name}"


def is_copy(path: Path, recording: RecordingIdentity, core: RecordingCore) -> bool:
    """Tell whether a file is there and has the size and the digest of a recording."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        found = read_json(core.recording_identity(str(path)))
    except IolabError:
        return False
    return (found["file_bytes"], found["digest"]) == (recording.size_bytes, recording.digest)


def recordings_of(study: Study) -> list[RecordingIdentity]:
    """Recordings of all workloads of a study, each file once."""
    found = {
        one.file: one
        for workload in study.workloads
        if isinstance(workload, DialectWorkload)
        for one in workload.recordings
    }
    return [found[name] for name in sorted(found)]


class KeptRecordings(Attendant):
    """Copies the recordings of a study into its results directory, behind its first trial."""

    def __init__(
        self,
        out_dir: Path,
        recordings: Sequence[RecordingIdentity],
        core: RecordingCore,
        note: Callable[[str], None],
    ) -> None:
        self._out_dir = out_dir
        self._waiting = list(recordings)
        self._core = core
        self._note = note

    def stored(self, trial: Trial, record: Record) -> None:
        """Copy what is not there yet; what cannot be copied is told and left."""
        del trial, record
        while self._waiting:
            recording = self._waiting.pop()
            why = self._kept(recording)
            if why:
                self._note(
                    f"iolab: note: {recording.file} was not copied to the results ({why}): keep "
                    "it, this study cannot be run again without it"
                )

    def _kept(self, recording: RecordingIdentity) -> str:
        """Copy one recording; what was in the way, in words."""
        path = copy_of(self._out_dir, recording)
        if is_copy(path, recording, self._core):
            return ""
        if recording.size_bytes > COPY_BYTES_MAX:
            return f"it is larger than {units.format_bytes(COPY_BYTES_MAX)}"
        try:
            make_directories(path.parent)
            content = Path(recording.file).read_bytes()
            write_new({path: content}, NOTHING)
            if not is_copy(path, recording, self._core):
                path.unlink()
                return "it has changed since the study began"
        except OSError as error:
            return error.strerror or str(error)
        except IolabError as error:
            return error.message
        return ""

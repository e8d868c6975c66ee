"""Statements of an archive beside its database, held against the database.

Who makes an archive makes its digests: a page that shows a script, a job that nobody exported or a
name that another study has would be whole. Nothing of it is believed: all of it can be made again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolab.archive.format import DATABASE, Manifest
from iolab.frozen import frozen, replace
from iolab.library.derived_anew import USUAL_RECORDS, problems_of_values
from iolab.store.machine import machine_text

if TYPE_CHECKING:
    from iolab.archive.read import Inspection
    from iolab.library.services import Services
    from iolab.store.db import Store
    from iolab.store.rows import StudyData

_STUDY_FILE: Final = "study.toml"
_RECORDINGS: Final = "recordings/"
_PAGE: Final = "report.html"


@dataclass
class Claims:
    """Looks at what a manifest says of a study, and at the values that were derived."""

    manifest: Manifest | None
    most: int | None = USUAL_RECORDS
    """Number of records to look at; None are all of them."""
    machine: str | None = None
    """Machine that the database names, once it was looked at."""

    def __call__(self, store: Store, data: StudyData) -> Iterator[str]:
        """Yield what contradicts the database, and values that no record gives."""
        from iolab.run.core import load_core

        self.machine = machine_text(data)
        if self.manifest is not None:
            for what, told, known in (
                ("study_id", self.manifest.study_id, data.study.study_id),
                ("study_name", self.manifest.study_name, data.study.name),
            ):
                if told != known:
                    yield f"the manifest says {what} {told!r}, and the database {known!r}"
        yield from problems_of_values(data, store.contents, load_core(), self.most)

    @property
    def corrected(self) -> Manifest | None:
        """The manifest with the machine of the database: each iolab words it in its own way."""
        if self.manifest is None or self.machine is None:
            return self.manifest
        return replace(self.manifest, machine=self.machine)


@frozen
class MembersAnew:
    """Members of an archive beside its database, as this program makes them."""

    made: Mapping[str, bytes]
    """Content of those that the archive has; recordings are its own, if they are the study's."""
    problems: tuple[str, ...]
    """Contradictions that nothing explains."""
    others: tuple[str, ...]
    """Names of those with another content: another iolab made them, another processor rounded in
    them, or somebody wrote them."""


def members_of_archive(found: Inspection, database: Path, services: Services) -> MembersAnew:
    """Make the members of an archive again and compare them with what it holds.

    Parameters
    ----------
    found : the archive.
    database : copy of its database, of which every part can be read.
    services : the compiled half, the statistics and the pages.
    """
    from iolab.library.packing import made_members
    from iolab.library.stored import drawable
    from iolab.store.db import Store

    with Store.open_reader(database, is_checked=False) as store:
        data = replace(drawable(store), figures=_figures(found))
        own = made_members(data, store.contents, services, _ignored)
    own |= _recordings(found, data, services)
    names = [name for name in found.contents if name != DATABASE]
    problems, others = list[str](), list[str]()
    for name in names:
        content = found.contents[name]
        if own.get(name) == content:
            continue
        if name == _STUDY_FILE or name.startswith(_RECORDINGS):
            problems.append(f"{name} is not what the study in {DATABASE} names")
        else:
            others.append(name)
    made = {name: own[name] for name in names if name in own}
    return MembersAnew(made, tuple(problems), tuple(others))


def _figures(found: Inspection) -> dict[str, str]:
    """Pictures of traces, which lie in no archive: those that were drawn when it was made."""
    from iolab.report.traced_trials import kept_figures

    page = found.contents.get(_PAGE, b"")
    return kept_figures(page.decode(errors="replace"))


def _ignored(_: str) -> None:
    """Hear what an archive lacks, which was told when it was made."""


def _recordings(found: Inspection, data: StudyData, services: Services) -> dict[str, bytes]:
    """Recordings of the archive that the study names, with the size and digest that it names."""
    from iolab.run.kept_recordings import copy_of, is_copy
    from iolab.study.recordings import recordings_of_spec

    kept = dict[str, bytes]()
    for _, recording in recordings_of_spec(data.study.spec_toml):
        name = str(copy_of(Path(), recording))
        if name not in found.contents:
            continue
        with tempfile.TemporaryDirectory(prefix="iolab-") as folder:
            path = Path(folder) / "copy"
            path.write_bytes(found.contents[name])
            if is_copy(path, recording, services.load_core()):
                kept[name] = found.contents[name]
    return kept

"""All treatments of a study for all programs, as the report shows them."""

from __future__ import annotations

from iolab.export.fio import fio_job
from iolab.export.iozone import iozone_lines
from iolab.export.treatments import exported_treatments
from iolab.run.core import Core
from iolab.store.contents import Contents
from iolab.store.rows import ByHand, StudyData


def by_hand(data: StudyData, contents: Contents, core: Core) -> tuple[ByHand, ...]:
    """Translate every treatment.

    Raises
    ------
    StudyError : the stored study cannot be planned again.
    """
    return tuple(
        ByHand(f"{item.trial_id}: {item.name}", fio_job(item), "\n".join(iozone_lines(item)) + "\n")
        for item in exported_treatments(data, contents, core)
    )

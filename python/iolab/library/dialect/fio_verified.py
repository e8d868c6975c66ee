"""Files of verification of fio's jobs: wrong blocks (`verify_dump`), and how far a job has written.

Workers keep the first blocks that are not what was written, in their reports. Here they become
files in the working directory, with fio's names: ``FILE.OFFSET.received`` and
``FILE.OFFSET.expected``, or ``FILE.OFFSET.hdr_fail`` where nothing says what should be there. The
names are known only when a block is wrong: a file of somebody else is left as it is, with a note.

With ``verify_state_save=1`` a file for each clone says how many writes have ended. A later run
reads no more than that (`crates/iolab-dialect/src/fio/verify_state.rs`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Final, cast

from iolab.errors import IolabError, RefusedError
from iolab.library.dialect.files import check_all_written
from iolab.store.users_files import write_file

if TYPE_CHECKING:
    from iolab.library.dialect.plan import DialectPlan
    from iolab.protocol import (
        FioVerifyState,
        FioVerifyStateFile,
        Mismatch,
        PhaseRecord,
        Record,
        ShownByFio,
    )
    from iolab.run.observer import Observer

NAME: Final = "fio"


def _are_asked_for(plan: DialectPlan) -> bool:
    is_fio = plan.dialect == NAME
    return is_fio and cast("ShownByFio", plan.values["show"]).get("are_dumped", False)


def refuse_archived_dumps(plan: DialectPlan, source: Path) -> None:
    """Refuse a command line of an archive that saves blocks: its maker would choose the files.

    Raises
    ------
    RefusedError : there is one.
    """
    from iolab.library.stored import is_archive

    if _are_asked_for(plan) and is_archive(source):
        raise RefusedError(
            f"the command line in {source} saves wrong blocks (verify_dump): nothing was measured",
            "type the command line itself again",
        )


def write_dumps(plan: DialectPlan, record: Record, console: Observer) -> None:
    """Write the wrong blocks of a record, and tell where they are."""
    if not _are_asked_for(plan):
        return
    for phase in record["phases"]:
        for tenant in phase["tenants"]:
            for worker in tenant["workers"]:
                for mismatch in worker.get("mismatches", ()):
                    _write(plan, mismatch, console)


def _contents(mismatch: Mismatch) -> Iterator[tuple[str, str]]:
    """Kind and hexadecimal digits of each file that is made of a wrong block."""
    kept = mismatch.get("kept")
    if kept is None:
        return
    expected = kept.get("expected")
    if expected is None:
        yield "hdr_fail", kept["received"]
        return
    yield "received", kept["received"]
    yield "expected", expected


def _write(plan: DialectPlan, mismatch: Mismatch, console: Observer) -> None:
    kept = mismatch.get("kept")
    for kind, digits in _contents(mismatch):
        assert kept is not None, "its contents are there"
        path = Path(f"{Path(mismatch['file']).name}.{kept['at_bytes']}.{kind}")
        try:
            write_file(path, bytes.fromhex(digits), plan.allowed)
        except (OSError, RefusedError) as error:
            console.note(f"iolab: {kind} data not dumped: {error}")
        else:
            console.note(f"iolab: {kind} data dumped as {quote(str(path))}")


def _states_of(plan: DialectPlan) -> list[FioVerifyStateFile]:
    is_fio = plan.dialect == NAME
    return cast("ShownByFio", plan.values["show"]).get("states", []) if is_fio else []


def check_states(plan: DialectPlan) -> list[Path]:
    """Refuse files of state that cannot or must not be written; returns them.

    Raises
    ------
    IolabError : a file cannot be written.
    RefusedError : a file is there that iolab did not make.
    """
    names = (wanted["file"] for wanted in _states_of(plan))
    return check_all_written(names, plan.allowed, "verify_state_save")


def write_states(plan: DialectPlan, record: Record) -> None:
    """Write how far each clone has come; nothing of a phase that did not run.

    Raises
    ------
    IolabError : a file cannot be written; what was measured is stored all the same.
    RefusedError : a file was made meanwhile that is the user's own.
    """
    for wanted in _states_of(plan):
        writes = _writes(wanted, record["phases"])
        if writes is None:
            continue
        state: FioVerifyState = {**wanted["state"], "writes": writes}
        path = Path(wanted["file"])
        try:
            write_file(path, f"{json.dumps(state)}\n".encode(), plan.allowed)
        except OSError as error:
            raise IolabError(
                f"{path} cannot be written: {error.strerror}", "the results are stored"
            ) from None


def _writes(wanted: FioVerifyStateFile, phases: Sequence[PhaseRecord]) -> int | None:
    """Writes that have ended for certain, all before them, too."""
    if wanted["phase"] >= len(phases):
        return None
    worker = phases[wanted["phase"]]["tenants"][wanted["tenant"]]["workers"][wanted["worker"]]
    writes = worker["write_bytes"] // wanted["state"]["write_bytes"]
    # Behind one that has failed others may have ended.
    return max(0, writes - wanted["depth"]) if worker["errors"] else writes

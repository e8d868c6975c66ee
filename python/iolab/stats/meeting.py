"""Operations of an own and of an imported study that are the same and have different names.

A command line of another program names its operations as its jobs are called; what was imported is
named by what it did, and each option that was printed is a level. Where the two share no operation,
one of each is taken for the same if no other one is of its kind, transfer size and access.
"""

from __future__ import annotations

from collections import defaultdict

from iolab.frozen import replace
from iolab.store.rows import Nature, StudyData


def met(before: StudyData, after: StudyData) -> tuple[StudyData, StudyData]:
    """The two studies, the imported one with the other's names where both did the same.

    Studies of one kind, and those that share an operation, stay as they are.
    """
    if (before.study.kind == "imported") == (after.study.kind == "imported"):
        return before, after
    if _operations(before) & _operations(after):
        return before, after
    if before.study.kind == "imported":
        return _with_names_of(before, after), after
    return before, _with_names_of(after, before)


def _operations(data: StudyData) -> set[str]:
    return {m.operation for m in data.measurements}


def _natures(data: StudyData) -> dict[Nature, set[str]]:
    """Operations of each nature."""
    found: defaultdict[Nature, set[str]] = defaultdict(set)
    for phase in data.phase_details:
        found[phase["nature"]].add(phase["operation"])
    return found


def _with_names_of(imported: StudyData, own: StudyData) -> StudyData:
    theirs, ours = _natures(imported), _natures(own)
    names = {
        next(iter(found)): next(iter(ours[nature]))
        for nature, found in theirs.items()
        if len(found) == 1 and len(ours.get(nature, ())) == 1
    }
    if not names:
        return imported
    # Options that never changed are settings, not levels of a cell.
    factors = imported.study.factors
    held = {name: levels[0] for name, levels in factors.items() if len(levels) == 1}
    study = replace(
        imported.study,
        factors={name: levels for name, levels in factors.items() if name not in held},
        settings=held | imported.study.settings,
    )
    measurements = [
        replace(
            m,
            operation=names.get(m.operation, m.operation),
            levels={name: level for name, level in m.levels.items() if name not in held},
        )
        for m in imported.measurements
    ]
    return replace(imported, study=study, measurements=measurements)

"""Cells in which the compared factor cannot matter, from the study's own file.

They are shown, never pooled, and belong to no family of tests: what cannot differ must neither
dilute a finding nor make another one harder. Where a study carries no file that can be read
(imported tables, older versions) nothing is known here.
"""

from __future__ import annotations

from collections import Counter

from iolab.errors import IolabError
from iolab.store.rows import StudyRow
from iolab.study.influence import inert_parts
from iolab.study.load import parse_study
from iolab.study.treatment import treatments_of

InertCells = frozenset[tuple[str, tuple[tuple[str, str], ...], str]]
"""Workload, levels of the cell, operation; ``""`` is every operation of the workload."""


def inert_cells(study: StudyRow, nested: dict[str, list[str]]) -> InertCells:
    """Find the cells of which no treatment feels the compared factor.

    Parameters
    ----------
    nested : by workload, factors that make no cells of their own.
    """
    factor = study.compared_factor
    if not factor:
        return frozenset()
    try:
        asked = parse_study(study.spec_toml)
        treatments = treatments_of(asked)
    except IolabError:
        return frozenset()
    inert, total = Counter[tuple[str, tuple[tuple[str, str], ...], str]](), Counter[object]()
    for treatment in treatments:
        workload = treatment.workload.name
        skip = {factor, *nested.get(workload, [])}
        levels = tuple(sorted(pair for pair in treatment.levels if pair[0] not in skip))
        total[workload, levels] += 1
        for test in inert_parts(asked, factor, treatment):
            inert[workload, levels, test] += 1
    return frozenset(place for place, n in inert.items() if n == total[place[:2]])

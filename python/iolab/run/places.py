"""Place of each set of files: checked against the places of a testbed, and told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolab.errors import StudyError, TestbedError
from iolab.json_text import read_json
from iolab.study.estimate import cost_of
from iolab.study.plan import Plan
from iolab.wording import counted, nearest

if TYPE_CHECKING:
    from iolab.protocol import FileSet
    from iolab.testbed.model import Testbed


def _sets(plan: Plan) -> Iterator[tuple[str, FileSet]]:
    """Name of the workload and description of each set of files, once each."""
    seen = set[tuple[str, str]]()
    for treatment in plan.treatments:
        if treatment.row is None:
            continue
        for described in read_json(treatment.row.description).get("file_sets", ()):
            key = (treatment.workload.name, described["name"])
            if key not in seen:
                seen.add(key)
                yield key[0], described


def check_places(testbed: Testbed, plan: Plan) -> None:
    """Refuse a study whose sets of files and whose testbed do not agree about places.

    A testbed without further places keeps each place as a directory of its own.

    Raises
    ------
    StudyError : a set names a place that the testbed has not, or a place is not used.
    """
    offered = [place.name for place in testbed.places]
    if not offered:
        return
    used = set[str]()
    for workload, described in _sets(plan):
        place = described.get("place")
        if place is None:
            continue
        if place not in offered:
            raise StudyError(
                f"{workload}: the set of files {described['name']} lies in the place {place}, "
                f"which {testbed.text} has not{nearest(str(place), offered)}",
                f"add it, as in --on {testbed.text},{place}=loop:1g",
            )
        used.add(str(place))
    unused = [name for name in offered if name not in used]
    if unused:
        raise StudyError(
            f"no set of files lies in the place {unused[0]} of {testbed.text}",
            f'give a set place = "{unused[0]}" in its workload file, or leave the place out',
        )


def check_room(testbed: Testbed, plan: Plan, kept_bytes: int) -> None:
    """Refuse a study whose files do not fit, place by place.

    Parameters
    ----------
    kept_bytes : size of files that stay when all is done.

    Raises
    ------
    TestbedError, RefusedError : too little space; says where, and how much would do.
    """
    places = testbed.places
    if not places:
        testbed.check_space(max(plan.round_cost().file_bytes, kept_bytes))
        return
    main, others = 0, dict.fromkeys((place.name for place in places), 0)
    for treatment in plan.treatments:
        demand = treatment.row.demand if treatment.row is not None else None
        total = cost_of(treatment).file_bytes
        if demand is not None:
            # Streams, if there are any beside programs, lie in the main place.
            total += demand.main_bytes - demand.file_bytes
            for name, size in demand.places:
                others[name] = max(others.get(name, 0), size)
        main = max(main, total)
    testbed.check_space(max(main, kept_bytes))
    for place in places:
        try:
            place.testbed.check_space(others[place.name])
        except TestbedError as error:
            hint = error.hint.replace("--on ", f"{place.name}=")
            raise type(error)(f"place {place.name}: {error.message}", hint) from None


def placement_lines(testbed: Testbed, plan: Plan) -> list[str]:
    """Place of each set of files, one line each; none if all lie in the only place."""
    offered = {place.name: place for place in testbed.places}
    sets = list(_sets(plan))
    if not any(described.get("place") for _, described in sets):
        return []
    lines = list[str]()
    for workload, described in sets:
        name = described.get("place")
        place = offered.get(str(name))
        if place is not None:
            where = f"in the place {place.text}"
        elif name is not None:
            where = f"in the directory {name} of {testbed.text}"
        else:
            where = f"on {testbed.request[0]}:{testbed.request[1]}"
        files = counted(described["files"], "file")
        lines.append(f"{workload}: set {described['name']} ({files}) lies {where}")
    return lines

"""Values of a stored study, held against what its records give when they are read again.

Who changes an archive on purpose can change the values that are judged and leave the records, and
make every digest anew. A record is harder to make up: counts, times and histograms belong together.
Left out: imported tables, whose records are rows of text; properties between streams.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from iolab.errors import IolabError
from iolab.run.record import NS_PER_S, QUANTILES, derive, merge_histograms
from iolab.store.cells import understood, unpack_record

if TYPE_CHECKING:
    from iolab.protocol import Histogram, Record, TenantOutcome
    from iolab.run.core import Core
    from iolab.store.contents import Contents
    from iolab.store.derived import DerivedRecord
    from iolab.store.rows import StudyData

Metrics: TypeAlias = Mapping[str, Mapping[str, float]]
"""Value of each metric of each operation."""

TOLERANCE: Final = 1e-6
"""Of processors and mathematical libraries, which round in other ways."""
USUAL_RECORDS: Final = 300
"""Records that are looked at wherever an archive is read, so that a large one is read soon."""
_CHANGED: Final = "what is stored is not what its record gives"


def problems_of_values(
    data: StudyData, contents: Contents, core: Core, most: int | None = None
) -> Iterator[str]:
    """Values that do not come from the record they are stored with.

    Parameters
    ----------
    data, contents : a study of which every part can be read.
    core : the compiled half, which reads histograms.
    most : number of records to look at, spread over all; None are all of them.
    """
    if data.study.kind == "imported":
        return
    connection = contents.connection
    rows = connection.execute("SELECT record_id FROM record WHERE status = 'ok' ORDER BY record_id")
    numbers = [number for (number,) in rows]
    step = 1 if most is None else max(1, math.ceil(len(numbers) / most))
    for number in numbers[::step]:
        yield from _problems_of(number, connection, core)


def _problems_of(number: int, connection: sqlite3.Connection, core: Core) -> Iterator[str]:
    query = "SELECT elapsed_ns, record_zlib FROM record WHERE record_id = ?"
    elapsed_ns, packed = connection.execute(query, (number,)).fetchone()
    record = unpack_record(packed, number)
    try:
        derived = derive(record, core)
    except IolabError as error:
        yield f"table record, row {number}, column record_zlib: {error.message}"
        return
    if (derived.status, derived.elapsed_ns) != ("ok", elapsed_ns):
        yield f"table record, row {number}: {_CHANGED}"
    with understood(number):
        older = _by_older_rules(record)
    yield from _of_measurements(number, connection, derived, older)
    yield from _of_phases(number, connection, derived)
    yield from _of_series(number, connection, derived)


def _of_measurements(
    number: int, connection: sqlite3.Connection, derived: DerivedRecord, older: Metrics
) -> Iterator[str]:
    known: dict[str, Mapping[str, float]] = {row.operation: row.metrics for row in derived.phases}
    query = "SELECT operation, metric, value FROM measurement WHERE record_id = ?"
    for operation, metric, value in connection.execute(query, (number,)):
        place = f"table measurement, row {number} {operation} {metric}"
        if operation not in known:
            yield f"{place}: the record has no such operation"
            continue
        own = known[operation].get(metric)
        # Another iolab may have given what this one leaves out, and between streams more is asked.
        ways = () if own is None else (own, older.get(operation, {}).get(metric))
        if ways and not any(_is_alike(way, value) for way in ways):
            yield f"{place}: {_CHANGED} ({value:g}, and not {own:g})"


def _by_older_rules(record: Record) -> Metrics:
    """Metrics of operations as iolab derived them until schema 4 came.

    A rate was the sum of the workers' own ones, a quantile the upper end of the part of the
    histogram that holds it.
    """
    found = dict[str, dict[str, float]]()
    for phase in record.get("phases") or []:
        tenants, name = phase["tenants"], phase["name"]
        for tenant in tenants:
            own = found[name if len(tenants) == 1 else f"{name}/{tenant['name']}"] = _rates(
                [tenant]
            )
            for prefix, key in (("latency_ns", "service"), ("response_ns", "response")):
                kinds = tenant.get(key) or {}
                own |= _upper_ends([kinds.get("read"), kinds.get("write")], prefix)
            own |= _upper_ends([(tenant.get("service") or {}).get("sync")], "flush_ns")
        if len(tenants) > 1:
            found[f"{name}/all"] = _rates(tenants)
    return found


def _rates(tenants: Sequence[TenantOutcome]) -> dict[str, float]:
    workers = [one for tenant in tenants for one in tenant["workers"] if one["elapsed_ns"]]
    return {
        f"throughput_{unit}_per_s": sum(one[unit] * NS_PER_S / one["elapsed_ns"] for one in workers)
        for unit in ("bytes", "ops")
    }


def _upper_ends(histograms: Sequence[Histogram | None], prefix: str) -> dict[str, float]:
    merged = merge_histograms(histograms)
    if merged is None:
        return {}
    bits, found = merged["sub_bucket_bits"], dict[str, float]()
    for name, quantile, _ in QUANTILES:
        rank, seen = math.ceil(quantile * merged["count"]), 0
        for index, count in merged["counts"]:
            seen += count
            if seen >= rank:
                shift = max(0, (index >> bits) - 1)
                end = ((index - (shift << bits) + 1) << shift) - 1
                found[f"{prefix}_{name}"] = float(min(end, merged["max"]))
                break
    return found


def _of_phases(
    number: int, connection: sqlite3.Connection, derived: DerivedRecord
) -> Iterator[str]:
    known = {row.operation: row.cache_share for row in derived.phases}
    query = "SELECT operation, cache_share FROM phase WHERE record_id = ?"
    for operation, share in connection.execute(query, (number,)):
        if operation not in known:
            yield f"table phase, row {number} {operation}: the record has no such operation"
        elif not _is_alike(known[operation], share):
            yield f"table phase, row {number} {operation}, column cache_share: {_CHANGED}"


def _of_series(
    number: int, connection: sqlite3.Connection, derived: DerivedRecord
) -> Iterator[str]:
    known = {
        part.operation: (part.interval_ns, *map(_text, (part.ops, part.bytes)))
        for part in derived.series
    }
    query = "SELECT operation, interval_ns, ops_json, bytes_json FROM series WHERE record_id = ?"
    for operation, interval_ns, *columns in connection.execute(query, (number,)):
        found = (interval_ns, *("".join(column.split()) for column in columns))
        if known.get(operation) != found:
            yield f"table series, row {number} {operation}: {_CHANGED}"


def _text(values: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, values))}]"


def _is_alike(own: float | None, stored: float | None) -> bool:
    if own is None or stored is None:
        return own is stored
    return math.isclose(own, stored, rel_tol=TOLERANCE, abs_tol=TOLERANCE)

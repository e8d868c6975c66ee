"""Print the last screen of the demo: the answers, a table of them, and what to type next.

    python tools/demo_answer.py STUDY_DIRECTORY...

At most 25 lines for one study; all of it comes from the study's verdict.json.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

WIDTH: Final = 79
STREAMS_MAX: Final = 2
"""More do not fit into a line."""
_FAR_APART: Final = "far_apart"
_CAUSE: Final = "The cause in the model"
_MEDIAN: Final = "latency_ns_p50"
_RATE: Final = "throughput_bytes_per_s"


def answer(directory: Path) -> list[str]:
    """Lines about one study."""
    verdict: dict[str, Any] = json.loads((directory / "verdict.json").read_text())
    lines = textwrap.wrap(verdict["sentence"], WIDTH)
    rows = table(verdict)
    if rows:
        lines += ["", *aligned(rows)]
    lines += [line for cause in causes(verdict) for line in ("", *textwrap.wrap(cause, WIDTH))]
    return [*lines, "", f"report:  {directory}/report.html"]


def causes(verdict: dict[str, Any]) -> list[str]:
    """Sentences of a simulation about the mechanism behind its largest difference."""
    said = [row["message"] for row in verdict["caveats"] if row["code"] == _FAR_APART]
    return [part for text in said for part in text.split(". ") if part.startswith(_CAUSE)]


def table(verdict: dict[str, Any]) -> list[list[str]]:
    """Median time and rate of up to two operations, a row per level; otherwise nothing."""
    values: dict[tuple[str, str, str], float] = {
        (row["operation"], row["metric"], row["level"]): row["value"]
        for row in verdict["treatments"]
        if row["metric"] in (_MEDIAN, _RATE)
    }
    factor = verdict["compared_factor"]
    streams = list(dict.fromkeys(name for name, metric, _ in values if metric == _MEDIAN))
    if len(verdict["study"]["workloads"]) > 1 or not 1 <= len(streams) <= STREAMS_MAX:
        return []
    names = [name.rpartition("/")[2] for name in streams]
    rows = [[factor, *(f"{name}: {what}" for name in names for what in ("median", "rate"))]]
    for level in verdict["study"]["factors"][factor]:
        cells = [
            shown(values.get((stream, metric, level)), metric)
            for stream in streams
            for metric in (_MEDIAN, _RATE)
        ]
        rows.append([level, *cells])
    return rows


def shown(value: float | None, metric: str) -> str:
    """Value with its unit, three digits."""
    if value is None:
        return "-"
    if metric == _MEDIAN:
        return f"{value / 1e6:.3g} ms"
    unit, size = ("MiB", 1 << 20) if value >= 1 << 20 else ("KiB", 1 << 10)
    return f"{value / size:.3g} {unit}/s"


def aligned(rows: list[list[str]]) -> list[str]:
    """Rows as columns of equal width, the first to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print("\n".join(answer(Path(name))))

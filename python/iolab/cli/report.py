"""``iolab report``: judge and draw a stored study again."""

from __future__ import annotations

import argparse
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.finish import find_database, show_results
from iolab.cli.services import Services
from iolab.errors import StudyError
from iolab.store.db import Store
from iolab.study.factors import nearest
from iolab.study.metric_names import parse_metric

NAME = "report"
HELP = "show the results of a study again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("results", metavar="DIR", help="what --out named")
    parser.add_argument("--out", metavar="DIR", help="write the report elsewhere")
    parser.add_argument("--strict", action="store_true", help="exit 4 if undecided")
    parser.add_argument("--metric", metavar="METRIC", help="judge by another metric, as in p99")
    parser.add_argument("--metric-of", metavar="PART", help="stream or test whose metric it is")


def execute(arguments: argparse.Namespace, services: Services, console: Console) -> int:
    """Write the report and print the answer; also works while the study still runs."""
    database = find_database(Path(arguments.results))
    out_dir = Path(arguments.out) if arguments.out else database.parent
    asked = dict[str, str | None]()
    try:
        if arguments.metric is not None:
            asked = {"metric": parse_metric(arguments.metric), "metric_of": None}
    except ValueError as error:
        raise StudyError(f"--metric: {error}", "see docs/reference/metrics.md") from None
    if arguments.metric_of is not None:
        asked["metric_of"] = _checked_part(database, arguments.metric_of)
    return show_results(
        database, out_dir, services, console, is_strict=arguments.strict, asked=asked
    )


def _checked_part(database: Path, part: str) -> str:
    """Name of a stream or test that was measured."""
    with Store.open_reader(database) as store:
        operations = dict.fromkeys(m.operation for m in store.load_data().measurements)
    parts = list(dict.fromkeys(name.rpartition("/")[2].partition("@")[0] for name in operations))
    if part not in parts:
        raise StudyError(
            f"--metric-of: '{part}' was not measured{nearest(part, parts)}",
            f"measured were {', '.join(parts)}",
        )
    return part

"""From a store to what the user sees: the sentence, the table, and where the files lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from iolab.cli.console import Console
from iolab.cli.services import Services
from iolab.errors import IolabError
from iolab.store.db import STORE_NAME, Store
from iolab.store.owner import give_to_user, make_directories

EXIT_UNDECIDED = 4


def show_results(  # noqa: PLR0913 - files, helpers, and two wishes
    database: Path,
    out_dir: Path,
    services: Services,
    console: Console,
    *,
    is_strict: bool = False,
    asked: Mapping[str, str | None] | None = None,
) -> int:
    """Judge, write the reports, print the answer; returns the exit code.

    The rendered text begins with the verdict's sentence. `asked` may name another `metric`, and
    whose it is (`metric_of`), than the study did.

    Raises
    ------
    AnalysisError : the stored trials do not allow a verdict.
    """
    with Store.open_reader(database) as store:
        data = store.load_data()
    if asked:
        data = replace(data, study=replace(data.study, **asked))
    verdict = services.judge(data)
    try:
        make_directories(out_dir)
        paths = services.write_all(data, verdict, out_dir)
    except OSError as error:
        raise IolabError(
            f"the report cannot be written to {out_dir}: {error}", "name another one with --out"
        ) from None
    give_to_user(paths.html, paths.xlsx, paths.verdict_json)
    console.result(services.render(data, verdict, console.width).rstrip("\n"))
    console.result()
    for label, path in (
        ("report", paths.html),
        ("workbook", paths.xlsx),
        ("verdict", paths.verdict_json),
        ("data", database),
    ):
        console.result(f"{label + ':':10}{path}")
    return EXIT_UNDECIDED if is_strict and verdict.headline_word == "undecided" else 0


def find_database(path: Path) -> Path:
    """Database of a results directory, or the database itself."""
    return path / STORE_NAME if path.is_dir() or path.suffix != ".db" else path

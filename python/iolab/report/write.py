"""Write all files of a report, each whole or not at all."""

from __future__ import annotations

from pathlib import Path

from iolab.errors import AnalysisError
from iolab.frozen import frozen
from iolab.stats.verdict import StudyVerdict
from iolab.store.folder import Folder
from iolab.store.rows import StudyData


@frozen
class ReportPaths:
    """Paths of the report."""

    html: Path
    xlsx: Path
    verdict_json: Path


def write_all(data: StudyData, verdict: StudyVerdict, out_dir: Path | str) -> ReportPaths:
    """Write ``report.html``, ``report.xlsx`` and ``verdict.json`` into `out_dir`.

    Files that exist are replaced, each in one step.

    Raises
    ------
    AnalysisError : the directory or a file in it cannot be written; carries the path.
    """
    from iolab.report.collect import draw_all
    from iolab.report.html import render_html
    from iolab.report.verdict_json import render_json
    from iolab.report.xlsx import render_xlsx

    folder = Path(out_dir)
    paths = ReportPaths(folder / "report.html", folder / "report.xlsx", folder / "verdict.json")
    charts = draw_all(data, verdict)
    contents = {
        paths.html: render_html(data, verdict, charts).encode(),
        paths.xlsx: render_xlsx(data, verdict, charts),
        paths.verdict_json: render_json(data, verdict).encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Folder.opened(folder) as opened:
            for path, content in contents.items():
                opened.replace(path.name, content)
    except OSError as error:
        raise AnalysisError(
            f"the report cannot be written to {error.filename or folder}: {error.strerror}",
            "choose another directory with --out",
        ) from error
    return paths

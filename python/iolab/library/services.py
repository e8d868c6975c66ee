"""Functions that commands call outside the light part of the package, imported only when called.

Judging and drawing pull in numpy and scipy, and the extension is compiled: ``iolab --help`` must
not wait for any of them. Tests hand in stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from iolab.frozen import frozen
from iolab.run.core import Core, load_core

if TYPE_CHECKING:
    from iolab.report.write import ReportPaths
    from iolab.run.prepare import Analysis
    from iolab.stats.verdict import Comparison, StudyVerdict
    from iolab.store.rows import StudyData


def _judge(data: StudyData) -> StudyVerdict:
    from iolab.stats.judge import judge

    return judge(data)


def _rounds_for_width(headline: Sequence[Comparison], width: float) -> int | None:
    from iolab.stats.width import rounds_for_width

    return rounds_for_width(headline, width)


def _write_all(data: StudyData, verdict: StudyVerdict, out_dir: Path) -> ReportPaths:
    from iolab import report

    return report.write_all(data, verdict, out_dir)


def _render(data: StudyData, verdict: StudyVerdict, width: int) -> str:
    from iolab.report import terminal

    return terminal.render(data, verdict, width=width)


def _brief(data: StudyData, verdict: StudyVerdict, width: int, place: str, again: str) -> str:
    from iolab.report import brief

    return brief.render_brief(data, verdict, place, again, width=width)


def _markdown(data: StudyData, verdict: StudyVerdict) -> str:
    from iolab.report import markdown

    return markdown.render_markdown(data, verdict)


def _json(data: StudyData, verdict: StudyVerdict) -> str:
    from iolab.report import verdict_json

    return verdict_json.render_json(data, verdict)


@frozen
class Services:
    """The heavy halves, replaceable."""

    load_core: Callable[[], Core] = load_core
    judge: Callable[[StudyData], StudyVerdict] = _judge
    write_all: Callable[[StudyData, StudyVerdict, Path], ReportPaths] = _write_all
    render: Callable[[StudyData, StudyVerdict, int], str] = _render
    brief: Callable[[StudyData, StudyVerdict, int, str, str], str] = _brief
    markdown: Callable[[StudyData, StudyVerdict], str] = _markdown
    json: Callable[[StudyData, StudyVerdict], str] = _json

    @property
    def analysis(self) -> Analysis:
        """Analysis that a run asks of the statistics."""
        from iolab.run.prepare import Analysis

        return Analysis(self.judge, _rounds_for_width)

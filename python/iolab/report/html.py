"""The report as one self-contained HTML page: no script, nothing loaded from anywhere.

The first screen answers in ten seconds: question, verdict, ratios, trust. Below: verdict tables,
the other charts, throughput mode, caveats, environment, methods, the study file.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files

from iolab import units
from iolab.frozen import replace
from iolab.report.appendix import configuration, environment, raw_data
from iolab.report.both_units import is_same, merged, switch
from iolab.report.collect import (
    DrawnChart,
    draw_all,
    kind_figures,
    throughput_mode,
)
from iolab.report.device_work import work_part
from iolab.report.figures import by_figure, figure
from iolab.report.findings import page_blocks, page_list
from iolab.report.first_page import answer_part, trust_box
from iolab.report.markup import Markup, join, tag
from iolab.report.methods import citation_bibtex, methods_paragraph
from iolab.report.parts import CONTENTS, Part, contents, drawn_parts
from iolab.report.secondary_tables import closer_parts
from iolab.report.streams import NOTE, stream_table
from iolab.report.tables import cell_table, data_table, plain_table, verdict_table
from iolab.report.traced_trials import trace_parts
from iolab.stats.judge import said_again
from iolab.stats.methods import METHODS
from iolab.stats.sentence import kind_word, margin_text
from iolab.stats.verdict import StudyVerdict
from iolab.store.continuing import FILE, command_again
from iolab.store.machine import machine_text
from iolab.store.rows import StudyData
from iolab.units import System
from iolab.wording import sentence_case

COMPARISONS_SHOWN = 24
BY_HAND_MAX = 12
BY_HAND_CHARACTERS_MAX = 40_000
"""More would be most of the page; an archive and `--export` have all of them."""
SECURITY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render_html(data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]) -> str:
    """Compose the page.

    Parameters
    ----------
    data, verdict : one judged study.
    charts : what `draw_all` built from them, in the units shown now (`iolab.units`).
    """
    return whole_page(_title(data), _in_both_units(data, verdict, charts))


def whole_page(title: str, content: Markup) -> str:
    """Compose a page that needs nothing but itself."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=SECURITY),
        tag("title", title),
        tag("style", Markup(style_sheet())),
    )
    body = tag("body", content)
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def style_sheet() -> str:
    """Style sheet of all pages."""
    return files("iolab.report").joinpath("templates/page.css").read_text(encoding="utf-8")


def _in_both_units(data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]) -> Markup:
    """Draw the page in the units shown now and in the others, with a switch between them."""
    first = units.shown()
    drawings: dict[System, Markup] = {first: _content(data, verdict, charts)}
    for other in units.SYSTEMS:
        if other != first:
            with units.shown_in(other):
                again = said_again(data, verdict)
                drawings[other] = _content(data, again, draw_all(data, again))
    if is_same(drawings):
        return drawings[first]
    buttons, labels = switch(first)
    return join(buttons, labels, merged(drawings, first))


def _content(data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]) -> Markup:
    first, whole = _first_page(data, verdict, charts)
    parts = _sections(data, verdict, charts, whole)
    return join(
        tag("div", first, class_="first"),
        contents(parts),
        tag("main", *drawn_parts(parts)),
        _footer(data),
    )


def _title(data: StudyData) -> str:
    kind = kind_word(data.study)
    return f"iolab: {data.study.name}" + (f" ({kind})" if kind else "")


def kind_box(data: StudyData) -> Markup | None:
    """Draw the band that nobody can overlook: nothing below was measured on a real device."""
    figures = kind_figures(data)
    if not figures:
        return None
    if data.study.kind == "imported":
        said = " ".join(sentence_case(text) for _, text in figures[1:])
        return tag("p", tag("b", "Not measured by iolab. "), said, class_="kind")
    return tag("p", tag("b", "Simulated. "), *(text for _, text in figures[1:]), class_="kind")


def _first_page(
    data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]
) -> tuple[Markup, Markup | None]:
    """Return the first page, and the whole verdict table if it shows only a part."""
    first = {drawn.row.name: drawn.built for drawn in charts if drawn.row.first_screen}
    below, whole = answer_part(data, verdict, first.get("forest", ())[:1])
    page = join(
        tag(
            "header",
            tag("a", "Contents", href=f"#{CONTENTS}", class_="to-contents"),
            tag("h1", data.study.name),
            tag("p", question(data), class_="question"),
        ),
        kind_box(data),
        tag("p", verdict.sentence, class_=f"verdict {verdict.headline_word}"),
        below,
        trust_box(data, verdict, first.get("run_order", ())),
    )
    return page, whole


def question(data: StudyData) -> str:
    """Say what was asked, in one sentence."""
    study = data.study
    factor = study.compared_factor.replace("_", " ")
    levels = study.factors.get(study.compared_factor, [])
    names = ", ".join(levels) if len(levels) <= 8 else f"{len(levels)} levels"
    kind = " (simulated)" if study.is_simulated else ""
    where = f"testbed {study.testbed}{kind}"
    if study.kind == "imported":
        where = f"imported from {study.testbed.removeprefix('imported:')}"
    if not study.is_comparison:
        what = f"does {factor} = {study.baseline}" if factor else "does one configuration"
        return (
            f"What {what} do? Nothing is compared; workloads:"
            f" {', '.join(study.workloads)}; {where}."
        )
    return (
        f"Is another level of {factor} better than {study.baseline}? Compared: {names}; workloads:"
        f" {', '.join(study.workloads)}; {where}; differences below"
        f" {margin_text(study.margin)} do not matter."
    )


def _sections(
    data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart], whole: Markup | None
) -> list[Part]:
    pictures = _pictures(data, charts)
    parts = [_verdicts(verdict, whole)] if verdict.compared_factor else []
    parts += pictures["main"]
    parts += [part for part in (work_part(data, verdict),) if part is not None]
    parts += trace_parts(data)
    streams = stream_table(verdict)
    if streams is not None:
        note = tag("p", NOTE, class_="soft")
        parts.append(Part("Streams", join(plain_table(streams.columns, streams.rows), note)))
    parts += [Part(title, content) for title, content in page_blocks(data, verdict, charts)]
    threads = throughput_mode(data)
    if threads is not None:
        parts.append(Part("Throughput mode", data_table(threads, "throughput_mode")))
    has_caveats = len(verdict.caveats) > 0
    parts.append(Part("Caveats", page_list(verdict), is_open=has_caveats))
    parts += [replace(part, is_open=False) for part in pictures["annex"]]
    if verdict.cells:
        note = tag("p", f"{len(verdict.cells)} comparisons.", class_="soft")
        cells = join(note, cell_table(verdict))
        parts.append(Part("Single cells (exploratory)", cells, is_open=False))
    closer = closer_parts(verdict)
    if closer:
        content = join(*(content for _, content in closer))
        parts.append(Part("A closer look", content, is_open=False))
    return parts + [replace(part, is_open=False) for part in _annex(data, verdict)]


def _annex(data: StudyData, verdict: StudyVerdict) -> list[Part]:
    """Collect what is needed to repeat or to cite the study."""
    titles = {"simulated": "Simulated stack", "imported": "What the table says of itself"}
    title = titles.get(data.study.kind, "Environment")
    methods = tag("p", methods_paragraph(data, verdict))
    parts = [
        Part(title, environment(data)),
        Part("Configuration", configuration(data)),
        Part("Methods", join(methods, _method_list(verdict))),
        Part("Raw data", raw_data(data)),
        Part("Cite this study", tag("pre", citation_bibtex(data))),
    ]
    if data.study.kind == "imported":
        return parts
    first = "Type: " if data.study.command else f"Save as {FILE} and type: "
    typed = tag("p", first, tag("code", command_again(data.study)))
    parts.append(Part("Reproduce", join(typed, tag("pre", data.study.spec_toml))))
    if data.by_hand:
        parts.append(Part("The same by hand", join(*_by_hand(data))))
    return parts


def _verdicts(verdict: StudyVerdict, whole: Markup | None) -> Part:
    """Draw all comparisons, and where they point different ways."""
    n = len(verdict.pooled) + len(verdict.secondary)
    table = verdict_table(verdict)
    if n > COMPARISONS_SHOWN:
        table = tag("details", tag("summary", f"{n} comparisons"), table)
    trade_offs = None
    if verdict.trade_offs:
        listed = tag("ul", *(tag("li", t) for t in verdict.trade_offs))
        if len(verdict.trade_offs) > COMPARISONS_SHOWN:
            summary = f"{len(verdict.trade_offs)} sentences"
            listed = tag("details", tag("summary", summary), listed)
        trade_offs = join(tag("h3", "Other metrics and cells"), listed)
    if whole is not None:
        whole = tag("details", tag("summary", "every level of every workload"), whole)
    return Part("Verdicts", join(*(p for p in (whole, table, trade_offs) if p is not None)))


def _pictures(data: StudyData, charts: list[DrawnChart]) -> dict[str, list[Part]]:
    """Draw every figure that is not on the first page; those of the annex apart."""
    parts: dict[str, list[Part]] = {"main": [], "annex": []}
    for drawn in charts:
        row = drawn.row
        if row.first_screen == "all figures":
            continue
        built = drawn.built[1:] if row.first_screen == "first figure" else drawn.built
        for views in by_figure(built):
            is_annexed = row.is_annexed or views[0].name in row.annexed
            where = parts["annex" if is_annexed else "main"]
            is_open = not views[0].is_folded
            where.append(Part(views[0].title, figure(views), is_open=is_open))
    return parts


def _by_hand(data: StudyData) -> list[Markup]:
    """Return the treatments for fio and IOzone, if they are few enough to be read."""
    note = (
        "Comments that begin with 'no equivalent:' say what the other program does differently."
        " iolab archive --export fio (or iozone) writes these files."
    )
    n_characters = sum(len(block.fio) + len(block.iozone) for block in data.by_hand)
    if len(data.by_hand) > BY_HAND_MAX or n_characters > BY_HAND_CHARACTERS_MAX:
        return [tag("p", f"{len(data.by_hand)} treatments are too many to show here. {note}")]
    blocks = (
        tag(
            "details",
            tag("summary", block.title),
            tag("h3", "fio"),
            tag("pre", block.fio),
            tag("h3", "IOzone"),
            tag("pre", block.iozone),
        )
        for block in data.by_hand
    )
    return [tag("p", note, class_="soft"), *blocks]


def _method_list(verdict: StudyVerdict) -> Markup:
    """Name the procedures that something on the page rests on, no others."""
    used = (m for m in METHODS if m.used_for != "planning" and m.is_used(verdict))
    return tag("ul", *(tag("li", f"{m.does} ({m.source})") for m in used))


def _footer(data: StudyData) -> Markup:
    study = data.study
    made = datetime.fromtimestamp(study.created_at_unix_ns / 1e9, tz=UTC)
    verb = "imported" if study.kind == "imported" else "planned"
    return tag(
        "footer",
        tag(
            "p",
            f"Study {study.study_id}, {verb} {made:%Y-%m-%d %H:%M} UTC, plan {study.plan_digest},"
            f" iolab {study.iolab_version}. Measured on {machine_text(data)}.",
            class_="soft",
        ),
    )

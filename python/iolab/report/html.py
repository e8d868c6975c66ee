"""The report as one self-contained HTML page: no script, nothing loaded from anywhere.

The first screen answers in ten seconds: question, verdict, ratios, trust. Below: verdict tables,
the other charts, throughput mode, caveats, environment, methods, the study file.
"""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files

from iolab.report.chart import ChartSpec, Table
from iolab.report.closer_tables import closer_parts
from iolab.report.collect import (
    DrawnChart,
    kind_figures,
    throughput_mode,
    trust_figures,
)
from iolab.report.markup import Markup, join, tag
from iolab.report.streams import NOTE, ONE_RUN, change_table, stream_table
from iolab.report.svg import render_svg
from iolab.report.tables import cell_table, data_table, facts_tables, plain_table, verdict_table
from iolab.stats.methods import METHODS
from iolab.stats.sentence import kind_word, margin_text, source_text
from iolab.stats.verdict import StudyVerdict
from iolab.store.machine import machine_text
from iolab.store.rows import StudyData

CAVEATS_ON_FIRST_PAGE = 6
BY_HAND_MAX = 12
BY_HAND_CHARACTERS_MAX = 40_000
"""More would be most of the page; an archive and `--export` have all of them."""
SECURITY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def render_html(data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]) -> str:
    """Compose the page.

    Parameters
    ----------
    data, verdict : one judged study.
    charts : what `draw_all` built from them.
    """
    style = files("iolab.report").joinpath("templates/page.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=SECURITY),
        tag("title", _title(data)),
        tag("style", Markup(style)),
    )
    body = tag(
        "body",
        _first_page(data, verdict, charts),
        tag("main", *_sections(data, verdict, charts)),
        _footer(data),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _title(data: StudyData) -> str:
    kind = kind_word(data.study)
    return f"iolab: {data.study.name}" + (f" ({kind})" if kind else "")


def _kind_box(data: StudyData) -> Markup | None:
    """Draw the band that nobody can overlook: nothing below was measured on a real device."""
    figures = kind_figures(data)
    if not figures:
        return None
    if data.study.kind == "imported":
        said = " ".join(text[:1].upper() + text[1:] for _, text in figures[1:])
        return tag("p", tag("b", "Not measured by iolab. "), said, class_="kind")
    return tag("p", tag("b", "Simulated. "), *(text for _, text in figures[1:]), class_="kind")


def _first_page(data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]) -> Markup:
    first = {drawn.row.name: drawn.specs for drawn in charts if drawn.row.is_first_page}
    forest = first.get("forest", ())[:1]
    return join(
        tag("header", tag("h1", data.study.name), tag("p", question(data), class_="question")),
        _kind_box(data),
        tag("p", verdict.sentence, class_=f"verdict {verdict.headline_word}"),
        *(_figure(spec) for spec in forest),
        _trust_box(data, verdict, first.get("run_order", ())),
    )


def question(data: StudyData) -> str:
    """Say what was asked, in one sentence."""
    study = data.study
    factor = study.compared_factor
    levels = study.factors.get(study.compared_factor, [])
    names = ", ".join(levels) if len(levels) <= 8 else f"{len(levels)} levels"
    kind = " (simulated)" if study.kind == "simulated" else ""
    where = f"testbed {study.testbed}{kind}"
    if study.kind == "imported":
        where = f"imported from {study.testbed.removeprefix('imported:')}"
    if not study.is_comparison:
        return (
            f"What does {factor} = {study.baseline} do? Nothing is compared; workloads:"
            f" {', '.join(study.workloads)}; {where}."
        )
    return (
        f"Which {factor} is better than {study.baseline}? Compared: {names}; workloads:"
        f" {', '.join(study.workloads)}; {where}; differences below"
        f" {margin_text(study.margin)} do not matter."
    )


def _trust_box(data: StudyData, verdict: StudyVerdict, order: tuple[ChartSpec, ...]) -> Markup:
    figures = (
        tag("div", tag("dt", label), tag("dd", value))
        for label, value in trust_figures(data, verdict)
    )
    items = [
        tag("li", f"{c.message[:1].upper()}{c.message[1:]}", _times(c.count))
        for c in verdict.caveats[:CAVEATS_ON_FIRST_PAGE]
    ]
    rest = len(verdict.caveats) - len(items)
    if rest:
        items.append(tag("li", f"{rest} more below."))
    return tag(
        "section",
        tag("h3", "How far to trust this"),
        tag("dl", *figures),
        *(_figure(spec) for spec in order),
        tag("ul", *items) if items else tag("p", "No caveats.", class_="soft"),
        class_="trust",
    )


def _times(count: int) -> Markup | None:
    return tag("span", f" ({count} times)", class_="soft") if count > 1 else None


def _sections(data: StudyData, verdict: StudyVerdict, charts: list[DrawnChart]) -> list[Markup]:
    parts = [_section("Verdicts", verdict_table(verdict))]
    if verdict.trade_offs:
        parts.append(_section("Trade-offs", tag("ul", *(tag("li", t) for t in verdict.trade_offs))))
    for drawn in charts:
        if drawn.row.name == "run_order":
            continue
        for spec in drawn.specs[1:] if drawn.row.name == "forest" else drawn.specs:
            parts.append(_section(spec.title, _figure(spec)))
    if verdict.cells:
        parts.append(_section("Single cells (exploratory)", cell_table(verdict)))
    streams, changes = stream_table(verdict), change_table(verdict)
    if streams is not None:
        note = tag("p", NOTE, class_="soft")
        parts.append(_section("Streams", join(plain_table(streams.columns, streams.rows), note)))
    if changes is not None:
        parts.append(_section("Changed while it ran", _change_section(data, changes)))
    closer = closer_parts(verdict)
    if closer:
        parts.append(_section("A closer look", *(content for _, content in closer)))
    threads = throughput_mode(data)
    if threads is not None:
        parts.append(_section("Throughput mode", data_table(threads, "throughput_mode")))
    parts.append(_section("Caveats", _caveats(verdict)))
    titles = {"simulated": "Simulated stack", "imported": "What the table says of itself"}
    environment = titles.get(data.study.kind, "Environment")
    parts.append(_section(environment, facts_tables(data), _settings(data)))
    parts.append(_section("Methods", *_methods(data, verdict)))
    if data.study.kind == "imported":
        return parts
    parts.append(
        _section(
            "Reproduce",
            tag("p", "Save as study.toml and type: ", tag("code", "iolab run study.toml")),
            tag("pre", data.study.spec_toml),
        )
    )
    if data.by_hand:
        parts.append(_section("The same by hand", *_by_hand(data)))
    return parts


def _change_section(data: StudyData, changes: Table) -> Markup:
    """Draw what changed, before and after, and when the changes really happened."""
    late = [(mark.began_ns - mark.asked_ns) / 1e6 for mark in data.marks]
    took = [(mark.done_ns - mark.began_ns) / 1e6 for mark in data.marks]
    note = (
        f"{len(data.marks)} changes; they began at most {max(late):.3g} ms late and took at most"
        f" {max(took):.3g} ms. Segments include the moment of switching. Where there is no"
        f" interval, {ONE_RUN}: anything else that happened then looks the same."
    )
    return join(plain_table(changes.columns, changes.rows), tag("p", note, class_="soft"))


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


def _section(title: str, *content: Markup) -> Markup:
    return tag("section", tag("h2", title), *content)


def _figure(spec: ChartSpec) -> Markup:
    return tag(
        "figure",
        tag("figcaption", spec.caption),
        render_svg(spec),
        data_table(spec.table, spec.name),
        id=spec.name,
    )


def _caveats(verdict: StudyVerdict) -> Markup:
    if not verdict.caveats:
        return tag("p", "None.")
    return tag(
        "ul",
        *(
            tag(
                "li",
                tag("b", c.code.replace("_", " ")),
                f": {c.sentences}",
                _times(c.count),
            )
            for c in verdict.caveats
        ),
    )


def _settings(data: StudyData) -> Markup:
    rows = tuple(
        [
            (name, ", ".join(levels), "varied" if len(levels) > 1 else "named")
            for name, levels in data.study.factors.items()
        ]
        + [(name, level, "held") for name, level in data.study.settings.items()]
    )
    return join(tag("h3", "Factors and settings"), plain_table(("name", "levels", "role"), rows))


def _methods(data: StudyData, verdict: StudyVerdict) -> list[Markup]:
    """Return the methods paragraph, ready to be quoted, and the sources."""
    study, trials = data.study, verdict.trials
    if study.kind == "imported":
        return [tag("p", _methods_of_table(data)), _method_list()]
    kind = "a real stack"
    if study.kind == "simulated":
        kind = "a simulated stack (deterministic: rounds differ only by seed)"
    text = (
        f"{study.rounds_planned} rounds were planned, each running every treatment once in a fresh"
        " random order (hard-to-change factors as whole plots of their own random order; seed"
        f" {study.seed}) on {kind}, testbed {study.testbed}; {trials.ok} of {trials.planned}"
        " planned trials finished. The unit of analysis is one trial, never one I/O. Levels of"
        f" {study.compared_factor} were compared with {study.baseline} by the ratio of their"
        " values, paired by round inside each cell and averaged over cells on the ln scale;"
        " intervals are Student's t over rounds. A verdict is 'same' if the 90 % interval lies"
        f" within ±{margin_text(study.margin)} (as a ratio), 'trivial' if it does and the 95 %"
        " interval excludes 1, 'better' or 'worse' if the 95 % interval lies wholly beyond the"
        " margin, else 'undecided'. Buffered and direct results are never pooled."
    )
    return [tag("p", text), _method_list()]


def _methods_of_table(data: StudyData) -> str:
    study = data.study
    return (
        f"{source_text(study)}; iolab measured nothing of it. The unit of analysis is one run."
        f" Levels of {study.compared_factor} were compared with {study.baseline} by the ratio of"
        " their values on the ln scale, as two independent samples of runs (Welch's t), since"
        " nobody knows the order of the runs; for the pooled comparison the cells of a run were"
        " averaged first. A verdict is 'same' if the 90 % interval lies within"
        f" ±{margin_text(study.margin)} (as a ratio), 'trivial' if it does and the 95 % interval"
        " excludes 1, 'better' or 'worse' if the 95 % interval lies wholly beyond the margin, else"
        " 'undecided'. Printed means are not runs: they were checked against the runs."
    )


def _method_list() -> Markup:
    return tag(
        "ul", *(tag("li", f"{m.does} ({m.source})") for m in METHODS if m.used_for != "planning")
    )


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

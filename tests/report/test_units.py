"""Amounts of bytes in powers of 1024 and of 1000: every renderer, every figure, one choice."""

from __future__ import annotations

import functools
import json
import math
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from types import ModuleType
from xml.etree import ElementTree

import pytest

from iolab import units
from iolab.report.both_units import is_same, merged
from iolab.report.chart import Axis, ChartSpec, Table
from iolab.report.collect import DrawnChart, draw_all, throughput_mode
from iolab.report.html import render_html
from iolab.report.markdown import render_markdown
from iolab.report.markup import Markup, tag
from iolab.report.scale import make_scale
from iolab.report.shown_text import shown_text
from iolab.report.terminal import render
from iolab.report.verdict_json import render_json
from iolab.report.xlsx import render_xlsx
from iolab.stats.judge import judge, said_again
from iolab.stats.metrics import METRIC_BY_NAME
from iolab.stats.verdict import StudyVerdict
from iolab.store.machine import readable_fact
from iolab.store.rows import StudyData

IEC, SI = r"\b[KMGT]iB\b", r"\b[kMGT]B\b"
SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
WRONG: dict[units.System, str] = {"iec": SI, "si": IEC}
STUDIES = ("demo", "record_sizes", "factorial", "simulated", "published_d2", "alone", "surfaces")


@pytest.fixture(scope="module", params=STUDIES)
def name(request: pytest.FixtureRequest) -> str:
    """Give the name of each canned study in turn."""
    return request.param


@pytest.fixture(scope="module")
def study(name: str, canned: ModuleType) -> StudyData:
    """Give each canned study in turn."""
    return getattr(canned, name)()


Drawn = tuple[StudyVerdict, list[DrawnChart], str]
Drawer = Callable[[str, units.System], Drawn]


@pytest.fixture(scope="module")
def drawn(canned: ModuleType) -> Drawer:
    """Return a function that judges and draws a canned study once in each system of units."""

    @functools.lru_cache(maxsize=len(units.SYSTEMS))
    def make(name: str, system: units.System) -> Drawn:
        study = getattr(canned, name)()
        with units.shown_in(system):
            verdict = judge(study)
            charts = draw_all(study, verdict)
            return verdict, charts, render_html(study, verdict, charts)

    return make


@pytest.mark.parametrize(
    ("value", "iec", "si"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1000 B", "1 kB"),
        (1024, "1 KiB", "1.02 kB"),
        (1023 << 10, "1023 KiB", "1.05 MB"),
        (1_500_000_000, "1.4 GiB", "1.5 GB"),
        (3 << 40, "3 TiB", "3.3 TB"),
    ],
)
def test_sizes_for_reading(value: int, iec: str, si: str) -> None:
    assert units.format_bytes_rounded(value) == iec
    with units.shown_in("si"):
        assert units.format_bytes_rounded(value) == si
    assert units.shown() == "iec"


def test_a_choice_ends_with_its_block_even_by_an_error() -> None:
    metric = METRIC_BY_NAME["throughput_bytes_per_s"]
    with units.shown_in("si"):
        assert metric.format(129e6) == "129 MB/s"
        with units.shown_in("iec"):
            assert metric.format(129e6) == "123 MiB/s"
        assert (metric.display_unit, metric.display(129e6)) == ("MB/s", pytest.approx(129))
    with suppress(RuntimeError), units.shown_in("si"):
        raise RuntimeError
    assert metric.format(129e6) == "123 MiB/s"
    assert (metric.read_unit, metric.as_data(129e6)) == ("bytes/s", 129e6)


def test_numbers_in_groups_are_reworded_whole_or_not_at_all() -> None:
    with units.shown_in("si"):
        assert units.reworded("up to 12\u202f300 MiB/s") == "up to 12.9 GB/s"
        assert units.reworded("1,234 MiB") == "1.29 GB"
        assert units.reworded("rows of 12 300 MiB files") == "rows of 12 300 MiB files"


def test_a_source_is_quoted_and_sizes_of_the_kernel_are_not() -> None:
    with units.shown_in("si"):
        assert shown_text("imported", "16 KiB and 32 KiB rows") == "16 KiB and 32 KiB rows"
        assert shown_text("page_cache", "in 16 KiB") == "in 16.4 kB"
        assert readable_fact("24684092 kB") == "25.3 GB"
    assert readable_fact("24684092 kB") == "23.5 GiB"
    assert readable_fact("6.1 kB-like") == "6.1 kB-like"


def test_recorded_messages_are_reworded_but_names_and_typed_sizes_are_not() -> None:
    said = "1.4 GiB of 4k records on EXAMPLE-500GiB v1.5 MiB, 500 GB disk, 64 MiB/s"
    assert units.reworded(said) == said
    with units.shown_in("si"):
        found = units.reworded(said)
    assert found == "1.5 GB of 4k records on EXAMPLE-500GiB v1.5 MiB, 500 GB disk, 67.1 MB/s"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("system", units.SYSTEMS)
def test_no_renderer_mixes_units(
    name: str, study: StudyData, drawn: Drawer, system: units.System
) -> None:
    with units.shown_in(system):
        verdict, charts, _ = drawn(name, system)
        texts = [render(study, verdict), render_markdown(study, verdict)]
        for spec in (spec for drawn in charts for spec in drawn.built):
            texts += _texts(spec)
        texts += _strings(render_xlsx(study, verdict, charts))
    assert [text for text in texts if re.search(WRONG[system], text)] == []
    assert sum(len(re.findall(WRONG["si" if system == "iec" else "iec"], t)) for t in texts) > 20


def _strings(book: bytes) -> list[str]:
    """Return every text and formula in cells; whole sheets are read much faster than by a model."""
    with zipfile.ZipFile(BytesIO(book)) as parts:
        shared = ElementTree.fromstring(parts.read("xl/sharedStrings.xml"))
        found = ["".join(item.itertext()) for item in shared]
        for part in parts.namelist():
            if part.startswith("xl/worksheets/sheet"):
                sheet = ElementTree.fromstring(parts.read(part))
                found += [f"={e.text}" for e in sheet.iter(f"{SHEET}f")]
                found += ["".join(e.itertext()) for e in sheet.iter(f"{SHEET}is")]
    return found


def _texts(spec: ChartSpec) -> list[str]:
    found = [spec.title, spec.caption, spec.x.title, spec.y.title, spec.z.title if spec.z else ""]
    found += [*(spec.tab or ()), *spec.table.for_reading().columns]
    for panel in spec.panels:
        found += [panel.title, *(label for _, label in panel.guides)]
        found += [p.title for s in panel.series for p in s.points]
    return found


def test_axes_have_round_ticks_in_either_unit(canned: ModuleType) -> None:
    """A relabelled axis would have ticks such as 104.9 MB/s."""
    data = canned.factorial()
    ends: list[float] = []
    for system in units.SYSTEMS:
        with units.shown_in(system):
            charts = draw_all(data, judge(data))
            axes = [
                (spec.value_axis, [p.x if spec.kind == "rows" else p.y for p in series.points])
                for drawn in charts
                for spec in drawn.built
                if spec.value_axis.unit in ("MiB/s", "MB/s") and spec.kind in ("rows", "plane")
                for series in spec.panels[0].series
            ]
        assert len(axes) > 5
        ends.append(sum(max(values) for _, values in axes))
        for axis, values in axes:
            ticks = [text for _, text in make_scale(axis, values).ticks]
            assert ticks
            assert all(len(re.sub(r"\D", "", tick).strip("0")) <= 3 for tick in ticks), ticks
    assert ends[1] / ends[0] == pytest.approx(1.048576)


@pytest.mark.timeout(120)
def test_what_programs_read_does_not_depend_on_units(
    name: str, study: StudyData, drawn: Drawer
) -> None:
    pages = {system: drawn(name, system)[2] for system in units.SYSTEMS}
    documents: list[str] = []
    for system in units.SYSTEMS:
        with units.shown_in(system):
            documents.append(render_json(study, drawn(name, system)[0]))
    assert documents[0] == documents[1]
    assert json.loads(documents[0])["sentence"] == judge(study).sentence
    saved = {s: re.findall(r'href="(data:[^"]*)"', page) for s, page in pages.items()}
    assert saved["iec"] == saved["si"]
    assert saved["iec"]
    assert not any(re.search("[KMGkmg]i?B", address) for address in saved["iec"])


@pytest.mark.timeout(120)
def test_both_pages_hold_the_same_and_differ_in_what_comes_first(name: str, drawn: Drawer) -> None:
    pages = {system: drawn(name, system)[2] for system in units.SYSTEMS}
    assert all(page.count(" checked") >= 1 for page in pages.values())
    for system, page in pages.items():
        assert re.search(rf'id="units-{system}" class="units" checked', page)
        other = "si" if system == "iec" else "iec"
        assert f'class="in-{other}" hidden=""' in page
        assert f'class="in-{system}" hidden=""' not in page
        assert page.count(f'class="in-{other} chart') == page.count(f'class="in-{system} chart') > 0
    bare = {re.sub(r' (hidden|display|checked)(="[^"]*")?', "", page) for page in pages.values()}
    assert len(bare) == 1


def test_a_page_without_amounts_has_no_switch(canned: ModuleType) -> None:
    study = canned.make_study(rounds=0)
    page = render_html(study, judge(study), draw_all(study, judge(study)))
    assert "<label" not in page
    assert 'class="in-' not in page


def test_texts_of_a_verdict_follow_and_nothing_else(canned: ModuleType) -> None:
    data = canned.alone()
    verdict = judge(data)
    with units.shown_in("si"):
        again = said_again(data, verdict)
        assert again == judge(data)
    assert "MB/s" in again.sentence
    assert "MiB/s" in verdict.sentence
    assert said_again(data, again) == verdict


def test_tables_are_scaled_for_reading_alone() -> None:
    table = Table(
        ("file 4k", "rate (bytes/s)", "moved (bytes)", "slope (ns/byte)", "n"),
        (("4k", 1_048_576.0, 3 << 30, 1.0, 2), ("8k", None, 1 << 20, 2.0, 3)),
    )
    read = table.for_reading()
    assert read.columns == ("file 4k", "rate (MiB/s)", "moved (GiB)", "slope (µs/KiB)", "n")
    assert read.rows[0] == ("4k", 1.0, 3.0, 1.024, 2)
    assert read.rows[1][1] is None
    with units.shown_in("si"):
        read = table.for_reading()
    assert read.columns == ("file 4k", "rate (MB/s)", "moved (GB)", "slope (µs/kB)", "n")
    assert read.rows[0][1:4] == (pytest.approx(1.048576), pytest.approx(3.221225472), 1.0)
    assert table.to_csv().splitlines()[1] == "4k,1048576.0,3221225472,1.0,2"


def test_throughput_mode_adds_up_in_either_unit(canned: ModuleType) -> None:
    table = throughput_mode(canned.make_study(workers=4))
    assert table is not None
    for system, name in (("iec", "MiB/s"), ("si", "MB/s")):
        with units.shown_in(system):
            read = table.for_reading()
        row = dict(zip(read.columns, read.rows[0], strict=True))
        each, whole = row[f"mean per worker ({name})"], row[f"children ({name})"]
        assert isinstance(each, float)
        assert whole == pytest.approx(4 * each)


def test_pages_that_differ_in_more_than_texts_are_an_error() -> None:
    drawings: dict[units.System, Markup] = {
        "iec": tag("p", "1 MiB", title="1 MiB"),
        "si": tag("p", "1 MB", title="1 MB"),
    }
    assert not is_same(drawings)
    with pytest.raises(AssertionError, match="more than text depends on units"):
        merged(drawings, "iec")
    with pytest.raises(AssertionError, match="more than text depends on units"):
        merged({"iec": tag("p", "1 MiB"), "si": tag("p", "1 ", tag("b", "MB"))}, "iec")


def test_names_that_look_like_amounts_stay(canned: ModuleType) -> None:
    """Levels whose names look like markup or amounts stay what they are."""
    study = canned.make_study(levels=("none", "<b>4 MiB</b>", "5 GB > 4k"))
    page = render_html(study, judge(study), draw_all(study, judge(study)))
    assert "<b>4 MiB" not in page
    assert "&lt;b&gt;4 MiB&lt;/b&gt;" in page
    assert "4.19 MB" not in page


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize(
    "values", [(1e300, 1.0), (1e-320, 1.0), (-1e308, 1e308), (5e-324, 1.7e308)]
)
def test_axes_of_extreme_values_have_ticks(scale, values):
    """The quotient of the ends was infinite: OverflowError in the middle of a report."""
    found = make_scale(Axis("throughput", scale=scale), values, values)
    assert 0 < len(found.ticks) < 100
    assert all(math.isfinite(found.place(value)) for value in values)

"""The page as a browser draws it: no network, no complaint, every chart visible, small enough."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from iolab.report.collect import draw_all
from iolab.report.html import render_html
from iolab.stats.judge import judge
from iolab.store.rows import Caveat, StudyData

BYTES_MAX = 6_500_000
A4_PIXELS = 703
"""210 mm less two margins of 12 mm, at 96 pixels per inch."""


def _load_browser() -> Any:
    """Load the driver beside this file; tests are no package."""
    spec = importlib.util.spec_from_file_location("browser", Path(__file__).with_name("browser.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


Browser = _load_browser().Browser
Pages = Callable[[str], tuple[Path, set[str]]]
FIGURES = """
[...document.querySelectorAll('figure')].map(figure => {
  for (let node = figure; node; node = node.parentElement)
    if (node.tagName === 'DETAILS') node.open = true;
  return {
    id: figure.id,
    caption: figure.querySelector('figcaption').innerText,
    csv: !!figure.querySelector('a.csv[download]'),
    command: (figure.querySelector('.data code') || {}).textContent || '',
    views: [...figure.querySelectorAll('svg.chart:not(.in-OTHER)')].map(svg => {
      const buttons = figure.querySelectorAll('input.tab');
      const views = [...figure.querySelectorAll('.view')];
      if (buttons.length) buttons[views.indexOf(svg.closest('.view'))].checked = true;
      const box = svg.getBoundingClientRect();
      const marks = [...svg.querySelectorAll('.mark,.joined,.square,.cell,.interval,.facet')];
      const seen = marks.filter(mark => {
        const m = mark.getBoundingClientRect();
        return m.width + m.height > 0 && m.left >= box.left - 9 && m.right <= box.right + 9
          && m.top >= box.top - 9 && m.bottom <= box.bottom + 9
          && getComputedStyle(mark).visibility === 'visible';
      });
      const texts = [...svg.querySelectorAll('text')].filter(
        text => text.getBoundingClientRect().left < box.left - 2
             || text.getBoundingClientRect().right > box.right + 2);
      return {width: box.width, height: box.height, marks: marks.length, seen: seen.length,
              outside: texts.map(text => text.textContent)};
    }),
  };
})
"""


def _page(study: StudyData, folder: Path) -> tuple[Path, set[str]]:
    """Write the page; return it and the names of its figures."""
    verdict = judge(study)
    charts = draw_all(study, verdict)
    page = folder / "report.html"
    page.write_text(render_html(study, verdict, charts), encoding="utf-8")
    return page, {s.tab[0] if s.tab else s.name for d in charts for s in d.built}


@pytest.fixture(scope="module")
def page_of(canned: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Return a function that writes the page of a canned study once for all tests that read it."""

    @functools.cache
    def written(name: str) -> tuple[Path, set[str]]:
        return _page(getattr(canned, name)(), tmp_path_factory.mktemp(name))

    return written


def _figures(browser: Any, units: str = "iec") -> list[dict[str, Any]]:
    """Look at every figure as it is drawn in one system of units."""
    browser.evaluate(f"document.querySelector('label[for=units-{units}]')?.click()")
    other = {"iec": "si", "si": "iec"}[units]
    found: list[dict[str, Any]] = browser.evaluate(FIGURES.replace("OTHER", other))
    return found


TEXTS = """
(() => {
  const hidden = node => {
    for (let e = node.parentElement; e; e = e.parentElement)
      if (e.matches('.in-iec,.in-si') && getComputedStyle(e).display === 'none') return true;
    return false;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (walker.nextNode())
    if (!hidden(walker.currentNode) && !walker.currentNode.parentElement.closest('p.units'))
      found.push(walker.currentNode.data);
  for (const svg of document.querySelectorAll('svg.chart'))
    if (getComputedStyle(svg).display !== 'none') found.push(svg.getAttribute('aria-label'));
  return found;
})()
"""
"""Every text that can be read, tooltips included, also in what is folded or in another tab."""
UNITS = {"iec": r"\b[KMGT]iB\b", "si": r"\b[kMGT]B\b"}


def _amounts(browser: Any, units: str) -> tuple[int, list[str]]:
    """Return how many amounts are in one system, and the texts that have some in the other."""
    texts: list[str] = browser.evaluate(TEXTS)
    other = UNITS["si" if units == "iec" else "iec"]
    wrong = [text for text in texts if re.search(other, text)]
    return sum(len(re.findall(UNITS[units], text)) for text in texts), wrong


@pytest.mark.needs_chromium
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["factorial", "fifty"])
def test_every_chart_is_drawn_without_network_or_complaint(page_of: Pages, name: str) -> None:
    page, names = page_of(name)
    assert page.stat().st_size <= BYTES_MAX
    with Browser() as browser:
        browser.open(page)
        for system in ("si", "iec"):
            figures = _figures(browser, system)
            _check_figures(figures, names)
        assert browser.complaints() == []
        assert [a for a in browser.requests() if not a.startswith(("file:", "data:"))] == []


def _check_figures(figures: list[dict[str, Any]], names: set[str]) -> None:
    assert names <= {figure["id"] for figure in figures}
    wanted = ("forest", "run_order", "interaction_map", "latency_ladder", "steady_state")
    for prefix in (*wanted, "physics", "main_effects", "residuals", "over_time"):
        assert any(figure["id"].startswith(prefix) for figure in figures), prefix
    for figure in figures:
        assert figure["caption"].strip().endswith("."), figure["id"]
        assert figure["csv"], figure["id"]
        assert figure["command"].startswith("iolab report DIR"), figure["id"]
        assert figure["views"], figure["id"]
        for view in figure["views"]:
            assert view["width"] > 200, figure["id"]
            assert view["height"] > 40, figure["id"]
            assert view["marks"] == view["seen"] > 0, figure
            assert view["outside"] == [], figure["id"]


@pytest.mark.needs_chromium
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["demo", "record_sizes", "factorial", "surfaces", "alone"])
def test_the_switch_changes_every_amount_on_the_page(
    canned: ModuleType, tmp_path: Path, name: str
) -> None:
    study = getattr(canned, name)()
    message = "about 1.4 GiB were written, 128 KiB at once"
    caveats = (*study.caveats, Caveat("device_worn", message, "See what 512 MiB/s take."))
    page, _ = _page(replace(study, caveats=caveats), tmp_path)
    shown: dict[str, list[str]] = {}
    with Browser() as browser:
        browser.open(page)
        counts = {"iec": _amounts(browser, "iec")}
        for system in ("si", "iec"):
            browser.evaluate(f"document.querySelector('label[for=units-{system}]').click()")
            counts[system] = _amounts(browser, system)
            shown[system] = browser.evaluate(TEXTS)
        assert browser.evaluate("document.scripts.length") == 0
    assert counts["iec"][1] == counts["si"][1] == []
    assert counts["iec"][0] == counts["si"][0] > 20
    assert any("About 1.5 GB were written, 131 kB at once" in text for text in shown["si"])
    assert any("512 MiB/s" in text for text in shown["iec"])
    assert any("537 MB/s" in text for text in shown["si"])


@pytest.mark.needs_chromium
def test_paper_has_the_units_that_were_chosen(page_of: Pages) -> None:
    page, _ = page_of("demo")
    with Browser() as browser:
        browser.open(page)
        browser.evaluate("document.querySelector('label[for=units-si]').click()")
        browser.call("Emulation.setEmulatedMedia", media="print")
        assert _amounts(browser, "si")[1] == []
        assert browser.evaluate("getComputedStyle(document.querySelector('p.units')).display") == (
            "none"
        )


FIT = """
(() => {
  const wide = document.documentElement.clientWidth, beyond = [], touching = [];
  const scrolls = node => {
    for (let e = node.parentElement; e; e = e.parentElement)
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowX)) return true;
    return false;
  };
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > wide + 1 && !scrolls(e)) beyond.push(e.tagName + e.className);
  }
  let smallest = Infinity;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, box = e.getBoundingClientRect();
    if (!walker.currentNode.data.trim() || !box.width) continue;
    const svg = e.closest('svg');
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    smallest = Math.min(smallest, parseFloat(getComputedStyle(e).fontSize) * scale);
  }
  for (const svg of document.querySelectorAll('svg.chart')) {
    const texts = [...svg.querySelectorAll('text:not([transform])')].filter(
      t => t.getBoundingClientRect().width).map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
          && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 5)
        touching.push([one, other]);
    }));
  }
  return {wide, scroll: document.documentElement.scrollWidth, beyond, touching, smallest,
          high: document.documentElement.scrollHeight,
          unexplained: [...document.querySelectorAll('th:not([title])')].map(
            th => th.textContent).filter(text => text)};
})()
"""
ANSWER_TABLE = """
(() => {
  const table = document.querySelector('.verdicts .scroll');
  return {needs: table.scrollWidth, has: table.clientWidth};
})()
"""
COLUMNS = """
[...document.querySelectorAll('.panels')].filter(e => e.clientWidth).map(
  e => getComputedStyle(e).gridTemplateColumns.split(' ').length)
"""
SCREENS_MAX = 8
TEXT_PX_MIN = 11


@pytest.mark.needs_chromium
@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_a_telephone_and_a_desk(
    page_of: Pages, tmp_path: Path, width: int, scheme: Any
) -> None:
    """Nothing overflows, no label touches another, no text is too small; heads are explained."""
    page, _ = page_of("demo")
    with Browser(width, 2000) as browser:
        browser.open(page, scheme)
        found = browser.evaluate(FIT)
        assert found["scroll"] == found["wide"] == width
        assert found["beyond"] == []
        assert found["touching"] == []
        assert found["smallest"] >= TEXT_PX_MIN
        assert found["unexplained"] == []
        table = browser.evaluate(ANSWER_TABLE)
        assert width < 800 or table["needs"] <= table["has"], "its columns are cut"
        columns = browser.evaluate(COLUMNS)
        assert columns
        assert all((n == 1) == (width < 800) for n in columns), "panels below each other"
        if width == 1280:
            assert found["high"] <= SCREENS_MAX * 2000
        browser.screenshot(tmp_path / f"page-{width}-{scheme}.png", height=2000)


@pytest.mark.needs_chromium
def test_links_of_the_contents_unfold_their_section(page_of: Pages) -> None:
    page, _ = page_of("demo")
    with Browser() as browser:
        browser.open(page)
        links = browser.evaluate("[...document.querySelectorAll('nav a')].map(a => a.textContent)")
        assert {"Verdicts", "Latency by percentile", "Methods", "Reproduce"} <= set(links)
        assert len(links) == len(set(links))
        for place in range(len(links)):
            browser.evaluate(f"document.querySelectorAll('nav a')[{place}].click()")
        closed = browser.evaluate(
            "[...document.querySelectorAll('nav a')].filter(a => !document.querySelector("
            "a.getAttribute('href')).closest('details').open).map(a => a.textContent)"
        )
    assert closed == []


@pytest.mark.needs_chromium
def test_a_console_error_would_be_seen(tmp_path: Path) -> None:
    """The test above can fail: a broken page is told from a good one."""
    page = tmp_path / "bad.html"
    page.write_text(
        "<!DOCTYPE html><title>x</title><img src='https://example.org/x.png'>"
        "<figure id='f'><figcaption>A.</figcaption><svg class='chart' width='400' height='100'>"
        "<rect class='mark' x='900' width='5' height='5'/></svg></figure>",
        encoding="utf-8",
    )
    with Browser() as browser:
        browser.open(page)
        (figure,) = _figures(browser)
        assert any("ERR_INTERNET_DISCONNECTED" in text for text in browser.complaints())
        assert any(address.startswith("https:") for address in browser.requests())
    assert figure["views"][0]["marks"] == 1
    assert figure["views"][0]["seen"] == 0


@pytest.mark.needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_screen_holds_the_answer(page_of: Pages, scheme: Any) -> None:
    """Question, sentence, what to take, table and ratios are there without scrolling."""
    page, _ = page_of("factorial")
    with Browser(1100, 1000) as browser:
        browser.open(page, scheme)
        bottoms = browser.evaluate(
            "['.question', '.verdict', '.answer', '.scope', '.verdicts', '#forest svg'].map("
            "s => document.querySelector(s).getBoundingClientRect().bottom)"
        )
        colours = browser.evaluate(
            "[getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.body).color]"
        )
    assert bottoms == sorted(bottoms)
    # Reads and writes have their own ratios: two tables and four panels; below the choice stand
    # its cost and the reason; machine, caveats and the command that repeats it have a line each.
    assert bottoms[-1] <= 1405
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 26)"
    assert colours[0] == (light if scheme == "light" else dark)
    assert colours[0] != colours[1]


@pytest.mark.needs_chromium
def test_views_are_switched_without_script(page_of: Pages) -> None:
    page, _ = page_of("factorial")
    shown = (
        "[...document.querySelectorAll('#steady_state-iozone .view')]"
        ".map(view => getComputedStyle(view).display)"
    )
    with Browser() as browser:
        browser.open(page)
        assert browser.evaluate(shown) == ["block", "none", "none"]
        browser.evaluate("document.querySelectorAll('#steady_state-iozone label')[1].click()")
        assert browser.evaluate(shown) == ["none", "block", "none"]
        assert browser.evaluate("document.scripts.length") == 0


@pytest.mark.needs_chromium
def test_it_prints_to_a4(page_of: Pages, tmp_path: Path) -> None:
    page, _ = page_of("factorial")
    with Browser() as browser:
        browser.open(page)
        browser.print_pdf(tmp_path / "page.pdf")
        browser.call("Emulation.setEmulatedMedia", media="print")
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=A4_PIXELS,
            height=1000,
            deviceScaleFactor=1,
            mobile=False,
        )
        wide = browser.evaluate("document.querySelector('.verdicts table').scrollWidth")
        assert wide <= A4_PIXELS, "the verdict table is cut on paper"
    content = (tmp_path / "page.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    boxes = {box.split(b"]")[0] for box in content.split(b"/MediaBox [")[1:]}
    assert len(boxes) == 1
    width, height = (float(part) for part in boxes.pop().split()[2:4])
    assert (round(width), round(height)) == (pytest.approx(595, abs=2), pytest.approx(842, abs=2))

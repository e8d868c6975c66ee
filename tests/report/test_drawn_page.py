"""The page as a browser draws it: no network, no complaint, every chart visible, small enough."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from iolab.report.collect import draw_all
from iolab.report.html import render_html
from iolab.stats.judge import judge
from iolab.store.rows import StudyData

BYTES_MAX = 6_000_000
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
FIGURES = """
[...document.querySelectorAll('figure')].map(figure => {
  for (let node = figure; node; node = node.parentElement)
    if (node.tagName === 'DETAILS') node.open = true;
  return {
    id: figure.id,
    caption: figure.querySelector('figcaption').innerText,
    csv: !!figure.querySelector('a.csv[download]'),
    command: (figure.querySelector('.data code') || {}).textContent || '',
    views: [...figure.querySelectorAll('svg.chart')].map((svg, place) => {
      const buttons = figure.querySelectorAll('input.tab');
      if (buttons.length) buttons[place].checked = true;
      const box = svg.getBoundingClientRect();
      const marks = [...svg.querySelectorAll('.mark,.joined,.square,.cell,.interval')];
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


def _figures(browser: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = browser.evaluate(FIGURES)
    return found


@pytest.mark.needs_chromium
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["factorial", "fifty"])
def test_every_chart_is_drawn_without_network_or_complaint(
    canned: ModuleType, tmp_path: Path, name: str
) -> None:
    page, names = _page(getattr(canned, name)(), tmp_path)
    assert page.stat().st_size <= BYTES_MAX
    with Browser() as browser:
        browser.open(page)
        figures = _figures(browser)
        assert browser.complaints() == []
        assert [a for a in browser.requests() if not a.startswith(("file:", "data:"))] == []
    assert names <= {figure["id"] for figure in figures}
    wanted = ("forest", "run_order", "interaction_map", "latency_ladder", "steady_state")
    for prefix in (*wanted, "physics", "main_effects", "residuals", "over_time"):
        assert any(figure["id"].startswith(prefix) for figure in figures), prefix
    for figure in figures:
        assert figure["caption"].strip().endswith("."), figure["id"]
        assert figure["csv"], figure["id"]
        assert figure["command"].startswith("iolab run study.toml"), figure["id"]
        assert figure["views"], figure["id"]
        for view in figure["views"]:
            assert view["width"] > 300, figure["id"]
            assert view["height"] > 40, figure["id"]
            assert view["marks"] == view["seen"] > 0, figure
            assert view["outside"] == [], figure["id"]


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
def test_the_first_screen_holds_the_answer(canned: ModuleType, tmp_path: Path, scheme: Any) -> None:
    """Question, sentence, what to take, table and ratios are there without scrolling."""
    page, _ = _page(canned.factorial(), tmp_path)
    with Browser(1100, 1000) as browser:
        browser.open(page, scheme)
        bottoms = browser.evaluate(
            "['.question', '.verdict', '.answer', '.verdicts', '#forest svg'].map("
            "s => document.querySelector(s).getBoundingClientRect().bottom)"
        )
        colours = browser.evaluate(
            "[getComputedStyle(document.body).backgroundColor,"
            " getComputedStyle(document.body).color]"
        )
    assert bottoms == sorted(bottoms)
    assert bottoms[-1] <= 1000
    light, dark = "rgb(255, 255, 255)", "rgb(20, 23, 26)"
    assert colours[0] == (light if scheme == "light" else dark)
    assert colours[0] != colours[1]


@pytest.mark.needs_chromium
def test_views_are_switched_without_script(canned: ModuleType, tmp_path: Path) -> None:
    page, _ = _page(canned.factorial(), tmp_path)
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
def test_it_prints_to_a4(canned: ModuleType, tmp_path: Path) -> None:
    page, _ = _page(canned.factorial(), tmp_path)
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

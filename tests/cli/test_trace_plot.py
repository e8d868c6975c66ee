"""`iolab trace plot`: pages, drawings, two traces on the same axes, and the moving head."""

import html
import importlib.util
import json
import re
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

TRACES = Path(__file__).parent.parent / "golden" / "trace"
NB, SYN = TRACES / "nb", TRACES / "syn.blkparse.txt"
_SPEC = importlib.util.spec_from_file_location(
    "browser", Path(__file__).parent.parent / "report" / "browser.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
_BROWSER = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_BROWSER)
EVENTS = "ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu\n"


@pytest.fixture
def iolab(capsys):
    def run(*words):
        code = main(list(map(str, words)), console=Console())
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


def test_a_page_has_every_device_and_loads_nothing(iolab, tmp_path):
    page = tmp_path / "nb.html"
    code, out, _ = iolab("trace", "plot", NB, "-o", page)
    assert code == 0
    assert "47 requests" in out
    text = page.read_text()
    assert text.count("<figure") == 1
    assert not re.search(r"<script|https?://(?!www.w3.org)", text)
    assert "requests as they were issued to the driver" in text


def test_two_traces_have_the_same_axes(iolab, tmp_path):
    both = tmp_path / "both.svg"
    assert iolab("trace", "plot", NB, "--beside", SYN, "-o", both)[0] == 0
    text = both.read_text()
    assert len(re.findall(r'class="panel-title"', text)) == 2
    ticks = re.findall(r'text-anchor="middle"[^>]*class="remark">([^<]*)<', text)
    assert ticks[: len(ticks) // 2] == ticks[len(ticks) // 2 :]


def test_devices_of_one_name_stand_beside_each_other(iolab, tmp_path):
    """Pairs went by the number of requests: sda beside sdb where another one was busier."""
    head, traces = "ts_ns,event,sector,nr_sectors,rwbs,ioprio,pid,cpu,device\n", []
    for name, busy in (("before", "8:0"), ("after", "8:16")):
        rows = [f"{at}000,D,{at * 8},8,R,,1,0,{busy}\n" for at in range(9)]
        rows += [
            f"{at}000,D,{at * 8},8,R,,1,0,{other}\n" for at in (9,) for other in ("8:0", "8:16")
        ]
        traces.append(tmp_path / f"{name}.csv")
        traces[-1].write_text(head + "".join(rows))
    page = tmp_path / "both.html"
    assert iolab("trace", "plot", traces[0], "--beside", traces[1], "-o", page)[0] == 0
    assert re.findall(r"<h2>([^<]*)</h2>", page.read_text()) == ["8,0", "8,16"]


def test_the_size_does_not_follow_the_number_of_events(iolab, tmp_path):
    sizes = []
    for count in (50_000, 200_000):
        rows = (
            f"{at * 10**8 // count},D,{(at * at * 7919 % 104729) * 8},8,{'RW'[at % 2]},,1,0\n"
            for at in range(count)
        )
        trace = tmp_path / f"{count}.csv"
        trace.write_text(EVENTS + "".join(rows))
        page = tmp_path / f"{count}.html"
        assert iolab("trace", "plot", trace, "-o", page)[0] == 0
        sizes.append(page.stat().st_size)
    assert max(sizes) < 3 << 20
    assert sizes[1] < 2 * sizes[0]


def test_what_cannot_be_drawn_is_told_and_nothing_is_lost(iolab, tmp_path):
    kept = tmp_path / "kept.html"
    kept.write_text("mine")
    assert iolab("trace", "plot", NB, "-o", kept)[0] == 2
    assert kept.read_text() == "mine"
    assert iolab("trace", "plot", NB, "-o", kept, "--overwrite", kept)[0] == 0
    code, _, err = iolab("trace", "plot", NB, "-o", tmp_path / "x.pdf")
    assert code == 1
    assert "no chart is written as" in err
    code, _, err = iolab("trace", "plot", NB, "--animate", "-o", tmp_path / "x.svg")
    assert code == 1
    assert "an animation is a page of one trace" in err
    empty = tmp_path / "empty.csv"
    empty.write_text(EVENTS + "1,P,0,0,N,,1,0\n")
    code, _, err = iolab("trace", "plot", empty, "-o", tmp_path / "x.html")
    assert code == 1
    assert "has no request to draw" in err
    assert not list(tmp_path.glob("x.*"))


def test_names_in_the_pages_stay_text(iolab, tmp_path):
    odd = tmp_path / "<script>alert(1)<.iotrace"
    assert iolab("trace", "convert", NB, odd)[0] == 0
    for flag in ((), ("--animate",)):
        page = tmp_path / "page.html"
        words = ("trace", "plot", odd, *flag, "-o", page, "--overwrite", page)
        page.write_text("")
        assert iolab(*words)[0] == 0
        assert "<script>alert" not in page.read_text()


def moves_of(page):
    found = re.search(r'<script type="application/json" id="moves">(.*?)</script>', page, re.DOTALL)
    return json.loads(html.unescape(found[1]))


@pytest.mark.needs_chromium
@pytest.mark.parametrize("share", [0.001, 0.04, 0.5, 1.0])
def test_the_head_is_where_the_table_of_events_says(iolab, tmp_path, share):
    page = tmp_path / "head.html"
    assert iolab("trace", "plot", NB, "--animate", "-o", page)[0] == 0
    moves = moves_of(page.read_text())
    seconds = moves["span_ns"] * share / 1e9
    done = subprocess.run(
        [
            *(shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu"),
            *(f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"),
            f"{page.as_uri()}#t={seconds}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    begun = [
        offset
        for time, offset in zip(moves["times_ns"], moves["offsets"], strict=True)
        if time <= round(seconds * 1e9, 3)
    ]
    assert begun
    assert f'data-index="{len(begun)}" data-offset="{begun[-1]}"' in done.stdout


def test_every_speed_moves(iolab, tmp_path):
    """0.001 and 0.01 were rounded to 0 in the page: a trace of a second or less stood still."""
    page = tmp_path / "head.html"
    assert iolab("trace", "plot", NB, "--animate", "-o", page)[0] == 0
    speeds = re.findall(r'<option[^>]*value="([^"]*)"', page.read_text())
    assert [float(speed) for speed in speeds] == sorted({float(speed) for speed in speeds})
    assert float(speeds[0]) == 0.001


@pytest.mark.needs_chromium
def test_a_frame_of_many_requests_takes_less_than_a_thirtieth_of_a_second(iolab, tmp_path):
    """Every frame drew every request anew: six frames a second where there should be thirty."""
    rows = (
        f"{at * 1000},D,{(at * at * 7919 % 104729) * 8},8,{'RW'[at % 2]},,1,0\n"
        for at in range(40_000)
    )
    trace, page = tmp_path / "many.csv", tmp_path / "head.html"
    trace.write_text(EVENTS + "".join(rows))
    assert iolab("trace", "plot", trace, "--animate", "-o", page)[0] == 0
    with _BROWSER.Browser(width=400) as browser:
        browser.open(page)
        assert browser.evaluate("count") > 5000
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.evaluate("now = 0; speed.value = '0.001'; play.click(); 0")
        ends = time.monotonic() + 20
        while browser.evaluate("now") == 0:
            assert time.monotonic() < ends, "it does not play"
        browser.evaluate("setPlaying(false); 0")
        # Reading a picture back, below, makes the browser complain.
        assert browser.complaints() == []
        # The quickest of many: others use the machine, too.
        frame_ms = browser.evaluate(
            """(() => { let least = 1e9; for (let i = 1; i <= 60; i++) {
            now = span * i / 60; const begin = performance.now(); show();
            track.getContext("2d").getImageData(0, 0, 1, 1);
            least = Math.min(least, performance.now() - begin); } return least; })()"""
        )
        assert frame_ms < 1000 / 30


@pytest.mark.needs_chromium
def test_an_image_is_what_the_drawing_shows(iolab, tmp_path):
    assert iolab("trace", "plot", NB, "-o", tmp_path / "a.svg")[0] == 0
    assert iolab("trace", "plot", NB, "-o", tmp_path / "a.png")[0] == 0
    drawing, image = (tmp_path / "a.svg").read_text(), (tmp_path / "a.png").read_bytes()
    size = [2 * int(number) for number in re.search(r'viewBox="0 0 (\d+) (\d+)"', drawing).groups()]
    assert list(struct.unpack_from(">II", image, 16)) == size
    assert len(image) > 10_000, "it is not blank"

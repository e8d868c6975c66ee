"""``iolab iostat RESULTS``: intervals of stored trials, by the formulas of iostat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from iolab.cli import iostat, iostat_stored
from iolab.cli.console import Console
from iolab.cli.parser import Parser
from iolab.errors import IolabError
from iolab.library.disk_series import DiskSeries
from iolab.library.services import Services

_SECOND = 1_000_000_000
SERIES = DiskSeries(
    trial="t0001",
    treatment="scheduler=none",
    operation="write",
    device="loop8",
    at_ns=(0, _SECOND, 3 * _SECOND),
    counters=(
        (0,) * 17,
        (0, 0, 0, 0, 100, 0, 1600, 200, 3, 500, 200) + (0,) * 6,
        (0, 0, 0, 0, 300, 0, 4800, 800, 1, 2500, 800) + (0,) * 6,
    ),
)


@pytest.fixture(autouse=True)
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def given(_: Path, *, trial: str | None = None) -> Iterator[DiskSeries]:
        if trial in (None, SERIES.trial):
            yield SERIES

    monkeypatch.setattr(iostat_stored, "disk_series", given)
    monkeypatch.setattr(iostat, "is_stored", lambda path: str(path) == "out")  # pyright: ignore


def _run(*words: str) -> int:
    parser = Parser(prog="iolab iostat", allow_abbrev=False)
    iostat.add_arguments(parser)
    return iostat.execute(parser.understand(list(words)), Services(), Console())


def test_an_interval_is_a_row_and_its_rates_are_those_of_its_own_length(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run("out", "-x", "-s") == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "t0001 (scheduler=none) write, loop8:"
    assert told[1].split()[:3] == ["Until", "tps", "kB/s"]
    # 100 writes of 8 KiB in 1 s; then 200 in 2 s, each with 3 ms.
    first = "1.000s 100.00 800.00 0.00 2.00 8.00 0.20 50.00"
    assert told[2].split() == first.split()
    second = "3.000s 100.00 800.00 0.00 3.00 8.00 0.30 100.00"
    assert told[3].split() == second.split()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("out", "out"), "stored study"),
        (("out", "2"), "stored study"),
        (("out", "-c"), "no processors"),
        (("out", "--trial", "t9"), "no intervals of t9"),
        (("out", "sda"), "has no intervals of sda: it measured loop8"),
        (("out", "-o", "XML"), "only JSON"),
        (("--trial", "t0001"), "results directory"),
    ],
)
def test_what_means_nothing_is_refused(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(IolabError, match=told):
        _run(*words)

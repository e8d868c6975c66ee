"""A command line that people have used for years, unchanged, on a loop device and simulated.

The command is that of a published comparison of schedulers: direct I/O, 8 KiB records, 64 MiB, one
process, with a spreadsheet.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Final

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "iozone" / "excel_direct_t1.stdout"
HEAD: Final = "iozone -R -i 0 -i 1 -i 2"
TAIL: Final = "-I -r 8k -s 64m -t 1 -F f -b out.xls"
BIFF2: Final = b"\x09\x00\x04\x00\x02\x00\x10\x00"


def shapes(text: str) -> list[str]:
    """Lines of the throughput report and of the Excel text with their numbers masked."""
    body = text[text.index("\tThroughput test with") :]
    return [re.sub(r" *\d+\.?\d*", " #", line) for line in body.splitlines()]


def run(folder: Path, words: str) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    testbed, _, command = words.partition(" ")
    ours = ["--on", testbed, "--out", str(folder / "stored")]
    code = main([*ours, *command.split()], console=Console(out, err))
    assert code == 0, err.getvalue()
    return out.getvalue(), err.getvalue()


@pytest.mark.needs_loop
def test_on_a_loop_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out, err = run(tmp_path, f"loop:160m {HEAD} -i 6 {TAIL}")
    assert shapes(out) == shapes(GOLDEN.read_text())
    assert "page-cache numbers" in err  # fwrite knows no direct I/O, and that is said.
    assert (tmp_path / "out.xls").read_bytes().startswith(BIFF2)
    assert not (tmp_path / "f").exists()


def test_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    out, _ = run(tmp_path, f"sim:sata-860pro-256 {HEAD} {TAIL}")
    golden = [line for line in shapes(GOLDEN.read_text()) if "fwrite" not in line.lower()]
    found = [line for line in shapes(out) if line]
    assert [line for line in golden if line and "fwriter" not in line][:4] == found[:4]
    assert sum("Children see throughput" in line for line in found) == 6
    assert (tmp_path / "out.xls").read_bytes().startswith(BIFF2)

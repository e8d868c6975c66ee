"""Space that programs take of a disk is known before anything is made: space, writes, refusals."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Final

import pytest

from iolab import _core
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.study.demand import demand_of

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "workloads"
MIB: Final = 1 << 20

FILE: Final = """
[[file_sets]]
name = "s"
files = {files}
file_size = "{size}"

[[tenants]]
name = "r"
[tenants.program]
limit = {{ {limit} }}
steps = [
  {{ does = "open", file = {{ by = "existing", set = "s" }} }},
  {{ does = "{does}", size = "1k", {place} }},
  {{ does = "close" }},
]
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    return tmp_path


def rehearsed(text: str, *flags: str) -> tuple[int, str, str]:
    Path("w.toml").write_text(text)
    out, err = io.StringIO(), io.StringIO()
    words = ["compare", "--on", "dir:d", "--workload", "w.toml", "--rounds", "1", *flags]
    code = main(words, console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def described(size: str, files: int, does: str, place: str, limit: str) -> str:
    return FILE.format(size=size, files=files, does=does, place=place, limit=limit)


AT: Final = 'at = { pick = "uniform" }'


@pytest.mark.parametrize("flags", [["--dry-run"], []])
def test_a_petabyte_of_files_is_refused_before_anything_is_made(
    place: Path, flags: list[str]
) -> None:
    code, out, err = rehearsed(described("10g", 100_000, "read", AT, "passes = 5"), *flags)
    assert (code, out) == (2, ""), err
    assert "files of 977 TiB would use more than 80 %" in err
    assert list((place / "d").iterdir()) == []
    assert sorted(path.name for path in place.iterdir()) == ["d", "w.toml"]


def test_sizes_and_writes_of_a_workload_file_are_told(place: Path) -> None:
    text = described("1m", 64, "write", 'position = "append"', "passes = 1024")
    code, out, err = rehearsed(text, "--dry-run")
    assert code == 0, err
    assert "a round writes about 65 MiB" in out
    assert "files take 65 MiB at most" in out


def test_what_only_the_clock_ends_is_said_to_have_no_bound(place: Path) -> None:
    text = described("1m", 64, "write", 'position = "append"', 'time = "1s"')
    code, out, err = rehearsed(text, "--dry-run")
    assert code == 0, err
    assert "files take 64 MiB, and what they grow by until the time is over" in out


@pytest.mark.parametrize(
    ("name", "least_mib", "most_mib"),
    [
        *(("backup", 300, 350), ("bonnie-complete", 60, 80), ("etcd", 1, 2)),
        *(("fileserver", 125, 160), ("fio-randrw", 64, 64), ("flow", 32, 32)),
        *(("varmail", 25, 35), ("vm-images", 64, 64), ("weblog", 3, 5), ("ycsb-a", 9, 40)),
    ],
)
def test_the_shipped_examples_take_plausible_space(
    name: str, least_mib: int, most_mib: int
) -> None:
    path = EXAMPLES / f"{name}.toml"
    demand = demand_of(_core, json.loads(_core.workload_file(path.name, path.read_text())))
    assert demand is not None
    assert least_mib * MIB <= demand.file_bytes <= most_mib * MIB, demand.file_bytes / MIB
    assert demand.laid_bytes <= demand.file_bytes


def test_a_quote_in_a_comment_of_a_workload_file_is_no_open_quote(place: Path) -> None:
    text = described("1m", 1, "read", AT, "passes = 1")
    code, _, err = rehearsed(f"# A reader's file.\n{text}", "--dry-run")
    assert code == 0, err

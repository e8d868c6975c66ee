"""Names in a description of a workload lead nowhere: neither out of a testbed nor to directories.

Issue 14: what iolab makes it removes; a name that a workload file gave to it was removed as well,
with all that the directory of this name held.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from .conftest import Run

PROGRAM = """
[[file_sets]]
name = "data"
files = 2
file_size = "64k"

[[tenants]]
name = "readers"
files = ["{name}"]

[tenants.program]
limit = {{ passes = 10 }}
[[tenants.program.steps]]
id = "read"
does = "read"
file = {{ by = "pick", set = "data", pick = "same" }}
at = {{ pick = "uniform" }}
size = "4k"
"""

IN_PLACE = """
name = "gift"
rounds = 1
testbed = {{ kind = "dir", path = "{place}", in_place = "true" }}
[factors]
cache = ["as_is"]
[[workloads]]
kind = "dialect"
dialect = "iolab"
text = '''
{text}
'''
"""

SET = """
[[file_sets]]
name = "thesis"
files = 2
file_size = "64k"

[[tenants]]
name = "readers"

[tenants.program]
limit = { passes = 10 }
[[tenants.program.steps]]
id = "read"
does = "read"
file = { by = "pick", set = "thesis", pick = "same" }
at = { pick = "uniform" }
size = "4k"
"""

SMALL_FILES = """
[[tenants]]
name = "makers"
workers = 1
file = "thesis"
is_file_shared = true
opening = "create"
file_bytes = 4096
io_size_bytes = 4096
pattern = { kind = "sequential" }
direction = { kind = "write" }
[tenants.file_set]
action = "create"
order = "sequential"
files = 4
directories = 1
size_min_bytes = 0
size_max_bytes = 0
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Directory of a user, with a thesis in it."""
    found = tmp_path / "place"
    (found / "thesis").mkdir(parents=True)
    (found / "thesis" / "ch1").write_text("years of work")
    (found / "keep").write_text("kept")
    return found


def content(place: Path) -> dict[str, str]:
    """Digest of each file below a directory."""
    files = (path for path in place.rglob("*") if path.is_file())
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


@pytest.mark.parametrize("name", ["..", ".", "../thesis", "/etc", ""])
def test_a_name_of_a_program_stays_inside(
    iolab: Run, tmp_path: Path, place: Path, name: str
) -> None:
    before = content(place)
    (tmp_path / "evil.toml").write_text(PROGRAM.format(name=name))
    words = ["--cache", "as_is,cold", "--rounds", "1", "--out", "o1"]
    done = iolab("compare", "--on", f"dir:{place}", "--workload", "evil.toml", *words)
    assert content(place) == before
    assert done.returncode != 0
    assert f"the file {name}" in done.stderr or "files" in done.stderr, done.stderr


@pytest.mark.parametrize("text", [SET, SMALL_FILES], ids=["set", "small files"])
def test_directories_are_not_made_in_a_directory_of_the_users(
    iolab: Run, tmp_path: Path, place: Path, text: str
) -> None:
    before = content(place)
    (tmp_path / "gift.toml").write_text(IN_PLACE.format(place=place, text=text))
    done = iolab("run", "gift.toml", "--out", "o2")
    assert content(place) == before
    assert done.returncode != 0
    assert "sets of files in a directory of yours" in done.stderr, done.stderr

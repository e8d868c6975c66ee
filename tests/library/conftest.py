"""A small study in simulation, and what the command line made of it."""

from __future__ import annotations

import pytest

import iolab
from iolab.cli.main import main

STUDY = """
name = "small"
testbed = "sim:sata7200-4tb"
seed = 7
rounds = 3
[factors]
scheduler = ["noop", "deadline"]
[settings]
file_size = "1m"
workers = 4
[[workloads]]
kind = "iozone"
tests = ["write", "random-read"]
"""


@pytest.fixture(scope="session")
def text():
    """The study as a file."""
    return STUDY


@pytest.fixture(scope="session")
def study():
    """The same study, made from Python values."""
    return iolab.Study(
        name="small",
        testbed="sim:sata7200-4tb",
        workload={"kind": "iozone", "tests": ("write", "random-read")},
        factors={"scheduler": ["noop", "deadline"]},
        settings={"file_size": "1m", "workers": 4},
        rounds=3,
        seed=7,
    )


@pytest.fixture(scope="session")
def by_command(tmp_path_factory):
    """Results directory of `iolab run` with the study."""
    folder = tmp_path_factory.mktemp("by-command")
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    out = folder / "out"
    assert main(["run", str(folder / "study.toml"), "--out", str(out)]) == 0
    return out


@pytest.fixture
def result(by_command):
    """The stored study, opened."""
    return iolab.open(by_command)

"""The null testbed: every operation completes at once; issue 15, point 2.

The null target measured iolab inside its own benches only; nobody could ask for it.
"""

import io
import shlex
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import TestbedError
from iolab.store.db import Store
from iolab.testbed.model import make_testbed

pytestmark = pytest.mark.timeout(240)


def iolab(line):
    out, err = io.StringIO(), io.StringIO()
    code = main(shlex.split(line), console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.parametrize(
    "line",
    [
        "compare --on null: --record-size 4k,64k --file-size 4m --test write,read --rounds 2",
        "compare --on null: --workload 'fio --name=a --rw=randrw --size=4m --numjobs=2'"
        " --vary 'fio:bs=4k,64k' --rounds 2",
        "iozone --on null: -s 4m -r 4k -i 0 -i 1 -t 2",
        "bonnie++ --on null: -s 16 -r 8 -n 0 -f",
    ],
)
def test_the_report_says_that_nothing_was_stored(line):
    code, _, err = iolab(f"{line} --out o")
    assert code == 0, err
    assert {path.name for path in Path().iterdir()} <= {"o", "state"}, "no file of the workload"
    code, out, err = iolab("report o --full")
    assert code == 0, err
    text = " ".join(out.split())
    assert "On null nothing is stored: the speed is that of iolab itself." in text
    assert "what was measured is iolab itself, not a device" in text
    with Store.open_reader(Path("o/study.db")) as store:
        data = store.load_data()
    assert {m.metric for m in data.measurements} >= {"throughput_ops_per_s"}
    assert data.study.testbed == "null"
    code, _, err = iolab("run o --out again")
    assert code == 0, err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--scheduler none,bfq", "asks for scheduler"),
        ("--fs ext4 --record-size 4k,8k", "fs cannot be chosen on null"),
        ("--engine psync,io_uring", "the null target is an engine of its own"),
        ("--cache cold,warm", "the null target has no page cache"),
        ("--buffered --memory-limit none,64m", "limits memory"),
    ],
)
def test_what_lies_below_the_target_is_refused(asked, said):
    code, _, err = iolab(f"compare --on null: {asked} --file-size 1m --out o")
    assert code == 1
    assert said in err
    assert not Path("o").exists()


def test_a_testbed_that_is_nearly_known_is_named():
    code, _, err = iolab("compare --on nul: --record-size 4k,8k")
    assert code == 1
    assert "'nul' is not a kind of testbed; did you mean 'null'?" in err


def test_it_has_no_argument_and_no_options():
    with pytest.raises(TestbedError, match="has no names"):
        make_testbed("null", "x", {})
    with pytest.raises(TestbedError, match="has no image_dir"):
        make_testbed("null", "", {"image_dir": "/var/tmp"})

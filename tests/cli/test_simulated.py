"""Simulated studies from the command line: no agent, no root, the same commands and files."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.store.db import Store

STORE = Path("o/study.db")
COMPARE = [
    *("compare", "--on", "sim:fixed-100us", "--scheduler", "noop,deadline", "--test", "read"),
    *("--record-size", "4k", "--file-size", "1m", "--rounds", "2", "--seed", "7"),
]
STACK = """
name = "stripe"
title = "Two devices, striped"
[volume]
members = 2
parameters = { layout = "raid0", unit_bytes = 65536 }
member.device.profile = "fixed-100us"
"""


@pytest.fixture
def iolab(monkeypatch, tmp_path):
    """Run one command in an empty directory on a machine without an agent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("IOLAB_DEBUG", raising=False)
    monkeypatch.setenv("IOLAB_AGENT", "/nowhere/iolab-agent")

    def run(*arguments):
        out, err = io.StringIO(), io.StringIO()
        code = main(list(arguments), console=Console(out, err))
        assert "Traceback" not in err.getvalue()
        return code, out.getvalue(), err.getvalue()

    return run


def test_a_study_ends_with_sentence_report_and_store(iolab):
    code, out, err = iolab(*COMPARE, "--out", "o")
    assert code == 0, err
    assert out.startswith("Simulated on sim:fixed-100us.")
    assert "a round writes" not in err
    document = json.loads(Path("o/verdict.json").read_text(encoding="utf-8"))
    assert document["study"]["kind"] == "simulated"
    with Store.open_reader(STORE) as store:
        data = store.load_data()
    assert data.study.kind == "simulated"
    assert {caveat.code for caveat in data.caveats} >= {"simulated"}
    assert all(name.startswith(("sim.", "testbed.")) for name in data.facts)
    assert set(data.varying_facts) <= {"sim.mechanism"}
    assert all(detail["harness_ns_per_op"] is None for detail in data.phase_details)


def test_the_same_seed_gives_the_same_numbers(iolab):
    values = []
    for out in ("o", "p"):
        assert iolab(*COMPARE, "--out", out)[0] == 0
        with Store.open_reader(STORE.parent.with_name(out) / "study.db") as store:
            values.append([(m.trial_id, m.metric, m.value) for m in store.load_data().measurements])
    assert values[0] == values[1]


def test_a_study_is_resumed_with_more_rounds(iolab):
    assert iolab(*COMPARE, "--out", "o")[0] == 0
    code, _, err = iolab(*COMPARE, "--rounds", "3", "--out", "o", "--resume")
    assert code == 0, err
    assert "6 trials finished, 3 complete rounds" in err


def test_a_changed_stack_file_is_another_plan(iolab, tmp_path):
    path = tmp_path / "stack.toml"
    path.write_text(STACK, encoding="utf-8")
    arguments = [*COMPARE, "--on", "sim:stack.toml", "--out", "o"]
    code, out, err = iolab(*arguments)
    assert code == 0, err
    assert "Simulated on sim:stack.toml." in out
    full = " ".join(iolab("report", "o", "--full")[1].split())
    assert "Two devices, striped, simulated" in full
    path.write_text(STACK.replace("65536", "131072"), encoding="utf-8")
    code, _, err = iolab(*arguments, "--resume")
    assert code == 1
    assert "holds another plan" in err


def test_what_is_printed_is_as_long_in_a_directory_with_a_long_name(iolab, tmp_path):
    printed = []
    for directory in ("a", "long " * 30):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "stack.toml").write_text(STACK, encoding="utf-8")
        name = f"o{directory[0]}"
        code, out, err = iolab(*COMPARE, "--on", f"sim:{directory}/stack.toml", "--out", name)
        assert code == 0, err
        lines = out.replace(f" {name} ", " o ").splitlines()
        printed.append([line for line in lines if not line.startswith("Simulated trials:")])
    assert printed[0][:-1] == printed[1][:-1]


def test_a_dry_run_says_what_would_be_simulated(iolab, tmp_path):
    code, out, err = iolab(*COMPARE, "--knob", "deadline.fifo_batch=4", "--dry-run")
    assert code == 0, err
    assert "[S] set sim:fixed-100us: deadline.fifo_batch = 4" in out
    assert "[S] simulate sim:fixed-100us: read" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--buffered"], "a simulation has no buffered files without a file system"),
        (["--fs", "btrfs"], 'fs "btrfs": is not simulated'),
        (["--fs", "ufs", "--mkfs-options=-b 4096"], "ufs: mkfs option -b=4096: must be 8192"),
        (
            ["--fs", "vxfs", "--mkfs-options=-o bsize=3000"],
            "vxfs: mkfs option -o bsize=3000: must be 1024 or 2048 or 4096 or 8192",
        ),
        (["--fs", "vxfs", "--mkfs-options=-a 16"], "vxfs: there is no mkfs option `-a 16`"),
        (["--fs", "ext4", "--mount-options", "nodelaloc"], "is not modelled (did you mean"),
        (["--memory-limit", "1g"], "no memory that could be limited"),
        (["--cache", "warm"], "a simulation has no page cache"),
        (["--knob", "deadline.fifo_bach=1"], "did you mean 'deadline.fifo_batch'"),
        (["--knob", "deadline.front_merges=2"], "it goes from 0 to 1"),
        (["--file-size", "2t"], "sim:fixed-100us holds 1 TiB"),
        (["--allow-knobs-on", "vda"], "a sim testbed has no allow_knobs_on"),
    ],
)
def test_what_cannot_be_is_one_line(iolab, tmp_path, arguments, part):
    code, out, err = iolab(*COMPARE, *arguments)
    assert (code, out) == (1, "")
    assert part in err
    assert len([line for line in err.splitlines() if "note:" not in line]) == 1
    assert list(tmp_path.iterdir()) == []


def test_one_interrupt_ends_a_long_trial_and_keeps_what_is_finished(tmp_path):
    """Twelve simulated minutes at depth 32 take far longer than the test; Ctrl-C ends them."""
    study = tmp_path / "study.toml"
    study.write_text(
        """
testbed = "sim:fixed-100us"
seed = 1
rounds = 2
[factors]
scheduler = ["noop", "deadline"]
[[workloads]]
kind = "mixed"
duration = "12m"
[[workloads.streams]]
name = "reader"
direction = "read"
record_size = "4k"
depth = 32
file_size = "1m"
""",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "iolab.cli", "run", str(study), "--out", str(tmp_path / "o")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if "2 treatments, 2 rounds" in line:
                    break
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=25)[1]
        finally:
            process.kill()
    assert process.returncode == 130, rest
    assert "stopped on request" in rest


def test_a_file_system_of_another_kernel_is_refused_where_it_would_be_real(iolab):
    code, out, err = iolab("compare", "--on", "loop:1g", "--fs", "ufs,ext4")
    assert (code, out) == (1, "")
    assert err.startswith("iolab: fs = ufs on loop:1g: this kernel does not have it: simulate it")
    code, out, err = iolab("compare", "--on", "loop:1g", "--fs", "vxfs,ext4")
    assert (code, out) == (1, "")
    assert err.startswith("iolab: fs = vxfs on loop:1g: this kernel does not have it: simulate it")


SHARED = """
name = "seeks"
testbed = "sim:sd-a1-32g"
rounds = 5
compare = "scheduler"
[settings]
fs = "zfs"
[factors]
scheduler = ["none", "mq-deadline"]
[[workloads]]
name = "seeks"
dialect = "bonnie++"
command = ["-s", "8192", "-r", "0", "-f", "-n", "0"]
"""


def test_a_file_that_several_workers_share_needs_its_space_once(iolab, tmp_path):
    # Five seekers of bonnie++ share one file; five of it would not fit onto 32 GB.
    study = tmp_path / "study.toml"
    study.write_text(SHARED)
    code, _, err = iolab("plan", str(study))
    assert code == 0, err

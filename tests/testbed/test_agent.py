"""The agent's client against a stand-in that dies, babbles, refuses and dawdles."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from iolab.errors import RefusedError, RestoreError, StoppedError, TestbedError
from iolab.run.stop import StopSwitch, pressed_by_signals
from iolab.testbed.agent import Agent, AgentError, _raise_agent_error, left_behind_text
from iolab.testbed.command import find_agent
from iolab.testbed.stopped import stopped_process

FAKE = Path(__file__).with_name("fake_agent.py")
TRIAL = {"trial": "t0001", "knobs": {}, "stack": None, "workload": {"tests": ["write"]}}


@pytest.fixture
def start(monkeypatch, tmp_path):
    def start(mode="", stop=None, tell=None):
        monkeypatch.setenv("FAKE_AGENT_MODE", mode)
        monkeypatch.setenv("FAKE_AGENT_LOG", str(tmp_path / "log"))
        return Agent([str(FAKE)], stop=stop, tell=tell)

    start.log = tmp_path / "log"
    return start


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([1], "an earlier run left a change that is not undone"),
        ([11], "an earlier run left 11 changes that are not undone"),
        ([11, 1], "2 earlier runs left 12 changes that are not undone"),
    ],
)
def test_what_was_left_is_counted_in_runs_and_changes(entries, text):
    assert left_behind_text([{"run": "r", "entries": n} for n in entries]) == text


def test_a_whole_conversation(start):
    seen = []
    with start() as agent:
        assert agent.hello("r-1234").is_root
        assert agent.open_testbed({"kind": "loop"}).schedulers == ("none", "mq-deadline", "bfq")
        record = agent.run_trial(TRIAL, seen.append)
        assert (record["status"], record["trial"]) == ("ok", "t0001")
        assert agent.close_testbed()["is_restored"]
    assert seen[0]["phase"] == "write"
    assert start.log.read_text().split()[-1] == "shutdown"


def test_death_in_a_trial_tells_how_and_what_it_said(start):
    with start("die=t0001") as agent, pytest.raises(TestbedError) as caught:
        agent.run_trial(TRIAL)
    assert "ended with exit code 1 during run_trial" in str(caught.value)
    assert "panicked at trial" in str(caught.value)
    assert "iolab restore" in str(caught.value)


def test_a_killed_agent_is_told_apart(start):
    with start("delay=30") as agent:
        threading.Timer(0.3, agent._process.kill).start()
        with pytest.raises(TestbedError, match="killed by SIGKILL"):
            agent.run_trial(TRIAL)


def test_garbage_ends_the_conversation(start):
    with (
        pytest.raises(TestbedError, match="'hello, I am no message'"),
        start("garbage=t0001") as agent,
    ):
        agent.run_trial(TRIAL)


@pytest.mark.parametrize("odd", ["huge", "infinite", "nothing", "deep", "endless"])
def test_answers_that_no_agent_of_ours_gives_end_the_conversation(start, odd):
    with pytest.raises(TestbedError, match="not a message"), start(f"odd={odd}") as agent:
        agent.run_trial(TRIAL)


def test_an_error_cannot_print_lines_of_its_own():
    with pytest.raises(AgentError) as caught:
        _raise_agent_error(
            {"code": "failed", "message": "a\niolab: all is well", "hint": "\x1b[2J"}
        )
    assert str(caught.value) == "a\\u000aiolab: all is well: \\u001b[2J"


def test_error_codes_become_types_and_exit_codes(start):
    with start("refuse,fail=t0001") as agent:
        with pytest.raises(RefusedError, match="running system") as refused:
            agent.open_testbed({})
        assert refused.value.exit_code == 2
        with pytest.raises(AgentError, match="mkfs"):
            agent.run_trial(TRIAL)


def test_what_cannot_be_put_back_is_exit_code_3(start):
    with (
        pytest.raises(RestoreError, match="loop8/queue/scheduler") as caught,
        start("unrestored") as agent,
    ):
        agent.close_testbed()
    assert caught.value.exit_code == 3


def test_first_press_interrupts_the_trial_and_the_agent_lives(start):
    stop = StopSwitch()
    with start("delay=30", stop) as agent:
        threading.Timer(0.2, stop.press).start()
        began = time.monotonic()
        assert agent.run_trial(TRIAL)["status"] == "interrupted"
        assert time.monotonic() - began < 10
        assert agent.close_testbed()["is_restored"]
    stop.close()


def test_second_press_ends_everything_at_once(start):
    stop = StopSwitch()
    with start("delay=30", stop) as agent:
        stop.press()
        stop.press()
        with pytest.raises(StoppedError) as caught:
            agent.run_trial(TRIAL)
    assert caught.value.exit_code == 130
    assert "end of input" in start.log.read_text()
    stop.close()


def test_a_stopped_agent_is_told_of_and_goes_on(start, monkeypatch):
    """A stopped agent was waited for without a word."""
    monkeypatch.setattr("iolab.testbed.agent.STOPPED_LOOK_S", 0.05)
    said = []

    def tell(text):
        said.append(text)
        os.kill(agent._process.pid, signal.SIGCONT)

    with start("delay=0.3", tell=tell) as agent:
        agent.hello("r-1234")
        os.kill(agent._process.pid, signal.SIGSTOP)
        record = agent.run_trial(TRIAL)
        assert record["status"] == "ok"
        assert [warning["code"] for warning in record["warnings"]] == ["stopped"]
        assert agent.run_trial(TRIAL)["warnings"] == []
        pid = agent._process.pid
    assert "was stopped" in said[0]
    assert said[0].endswith(f"kill -CONT {pid}")
    assert said[1:] in ([], [f"iolab: process {pid} goes on"])


def test_a_stopped_process_is_found_below_another():
    script = "sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as shell:
        child = int(shell.stdout.readline())
        try:
            assert stopped_process(shell.pid) is None
            os.kill(child, signal.SIGSTOP)
            deadline = time.monotonic() + 10
            while (found := stopped_process(shell.pid)) is None and time.monotonic() < deadline:
                time.sleep(0.01)
            assert found == child
        finally:
            os.kill(child, signal.SIGKILL)
    assert stopped_process(child) is None


def test_the_agent_is_not_in_our_process_group(start):
    with start() as agent:
        agent.hello("r-1234")
        assert os.getpgid(agent._process.pid) != os.getpgrp()


def test_signals_press_the_switch_and_handlers_come_back():
    before = signal.getsignal(signal.SIGTERM)
    with pressed_by_signals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        deadline = time.monotonic() + 5
        while stop.presses < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert stop.presses == 2
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_agent_that_is_no_program_is_named(tmp_path):
    with pytest.raises(TestbedError, match="cannot be started"):
        Agent([str(tmp_path / "nothing")])


def test_finding_the_agent(tmp_path, monkeypatch):
    assert find_agent({"IOLAB_AGENT": str(FAKE)}) == FAKE.resolve()
    with pytest.raises(TestbedError, match="IOLAB_AGENT names"):
        find_agent({"IOLAB_AGENT": str(tmp_path)})
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(TestbedError, match="pip install"):
        find_agent({})
    program = tmp_path / "iolab-agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert find_agent({}) == program


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, StoppedError])
def test_leaving_waits_until_the_agent_has_ended(start, error):
    def leave():
        with start("slow_close=0.5") as agent:
            agent.hello("r-1234")
            if error is not None:
                raise error("stop")

    if error is None:
        leave()
    else:
        with pytest.raises(error):
            leave()
    assert start.log.read_text().split()[-1] == "exit"


def test_ctrl_c_while_waiting_for_the_agent_still_waits(start):
    # A test run in the background of a shell inherits SIGINT as ignored.
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)

    def leave():
        with start("slow_close=0.8") as agent:
            agent.hello("r-1234")
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    try:
        with pytest.raises(KeyboardInterrupt):
            leave()
    finally:
        signal.signal(signal.SIGINT, usual)
    assert start.log.read_text().split()[-1] == "exit"

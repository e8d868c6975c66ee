"""Simulated studies on executors and in shards: the same bytes, whatever dies meanwhile."""

import functools
import io
import os
import signal
import sqlite3
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

import iolab
from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.errors import IolabError, StoppedError, StudyError, TestbedError
from iolab.library.spreading import spread_of
from iolab.run.shard import parse_shard
from iolab.run.stop import StopSwitch
from iolab.testbed.executed import LOSSES_MAX, simulated
from iolab.testbed.executors import LocalProcesses

STUDY = """
name = "sweep"
testbed = "sim:fixed-100us"
seed = 7
rounds = 6
{more}
[factors]
scheduler = ["noop", "deadline"]
record_size = ["4k", "16k"]
[settings]
direct = true
workers = 2
[[workloads]]
kind = "iozone"
tests = ["random-read"]
file_size = "128k"
"""
N_TRIALS = 24
pytestmark = pytest.mark.timeout(300)  # Whole studies, several in a test, on a busy machine.


def run(*words):
    """Exit code, and everything that a command printed."""
    out = io.StringIO()
    code = main([str(word) for word in words], console=Console(out, out))
    return code, out.getvalue()


def values(folder):
    """The long form of a study, as bytes."""
    out = folder / "values.csv"
    code, text = run("export", folder, "--out", out)
    assert code == 0, text
    return out.read_bytes()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Working directory with a study file, and one that may end early."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY.format(more=""))
    (tmp_path / "looks.toml").write_text(STUDY.format(more="looks = 2"))
    return tmp_path


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """Values of the whole study, simulated in this process."""
    folder = tmp_path_factory.mktemp("serial")
    (folder / "study.toml").write_text(STUDY.format(more=""))
    assert run("run", folder / "study.toml", "--out", folder / "out")[0] == 0
    return values(folder / "out")


def statuses(folder):
    """Status of every record, in the order in which they were stored."""
    with sqlite3.connect(folder / "study.db") as store:
        return store.execute("SELECT trial_id, status FROM record ORDER BY record_id").fetchall()


def all_once(folder):
    return sorted(statuses(folder)) == [(f"t{n:04d}", "ok") for n in range(1, N_TRIALS + 1)]


def shards(count, study="study.toml"):
    for number in range(1, count + 1):
        words = ("--shard", f"{number}/{count}", "--out", f"part{number}")
        code, text = run("run", study, *words)
        assert code == 0, text
    return [f"part{number}" for number in range(1, count + 1)]


# The same bytes.


def test_processes_store_what_one_process_stores(place, serial):
    code, text = run("run", "study.toml", "--jobs", "2", "--out", "out")
    assert (code, values(place / "out")) == (0, serial), text
    assert [trial for trial, _ in statuses(place / "out")] == sorted(
        trial for trial, _ in statuses(place / "out")
    ), "records are stored in the order of the plan"


@pytest.mark.parametrize("count", [2, 3, 4])
def test_merged_shards_are_the_study(place, serial, count):
    parts = shards(count)
    code, text = run("merge", *parts[::-1], "--out", "out")
    assert (code, values(place / "out")) == (0, serial), text
    assert len(statuses(place / "part1")) == N_TRIALS // count


def test_dask_stores_what_one_process_stores(place, serial):
    pytest.importorskip("distributed", reason="needs Dask (pip install 'iolab[dask]')")
    code, text = run("run", "study.toml", "--executor", "dask:local:2", "--out", "out")
    assert (code, values(place / "out")) == (0, serial), text


def test_any_executor_will_do_and_stays_open(place, serial):
    with ThreadPoolExecutor(3) as executor:
        iolab.run(iolab.Study.load("study.toml"), out="out", executor=executor)
        assert executor.submit(int, "3").result() == 3
    assert values(place / "out") == serial


class Counting(ThreadPoolExecutor):
    """Counts what it is given."""

    n_given = 0

    def submit(self, fn, /, *args, **kwargs):
        self.n_given += 1
        return super().submit(fn, *args, **kwargs)


def test_a_study_that_ends_early_ends_there_whoever_simulates(place):
    """Decided at the first of two looks: three of six rounds, and nothing simulated in vain."""
    assert run("run", "looks.toml", "--out", "one")[0] == 0
    assert len(statuses(place / "one")) == N_TRIALS // 2
    with Counting(2) as executor:
        iolab.run(iolab.Study.load("looks.toml"), out="many", executor=executor)
    assert executor.n_given == N_TRIALS // 2
    assert run("merge", *shards(2, "looks.toml"), "--out", "merged")[0] == 0
    assert values(place / "one") == values(place / "many") == values(place / "merged")


# Whatever dies or stops.


def test_a_killed_worker_costs_only_its_trials(place, serial):
    killed = []
    executor = LocalProcesses(2)

    def kill(progress):
        if progress.kind == "finished" and progress.n_done in (2, 9):
            killed.append(executor.submit(os.getpid).result())
            os.kill(killed[-1], signal.SIGKILL)

    iolab.run(iolab.Study.load("study.toml"), out="out", executor=executor, progress=kill)
    executor.shutdown()
    assert len(killed) == 2
    assert values(place / "out") == serial
    assert all_once(place / "out"), "nothing is lost, nothing stored twice"


def test_the_worker_beside_a_killed_one_goes_on():
    executor = LocalProcesses(2)
    one, other = (executor.submit(os.getpid).result() for _ in range(2))
    assert one != other, "they take turns"
    slow = executor.submit(time.sleep, 1)
    os.kill(other, signal.SIGKILL)
    assert slow.result() is None
    ids = set()
    while len(ids) < 2:
        try:
            ids.add(executor.submit(os.getpid).result())
        except BrokenProcessPool:
            continue
    executor.shutdown()


def test_workers_end_with_their_executor():
    executor = LocalProcesses(1)
    pid = executor.submit(os.getpid).result()
    executor.submit(time.sleep, 600)
    began = time.monotonic()
    executor.shutdown(wait=False)
    assert time.monotonic() - began < 60
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


class Slow(Counting):
    """Takes long for all trials but the first six."""

    def submit(self, fn, /, *args, **kwargs):
        return super().submit(self._late if self.n_given >= 6 else fn, *args, **kwargs)

    @staticmethod
    def _late(*args):
        time.sleep(2)
        return simulated(*args)


def test_a_stopped_run_keeps_what_was_done_and_goes_on(place, serial):
    stop = StopSwitch()

    def press(progress):
        if progress.kind == "finished" and progress.n_done == 3:
            stop.press()

    study = iolab.Study.load("study.toml")
    with Slow(2) as executor, pytest.raises(StoppedError):
        iolab.run(study, out="out", executor=executor, progress=press, stop=stop)
    stop.close()
    n_kept = len(statuses(place / "out"))
    assert 6 <= n_kept < N_TRIALS, "what had begun is kept, the rest was taken back"
    with ThreadPoolExecutor(2) as executor:
        iolab.run(study, out="out", executor=executor, resume=True)
    assert all_once(place / "out")
    assert values(place / "out") == serial


def test_a_shard_goes_on_as_the_shard_that_it_is(place, serial):
    """Also where --shard is not repeated; another one is refused."""
    parts = shards(2)
    with sqlite3.connect(place / "part2" / "study.db") as store:
        assert store.execute("SELECT count(*) FROM trial").fetchone()[0] == N_TRIALS // 2
    code, text = run("run", "part2", "--resume", "--shard", "1/2")
    assert (code, "part2 holds shard 2/2" in text) == (1, True), text
    assert run("run", "part2", "--resume")[0] == 0
    assert len(statuses(place / "part2")) == N_TRIALS // 2
    assert run("merge", *parts, "--out", "out")[0] == 0
    assert values(place / "out") == serial


# Executors that fail.


class Faulty(Executor):
    """Answers every call in one way."""

    def __init__(self, answer):
        self.answer = answer

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        if self.answer == "refuse":
            raise RuntimeError("cannot schedule new futures after shutdown")
        if self.answer == "cancel":
            future.cancel()
            future.set_running_or_notify_cancel()
        elif isinstance(self.answer, Exception):
            future.set_exception(self.answer)
        else:
            future.set_result(self.answer)
        return future


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "lost the record of t0001"),
        ('{"trial": "t0099"}', "lost the record of t0001"),
        ("refuse", "takes no trials any more (RuntimeError: cannot schedule"),
        ("cancel", "takes no trials any more (CancelledError)"),
        (ModuleNotFoundError("No module named 'iolab'"), "a worker cannot simulate (ModuleNot"),
        (TimeoutError("late"), "a worker cannot simulate (TimeoutError: late)"),
        (StudyError("it cannot be simulated"), "it cannot be simulated"),
    ],
)
def test_an_executor_that_fails_is_told_in_one_line(place, answer, told):
    with pytest.raises(IolabError) as caught:
        iolab.run(iolab.Study.load("study.toml"), out="out", executor=Faulty(answer))
    assert told in str(caught.value)
    assert not (place / "out").exists()


def test_a_trial_that_kills_its_workers_fails_in_the_end(place):
    with pytest.raises(TestbedError, match="trials in a row failed"):
        iolab.run(
            iolab.Study.load("study.toml"), out="out", executor=Faulty(BrokenProcessPool("killed"))
        )
    result = iolab.open("out")
    assert result.trials[0].status == "failed"
    assert f"{LOSSES_MAX} workers died" in (result.trials[0].error or "")


# Refusals.


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--jobs", "2", "--on", "null"), "--jobs 2: null serves one trial at a time"),
        (("--shard", "1/2", "--on", "null"), "--shard 1/2: null serves one trial at a time"),
        (("--jobs", "0"), "not a number of processes"),
        (("--jobs", "2", "--executor", "dask:local:2"), "exclude each other"),
        (("--executor", "ray"), "there is no such executor"),
        (("--executor", "dask:local:x"), "not a number of processes"),
        (("--shard", "3/2"), "this is no shard"),
        (("--shard", "1/25"), "the study has only 24 trials"),
        (("--shard", "1/2", "--budget", "1h"), "the study ends by time"),
        (("--jobs", "2", "--trace"), "a trace is recorded of one trial at a time"),
    ],
)
def test_what_cannot_be_spread_is_refused_in_one_line(place, words, told):
    if "null" in words:  # Schedulers of today.
        text = (place / "study.toml").read_text()
        text = text.replace("noop", "none").replace('"deadline"', '"bfq"')
        (place / "study.toml").write_text(text)
    code, told_text = run("run", "study.toml", "--out", "out", *words)
    assert (code, told in told_text) == (1, True), told_text
    assert not (place / "out").exists()


def test_shards_need_a_seed_that_all_of_them_have(place):
    text = (place / "study.toml").read_text()
    (place / "study.toml").write_text(text.replace("seed = 7\n", ""))
    code, told = run("run", "study.toml", "--shard", "1/2", "--out", "out")
    assert (code, "give all shards the same --seed N" in told) == (1, True), told


def test_without_dask_its_install_command_is_told(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, told = run("run", "study.toml", "--executor", "dask:local:2", "--out", "out")
    assert (code, "pip install 'iolab[dask]'" in told) == (1, True), told
    assert not (place / "out").exists()


def test_only_all_shards_of_one_study_are_merged(place):
    one, two = shards(2)
    run("run", "study.toml", "--out", "whole")
    run("run", "study.toml", "--seed", "8", "--shard", "2/2", "--out", "other")
    run("run", "study.toml", "--shard", "2/3", "--out", "third")
    for words, told in (
        ((one,), "these are missing: 2/2"),
        ((one, two, two), "are both shard 2/2"),
        ((one, "other"), "of different studies: 'sweep' with seed 7, 'sweep' with seed 8"),
        ((one, "third"), "of different divisions"),
        ((one, "whole"), "holds a whole study, not a shard"),
        ((one, "nothing"), "nothing does not exist"),
    ):
        code, text = run("merge", *words, "--out", "out")
        assert (code, told in text) == (1, True), text
        assert not (place / "out").exists()


def test_an_unfinished_shard_is_not_merged(place):
    one, two = shards(2)
    assert run("run", one, "--resume", "--rounds", "7")[0] == 0
    code, text = run("merge", one, two, "--out", "out")
    assert (code, f"`iolab run {two} --resume --rounds 7`" in text) == (1, True), text
    assert run("run", two, "--resume", "--rounds", "7")[0] == 0
    assert run("merge", one, two, "--out", "out")[0] == 0
    assert len(statuses(place / "out")) == N_TRIALS // 6 * 7


# Words.


def test_shards_share_the_trials_evenly():
    texts = [parse_shard(f"{number}/5") for number in range(1, 6)]
    assert [shard.text for shard in texts] == ["1/5", "2/5", "3/5", "4/5", "5/5"]
    owners = [[s.number for s in texts if s.has(_Trial(n))] for n in range(1, 13)]
    assert owners == [[1], [2], [3], [4], [5], [1], [2], [3], [4], [5], [1], [2]]


class _Trial:
    def __init__(self, ordinal):
        self.ordinal = ordinal


def test_one_job_is_this_process():
    assert spread_of("1", None) is None
    assert spread_of(None, None) is None


def test_a_pool_of_the_standard_library_tells_its_size():
    from iolab.testbed.executors import given_workers

    with ProcessPoolExecutor(100) as pool, given_workers(pool) as workers:
        assert workers.in_flight() == 800
    with given_workers(Faulty(functools.partial(int))) as workers:
        assert workers.in_flight() == 256

"""Studies run from Python: in this thread, in another one, in a worker process, in a subprocess."""

import multiprocessing
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import iolab
from iolab.errors import RefusedError, StoppedError
from iolab.run.stop import pressed_by_signals

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def test_the_library_measures_what_the_command_line_measures(study, by_command, tmp_path):
    """Same study, same seed: every measured value is the same number."""
    result = iolab.run(study, out=tmp_path / "out")
    other = iolab.open(by_command)
    assert len(result.to_rows()) == 12
    assert result.columns == other.columns
    assert result.to_rows() == other.to_rows()
    assert result.study == other.study
    assert result.summary() == other.summary()


def test_a_run_says_nothing_unless_it_is_asked(study, tmp_path, capfd):
    iolab.run(study, out=tmp_path / "out")
    assert capfd.readouterr() == ("", "")


def test_progress_hears_of_every_trial_and_message(study, tmp_path):
    heard = list[iolab.Progress]()
    iolab.run(study, out=tmp_path / "out", progress=heard.append)
    finished = [p for p in heard if p.kind == "finished"]
    assert [p.n_done for p in finished] == [1, 2, 3, 4, 5, 6]
    assert {p.n_planned for p in finished} == {6}
    notices = [p.message for p in heard if p.kind == "notice"]
    assert any(text.startswith("small on sim:sata7200-4tb: 2 treatments") for text in notices)
    assert not any(text.startswith("iolab:") for text in notices)


def test_what_progress_raises_ends_the_run_and_keeps_what_was_done(study, tmp_path):
    def fail_after_two(progress):
        if progress.kind == "finished" and progress.n_done == 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        iolab.run(study, out=tmp_path / "out", progress=fail_after_two)
    assert sum(trial.status == "ok" for trial in iolab.open(tmp_path / "out").trials) == 2
    result = iolab.run(study, out=tmp_path / "out", resume=True)
    assert [trial.status for trial in result.trials] == ["ok"] * 6


def test_signal_handlers_are_put_back(study, tmp_path):
    before = [signal.getsignal(number) for number in SIGNALS]
    iolab.run(study, out=tmp_path / "out")
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_a_handler_that_python_did_not_install_survives(monkeypatch):
    """Python cannot put back a handler of C code, and must not fail in the attempt."""
    real, put_back = signal.signal, []

    def foreign(number, handler):
        put_back.append(handler)
        real(number, handler)

    before = [signal.getsignal(number) for number in SIGNALS]
    try:
        with monkeypatch.context() as patch:
            patch.setattr(signal, "signal", foreign)  # Returns None, as for a handler of C code.
            with pressed_by_signals() as switch:
                signal.raise_signal(signal.SIGHUP)
                assert switch.presses == 1
        assert put_back[len(SIGNALS) :] == [signal.SIG_DFL] * len(SIGNALS)
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            real(number, handler)


def test_another_thread_can_run_a_study(study, by_command, tmp_path):
    """Only the main thread may install signal handlers; another one must not try."""
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(iolab.run, study, out=tmp_path / name) for name in ("a", "b")]
        results = [run.result() for run in runs]
    assert [r.to_rows() for r in results] == [iolab.open(by_command).to_rows()] * 2


def test_a_worker_process_can_run_a_study(study, by_command, tmp_path):
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        result = pool.submit(iolab.run, study, out=tmp_path / "out").result()
        trial = pool.submit(iolab.simulate, "sim:fixed-100us", settings={"file_size": "64k"})
        assert trial.result().metrics["write"]["latency_ns_p50"] > 100_000
        refused = pool.submit(iolab.run, study, out=tmp_path / "out").exception()
    assert result.to_rows() == iolab.open(by_command).to_rows()
    assert result.summary() == iolab.open(by_command).summary()
    assert isinstance(refused, iolab.StudyError)
    assert "already holds the study" in refused.message
    assert "choose another out=..." in refused.hint
    assert f"`iolab run {tmp_path / 'out'} --resume --rounds 6`" in refused.hint


def test_a_program_can_run_a_study(text, by_command, tmp_path):
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    program = "import iolab\nr = iolab.run(iolab.Study.load('study.toml'))\nprint(r.path)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("iolab-out/small-1\n", "")
    found = iolab.open(tmp_path / "iolab-out" / "small-1")
    assert found.to_rows() == iolab.open(by_command).to_rows()


def test_a_switch_stops_a_study_from_another_thread(study, tmp_path):
    stop = iolab.StopSwitch()

    def press(progress):
        if progress.kind == "finished":
            thread = threading.Thread(target=stop.press)
            thread.start()
            thread.join()

    with pytest.raises(StoppedError) as caught:
        iolab.run(study, out=tmp_path / "out", progress=press, stop=stop)
    stop.close()
    assert f"`iolab.run(study, out='{tmp_path / 'out'}', resume=True)`" in caught.value.hint
    assert f"iolab.open('{tmp_path / 'out'}')" in caught.value.hint
    assert [t.status for t in iolab.open(tmp_path / "out").trials].count("ok") == 1


def test_an_interrupt_lets_the_trial_end(study, tmp_path):
    """Ctrl-C in a notebook is SIGINT in the main thread."""

    def press(progress):
        if progress.kind == "finished":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(StoppedError, match="stopped on request"):
        iolab.run(study, out=tmp_path / "out", progress=press)
    assert [t.status for t in iolab.open(tmp_path / "out").trials].count("ok") == 1


def test_a_seed_is_drawn_and_kept(study, tmp_path):
    unseeded = iolab.Study(
        testbed="sim:fixed-100us", settings={"file_size": "64k"}, rounds=1, name="one"
    )
    result = iolab.run(unseeded, out=tmp_path / "out")
    assert result.study.seed is not None
    assert result.study == unseeded.with_seed(result.study.seed)


@pytest.mark.parametrize(
    ("testbed", "arguments", "error", "message", "hint"),
    [
        ("sim:no-such-drive", {}, iolab.StudyError, "unknown profile", ""),
        ("sim:fixed-100us", {"resume": True}, iolab.StudyError, "nothing to resume", "resume=True"),
        ("sim:fixed-100us", {"erase_serial": "x"}, iolab.IolabError, "erases no device", "leave"),
        ("dir:/no/such/place", {}, iolab.TestbedError, "does not exist", "mkdir"),
        ("dir:/proc", {}, RefusedError, "lies on no file system for data", 'testbed="loop:1g"'),
    ],
)
def test_errors_say_what_and_what_to_do(testbed, arguments, error, message, hint, tmp_path):
    study = iolab.Study(testbed=testbed, settings={"file_size": "64k"}, rounds=1)
    with pytest.raises(error) as caught:
        iolab.run(study, out=tmp_path / "out", **arguments)
    assert message in str(caught.value)
    assert hint in caught.value.hint
    assert "--on" not in str(caught.value)
    assert not (tmp_path / "out").exists()

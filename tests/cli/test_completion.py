"""Completion in real shells, under a pseudo-terminal, as somebody types."""

import io
import os
import pty
import re
import select
import shutil
import signal
import sys
import time

import pytest

from iolab.cli import sim, trace
from iolab.cli.console import Console
from iolab.cli.main import COMMANDS, DIALECTS, main

SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
READY = {
    "bash": "source {0}",
    "zsh": "autoload -Uz compinit; compinit -u -D; source {0}",
    "fish": "source {0}",
}
TYPED = (
    ("iolab exp\t", "iolab export "),
    ("iolab report --qui\t", "iolab report --quiet"),
    ("iolab report --units s\t", "iolab report --units si"),
    ("iolab sim sched\t", "iolab sim schedulers"),
    ("iolab trace rec\t", "iolab trace record "),
    ("iolab trace record --sec\t", "iolab trace record --seconds"),
    ("iolab trace record --backend tr\t", "iolab trace record --backend tracefs"),
    ("iolab sim trace --tri\t", "iolab sim trace --trial"),
    ("iolab compare --on nu\t", "iolab compare --on null"),
    ("iolab compare --on sim:fixed-1\t", "iolab compare --on sim:fixed-100us"),
    ("iolab compare --on sim:stacks/m\t", "iolab compare --on sim:stacks/mine.toml"),
    ("iolab compare --scheduler mq\t", "iolab compare --scheduler mq-deadline"),
    ("iolab compare --scheduler none,bf\t", "iolab compare --scheduler none,bfq"),
    ("iolab compare --test read,random-r\t", "iolab compare --test read,random-read"),
    ("iolab fio --readwr\t", "iolab fio --readwrite"),
    ("iolab ycsb -threa\t", "iolab ycsb -threads"),
)
SECONDS_MAX = 30.0


def script(shell):
    out, err = io.StringIO(), io.StringIO()
    assert main(["--completion", shell], console=Console(out, err)) == 0, err.getvalue()
    return out.getvalue()


def without_codes(data):
    text = data.decode(errors="replace")
    text = re.sub(
        r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[()=>][0-9B]?", "", text
    )
    while "\b" in text:  # zsh writes a word again after going back.
        text = re.sub("[^\x08]?\x08", "", text, count=1)
    return text


class Typist:
    """A shell on a pseudo-terminal, in a home of its own."""

    def __init__(self, words, home):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, "TERM": "dumb", "PS1": "> ", "HOME": str(home)}
            os.execvpe(words[0], words, environment)
        self.seen = b""

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self, wanted):
        ends = time.monotonic() + SECONDS_MAX
        while wanted not in without_codes(self.seen):
            if time.monotonic() > ends:
                raise AssertionError(f"no {wanted!r} in {without_codes(self.seen)[-600:]!r}")
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    raise AssertionError(without_codes(self.seen)) from None

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_command_and_option(shell):
    text = script(shell)
    for name in (*(row[0] for row in COMMANDS), *DIALECTS):
        assert re.search(rf"\b{re.escape(name)}", text), name
    for name in (*sim.SUBJECTS, *trace.SUBJECTS):
        assert re.search(rf"\b{re.escape(name)}", text), name
    assert "quiet" in text
    assert "seconds" in text
    assert "\t" not in text


@pytest.mark.timeout(150)
@pytest.mark.parametrize("shell", SHELLS)
def test_words_are_completed_as_they_are_typed(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    path = tmp_path / "completion"
    path.write_text(script(shell), encoding="utf-8")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "mine.toml").touch()
    typist = Typist(SHELLS[shell], tmp_path)
    try:
        typist.send(f"cd {tmp_path}; " + READY[shell].format(path) + "; echo rea''dy\r")
        typist.wait("ready\r")
        for typed, wanted in TYPED:
            typist.seen = b""
            typist.send(typed)
            typist.wait(wanted)
            typist.send("\x15")  # The line is emptied.
    finally:
        typist.close()


@pytest.mark.timeout(150)
@pytest.mark.parametrize("shell", SHELLS)
def test_what_is_typed_is_not_run_by_completing_it(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    path = tmp_path / "completion"
    path.write_text(script(shell), encoding="utf-8")
    typist = Typist(SHELLS[shell], tmp_path)
    # Nothing in it that ends a word.
    command = "(touch\\ ran)" if shell == "fish" else "`touch${IFS}ran`"
    try:
        typist.send(f"cd {tmp_path}; " + READY[shell].format(path) + "; echo rea''dy\r")
        typist.wait("ready\r")
        for option in (f"--scheduler none,{command},b", f"--on sim:{command}", f"--test {command}"):
            typist.seen = b""
            typist.send(f"iolab compare {option}")
            typist.wait(option)
            typist.send("\t")
            time.sleep(0.5)
            typist.send("\x15")
        typist.seen = b""
        typist.send("echo aft''er\r")
        typist.wait("after\r")
    finally:
        typist.close()
    assert not (tmp_path / "ran").exists()


def test_another_shell_is_refused_by_name():
    for words in (["--completion", "tcsh"], ["--completion"], ["--completion=ksh"]):
        out, err = io.StringIO(), io.StringIO()
        assert main(words, console=Console(out, err)) == 1
        assert out.getvalue() == ""
        assert "shells are bash, zsh, fish" in err.getvalue()


if __name__ == "__main__":
    print(script(sys.argv[1]))

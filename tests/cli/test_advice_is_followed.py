"""Every command that iolab advises is typed as it is printed, and works; issue 15, point 2.

Advice was words ("type the command that began the study again, with --resume added"), or
`iolab run study.toml` where no such file lay; a stored study could not be named to `iolab run`.
"""

import html
import io
import re
import shlex
from contextlib import contextmanager
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.library import conducted
from iolab.library.dialect import run as line_of_dialect
from iolab.run.campaign import Campaign
from iolab.run.stop import StopSwitch
from iolab.store.db import Store

STUDY = (
    "compare --on sim:fixed-100us --scheduler none,mq-deadline --file-size 256k --record-size 4k"
    " --rounds 2 --out 'a place'"
)
LINE = "iozone --on sim:fixed-100us -I -s 64k -r 4k -i 0 -i 1 --repeat 2 --out 'a place'"
PLACE = Path("a place")
_QUOTED = re.compile(r"`(iolab [^`]+)`")
_OWN_LINE = re.compile(
    r"^(?:  |All of it: |Values: )(iolab .+?(?:\n      .+)*)(?:; values: (iolab .+))?$",
    re.MULTILINE,
)
_CODE = re.compile(r"<code>(iolab .*?)</code>", re.DOTALL)
_SPEC = re.compile(r"<code>iolab run study.toml</code></p><pre>(.*?)</pre>", re.DOTALL)
_TO_BE_FILLED_IN = (" --on dir:PATH", " --on device:/dev/DISK")
"""Ends of commands for a place that only the reader knows."""
_NAMES_ONLY = ("iolab plan", "iolab restore")
"""Commands that are named, not advised."""


pytestmark = pytest.mark.timeout(240)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def iolab(line):
    out, err = io.StringIO(), io.StringIO()
    code = main(shlex.split(line.removeprefix("iolab ")), console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


def advised(*texts):
    """Commands of what was printed, in backquotes or on lines of their own, unwrapped."""
    found = [
        " ".join(one.split())
        for text in texts
        for one in (*_QUOTED.findall(text), *sum(_OWN_LINE.findall(text), ()))
    ]
    found = [one for one in found if one and not one.endswith(_TO_BE_FILLED_IN)]
    return [one for one in dict.fromkeys(found) if one not in _NAMES_ONLY]


def follow(commands, *texts):
    assert commands, texts
    for command in commands:
        code, out, err = iolab(command)
        assert code == 0, f"{command}: {out}{err}"


def n_trials(place=PLACE):
    with Store.open_reader(place / "study.db") as store:
        statuses = store.finished_trials()
        return sum(1 for status in statuses.values() if status == "ok"), store.contents.n_trials()


@contextmanager
def stopped_in_the_second_trial(monkeypatch):
    """A switch that is pressed when the second trial begins."""
    switch = StopSwitch()
    begun = list[str]()
    run = Campaign._run_trial

    @contextmanager
    def by_test():
        yield switch

    def counted(self, *arguments, **named):
        begun.append("")
        if len(begun) == 2:
            switch.press()
        return run(self, *arguments, **named)

    with monkeypatch.context() as patched:
        patched.setattr(conducted, "pressed_by_signals", by_test)
        patched.setattr(line_of_dialect, "pressed_by_signals", by_test)
        patched.setattr(Campaign, "_run_trial", counted)
        yield
    switch.close()


@pytest.mark.parametrize("line", [STUDY, LINE])
def test_advice_of_a_finished_run_works(line):
    code, out, err = iolab(line)
    assert code == 0, err
    commands = advised(out, err)
    if line == LINE:
        assert "iolab report 'a place'" in commands
        code, out, err = iolab("report 'a place'")
        assert code == 0, err
        commands += advised(out, err)
    follow(commands, out, err)
    if line == LINE:
        code, out, err = iolab(f"{line}")
        assert code == 1
        assert advised(err) == [
            "iolab report 'a place'",
            "iolab run 'a place' --resume --rounds 4",
        ]
        follow(advised(err), err)
        assert n_trials() == (4, 4)


@pytest.mark.parametrize("line", [STUDY, LINE])
def test_advice_of_an_interrupted_run_continues_it(line, monkeypatch):
    with stopped_in_the_second_trial(monkeypatch):
        code, out, err = iolab(line)
    assert code == 130, out + err
    finished, planned = n_trials()
    assert 0 < finished < planned
    assert "continue with `iolab run 'a place' --resume`" in err
    code, again, _ = iolab(line)
    assert code == 1
    code, report, _ = iolab("report 'a place'")
    assert code == 0
    assert "iolab run 'a place' --resume" in advised(report), report
    follow(advised(out, err, again, report), err)
    assert n_trials()[0] >= planned


@pytest.mark.parametrize("asked", ["", " --rounds 5"])
def test_advice_where_the_budget_is_used_up_names_one_that_is_enough(asked, monkeypatch):
    """Advice printed that 0 s were left, ran nothing and exited with 0."""
    with monkeypatch.context() as patched:
        patched.setattr(Campaign, "_is_over_budget_without_a_round", lambda self: False)
        code, out, err = iolab(STUDY.replace(" --rounds 2", f" --budget 1ms{asked}"))
    assert code == 0, err
    assert n_trials() == (2, 2)
    shown = [iolab(f"report {PLACE.as_posix()!r}{more}")[1] for more in ("", " --full")]
    page = html.unescape((PLACE / "report.html").read_text()).replace(" DIR ", " 'a place' ")
    resumes = [one for one in advised(out, *shown) if "--resume" in one]
    assert resumes
    for text in (*resumes, page):
        assert "--rounds 5 --budget 1m" in text
    code, out, err = iolab("run 'a place' --resume" + asked)
    assert code == 1
    *_, last = err.splitlines()
    assert re.fullmatch(r"iolab: no trial was run: round 2 needs .* left: add --budget 1m", last)
    assert n_trials() == (2, 2)
    code, out, err = iolab(f"run 'a place' --resume{asked} --rounds 3 --budget 1m")
    assert (code, n_trials()) == (0, (6, 6)), err
    follow(resumes)
    assert n_trials() == (10, 10)


@pytest.mark.parametrize("line", [STUDY, LINE])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_commands_of_the_page_work(line, is_stopped, monkeypatch):
    if is_stopped:
        with stopped_in_the_second_trial(monkeypatch):
            assert iolab(line)[0] == 130
    else:
        assert iolab(line)[0] == 0
    assert iolab("report 'a place'")[0] == 0
    page = (PLACE / "report.html").read_text()
    if line == STUDY:
        found = _SPEC.search(page)
        assert found is not None
        Path("study.toml").write_text(html.unescape(found[1]))
    commands = [html.unescape(one).partition("   #")[0] for one in _CODE.findall(page)]
    assert commands
    if is_stopped:
        assert "iolab run DIR --resume" in page
    for number, command in enumerate(dict.fromkeys(commands)):
        if command.endswith(_TO_BE_FILLED_IN):
            continue
        typed = command.replace(" DIR", " 'a place'").replace(" NEW", f" new-{number}")
        code, out, err = iolab(typed)
        assert code == 0, f"{typed}: {out}{err}"


@pytest.mark.parametrize("line", [STUDY, LINE])
def test_an_archive_runs_again_too(line):
    assert iolab(line)[0] == 0
    assert iolab("archive 'a place' --out a.iolab")[0] == 0
    code, _, err = iolab("run a.iolab --out again")
    assert code == 0, err
    assert n_trials(Path("again")) == n_trials()
    code, _, err = iolab("run a.iolab --resume")
    assert code == 1
    assert "an archive, in which nothing can be continued" in err
    code, out, _ = iolab("archive --extract a.iolab --out unpacked")
    assert code == 0
    follow(advised(out))


def test_rounds_that_were_added_are_part_of_what_runs_again():
    assert iolab(STUDY)[0] == 0
    assert iolab("run 'a place' --resume --rounds 3")[0] == 0
    assert n_trials() == (6, 6)
    assert iolab("run 'a place' --out again")[0] == 0
    assert n_trials(Path("again")) == (6, 6)


def test_an_imported_table_is_not_run_again():
    Path("t.csv").write_text("level,value\na,1\na,2\nb,3\nb,4\n")
    assert iolab("import t.csv --map value=value --unit MB/s --out o")[0] == 0
    code, _, err = iolab("run o")
    assert code == 1
    assert "holds an imported table, which nothing here has measured" in err


def test_flags_of_the_report_are_refused_for_a_line():
    assert iolab(LINE)[0] == 0
    for given in ("--strict", "--units si"):
        code, _, err = iolab(f"run 'a place' {given}")
        assert code == 1
        assert given in err

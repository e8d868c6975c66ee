"""The place of a running study, shown in a terminal, in a file and below the cell of a notebook."""

import io
import sys
import types

import pytest

import iolab
from iolab.run.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def study():
    stream = {"name": "r", "direction": "read", "pattern": "uniform", "record_size": "4k"}
    stream |= {"file_size": "1m", "workers": 1}
    return iolab.Study(
        testbed="sim:fixed-100us",
        workload={"kind": "mixed", "name": "load", "duration": "20ms", "streams": [stream]},
        factors={"scheduler": ["noop", "deadline"]},
        rounds=3,
        seed=1,
    )


def test_a_terminal_has_one_line_that_ends_full(tmp_path):
    terminal = Terminal()
    iolab.run(study(), out=tmp_path / "r", progress=iolab.ProgressBar(terminal))
    shown = terminal.getvalue().replace("\n", "\r").split("\r")
    last = [line for line in shown if line.startswith("[")][-1]
    assert last.startswith("[####################] trial 6 of 6, round 3 of 3: load ")
    lines = [line for line in terminal.getvalue().split("\n") if "note: " not in line]
    assert len(lines) == 2
    assert lines[1] == ""


def test_a_file_has_a_line_for_each_round(tmp_path):
    text = io.StringIO()
    iolab.run(study(), out=tmp_path / "r", progress=iolab.ProgressBar(text))
    lines = [line for line in text.getvalue().splitlines() if not line.startswith("note: ")]
    assert [line.split(",")[1].split(":")[0] for line in lines[:3]] == [
        " round 1 of 3",
        " round 2 of 3",
        " round 3 of 3",
    ]
    assert lines[-1].startswith("trial 6 of 6")


def test_notices_stand_above_the_line():
    terminal = Terminal()
    bar = iolab.ProgressBar(terminal)
    bar(Progress("phase", None, 1, 2, 1, None, "one\x1b[2J"))
    bar(Progress("notice", None, 0, None, None, None, "mind this"))
    assert "\x1b" not in terminal.getvalue()
    assert terminal.getvalue().endswith("\rnote: mind this\n")


@pytest.fixture
def cell(monkeypatch):
    """A notebook of which only what is shown below the cell is real."""
    shown = []

    class Handle:
        def update(self, what):
            shown.append(what._repr_html_())

    def display(what, display_id):
        assert display_id is True
        shown.append(what._repr_html_())
        return Handle()

    shell = types.SimpleNamespace(kernel=object())
    modules = {
        "IPython": types.ModuleType("IPython"),
        "IPython.core": types.ModuleType("IPython.core"),
        "IPython.core.getipython": types.SimpleNamespace(get_ipython=lambda: shell),
        "IPython.display": types.SimpleNamespace(display=display),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return shown


def test_a_notebook_has_a_bar_below_its_cell(cell, tmp_path):
    bar = iolab.ProgressBar()
    bar(Progress("notice", None, 0, None, None, None, "a < b"))
    iolab.run(study(), out=tmp_path / "r", progress=bar)
    assert '<progress max="6" value="6"' in cell[-1]
    assert "trial 6 of 6, round 3 of 3" in cell[-1]
    assert "<div>a &lt; b</div>" in cell[-1]


def test_a_result_shows_its_answer_in_a_notebook(tmp_path):
    result = iolab.run(study(), out=tmp_path / "r")
    markup = result._repr_html_()
    for part in (result.verdict.sentence[:40], "<svg", "How far to trust this", "Ratio to noop"):
        assert part in markup
    assert "class=" not in markup.partition("<svg")[0].replace('class="kind"', "")


def test_trials_without_an_answer_show_their_name():
    from iolab.errors import AnalysisError

    class Failed(iolab.Result):
        def __init__(self):
            pass

        @property
        def verdict(self):
            raise AnalysisError("no trial ended", "")

        _data = None

    assert Failed()._repr_html_() is None

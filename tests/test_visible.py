"""Nothing that a file says reaches a terminal as a command."""

import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.run.campaign import Progress
from iolab.visible import visible_line, visible_text

TITLE = "\x1b]0;owned\x07"


@pytest.mark.parametrize(
    ("sign", "shown"),
    [
        ("\x1b", "\\u001b"),
        ("\r", "\\u000d"),
        ("\b", "\\u0008"),
        ("\x7f", "\\u007f"),
        ("\x9b", "\\u009b"),
        ("\u202e", "\\u202e"),
        ("\u2066", "\\u2066"),
        ("\u2028", "\\u2028"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_obeys_is_shown(sign, shown):
    assert visible_text(f"a{sign}b") == visible_line(f"a{sign}b") == f"a{shown}b"


def test_a_line_has_no_line_ends_and_a_text_keeps_them():
    assert visible_text("a\tb\nc") == "a\tb\nc"
    assert visible_line("a\tb\nc") == "a\\u0009b\\u000ac"


@given(st.text(st.characters()))
def test_nothing_obeyed_is_left_and_printable_text_stays(text):
    shown = visible_line(text)
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for sign in shown:
        assert unicodedata.category(sign) not in ("Cc", "Cs", "Zl", "Zp")
        assert unicodedata.bidirectional(sign) not in bidi
    if text.isprintable():
        assert shown == text


@given(st.text())
def test_json_that_is_printed_means_the_same(text):
    assert json.loads(visible_text(json.dumps(text, ensure_ascii=False))) == text


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_results_notes_and_progress_are_escaped():
    out, err = _Terminal(), _Terminal()
    console = Console(out, err)
    console.result(f"a {TITLE}")
    console.note(f"b {TITLE}")
    console.progress(Progress("notice", None, 0, None, None, None, f"c {TITLE}"))
    console.progress(Progress("phase", None, 0, None, None, None, f"d {TITLE}"))
    console.clear_line()
    assert out.getvalue() == "a \\u001b]0;owned\\u0007\n"
    told = err.getvalue().replace("\r\x1b[K", "")
    assert "\x1b" not in told
    assert "\x07" not in told
    assert told.count("\\u001b]0;owned\\u0007") == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", f"none{TITLE}"],
        [TITLE],
        ["plan", f"{TITLE}.toml"],
        ["import", f"{TITLE}.csv"],
        ["diff", f"{TITLE}.csv", "b"],
        ["compare", "--on", f"dir:/{TITLE}"],
        ["archive", "--check", f"{TITLE}.iolab"],
    ],
)
def test_errors_that_quote_a_name_are_escaped(arguments, monkeypatch):
    monkeypatch.delenv("IOLAB_DEBUG", raising=False)
    out, err = io.StringIO(), io.StringIO()
    assert main(arguments, console=Console(out, err)) == 1
    assert "owned" in err.getvalue()
    assert "\x1b" not in out.getvalue() + err.getvalue()
    assert "\x07" not in out.getvalue() + err.getvalue()

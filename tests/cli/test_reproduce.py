"""Published figures come out of the simulator as they are known to, on pages that say so."""

import io
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from iolab.cli.console import Console
from iolab.cli.main import main
from iolab.library import reproducing
from iolab.reproduced.documents import DOCUMENTS
from iolab.reproduced.published import published
from iolab.reproduced.rules import Like, Loss, Trend, TwoNumbers, Within

ROOT = Path(__file__).parents[2]


def iolab(*words):
    out, err = io.StringIO(), io.StringIO()
    code = main([str(word) for word in words], console=Console(out, err))
    return code, out.getvalue(), err.getvalue()


# Pages of all documents are compared, number for number, by `tools/gen_docs.py --check`, a part of
# `make test` of its own. Here is what the command adds to that, with a short document, and that the
# words on the pages are the expected ones, without simulating again.
def test_each_number_becomes_what_it_is_known_to_become(tmp_path):
    code, told, err = iolab("sim", "reproduce", "d3", "--pages", tmp_path)
    assert (code, err) == (0, "")
    assert "was:" not in told
    page = (tmp_path / "d3.md").read_text(encoding="utf-8")
    assert page == (ROOT / "docs" / "reproduced" / "d3.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.key)
def test_pages_hold_the_words_that_are_expected(document):
    page = (ROOT / "docs" / "reproduced" / f"{document.key}.md").read_text(encoding="utf-8")
    _, _, table = page.partition(" | outcome |\n")
    rows = [line.strip("| ").split(" | ") for line in table.partition("\n\n")[0].splitlines()[1:]]
    expected = [(row.name, row.expected) for row in document.rows]
    assert [(cells[0], cells[-1]) for cells in rows] == expected


def without_small_records(document):
    """The document from 64 KiB on, where a trial takes a second."""
    first = next(n for n, row in enumerate(document.rows) if row.place.record_size_bytes >= 65_536)
    rows = [
        replace(row, other=None if row.other is None or row.other < first else row.other - first)
        for row in document.rows[first:]
    ]
    return replace(document, rows=tuple(rows))


def test_the_buffered_operation_makes_most_of_the_mean_of_small_records():
    found = reproducing.reproduce(without_small_records(reproducing.documents(["d1"])[0]))
    parts = [outcome.part for outcome in found.outcomes]
    assert parts[0] > 0.5
    assert all(late < early for early, late in pairwise(parts))


def test_every_missing_number_has_a_reason_and_every_place_is_in_a_table():
    for document in DOCUMENTS:
        for row in document.rows:
            published(row.place)
            assert row.expected in ("agrees", "fitted", "lost") or row.why, row.name
            assert row.other is None or 0 <= row.other < len(document.rows)


def test_a_number_that_changes_its_word_is_told(monkeypatch):
    document = next(each for each in DOCUMENTS if each.key == "d3")
    rows = (replace(document.rows[1], expected="agrees"), *document.rows[2:3])
    changed = replace(document, rows=rows)
    monkeypatch.setattr(reproducing, "DOCUMENTS", (changed,))
    code, told, err = iolab("sim", "reproduce")
    assert code == 5
    assert "<- was: agrees" in told
    assert "1 number became something else" in err


def test_an_unknown_document_is_refused():
    code, _, err = iolab("sim", "reproduce", "d9")
    assert code == 1
    assert "`d9` is not a document" in err
    assert "d1, d2, d3, d4, d5" in err


def test_a_page_of_the_user_is_not_replaced(tmp_path):
    page = tmp_path / "d4.md"
    page.write_text("mine")
    code, _, err = iolab("sim", "reproduce", "d4", "--pages", tmp_path)
    assert code != 0
    assert "d4.md" in err
    assert page.read_text() == "mine"


@pytest.mark.parametrize(
    ("rule", "row", "other", "holds"),
    [
        (Within(0.05), (100, 104.9), None, True),
        (Within(0.05), (100, 94.9), None, False),
        (Within(0.05), (0, 0), None, True),
        (Within(0.05), (0, 1), None, False),
        (Like(0.02, "noop"), (100, 102), (200, 101), True),
        (Like(0.02, "noop"), (100, 104), (200, 101), False),
        (Loss(2, "noop"), (80, 90), (100, 100), True),
        (Loss(2, "noop"), (80, 91), (100, 100), False),
        (Loss(2, "noop"), (80, 59), (100, 100), False),
        (Loss(2, "noop"), (80, 101), (100, 100), False),
        (Loss(math.inf, "noop"), (60, 99), (100, 100), True),
        (Loss(math.inf, "noop"), (60, 100), (100, 100), False),
        (Trend(), (2, 5), (1, 4), True),
        (Trend(), (2, 5), (3, 4), False),
        (Trend(), (2, 5), None, True),
    ],
)
def test_rules(rule, row, other, holds):
    assert rule.holds(TwoNumbers(*row), TwoNumbers(*other) if other else None) is holds

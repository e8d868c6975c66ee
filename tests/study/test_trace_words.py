"""Events of a trace, as they are typed: one list, in Rust, for every place that takes it."""

from __future__ import annotations

import pytest

from iolab.errors import IolabError, StudyError
from iolab.study.load import parse_study
from iolab.study.names import TRACE_LAYERS, TRACE_SETS
from iolab.study.render import spec_toml
from iolab.study.trace_words import TRACE_WORDS, TraceEvents, typed_events

STUDY = """\
name = "t"
testbed = "loop:64m"
rounds = 1
trace = {trace}
[factors]
record_size = ["4k", "64k"]
[[workloads]]
name = "w"
kind = "iozone"
tests = ["write"]
file_size = "1m"
"""


@pytest.mark.parametrize(
    ("typed", "block", "layers"),
    [
        ("block", "full", ()),
        ("full", "full", ()),
        ("issue-complete", "issue_complete", ()),
        ("ext4, jbd2,ext4", "full", ("ext4", "jbd2")),
        ("page-cache,issue-complete,read-ahead", "issue_complete", ("page_cache", "read_ahead")),
    ],
)
def test_words_are_a_set_and_layers(typed: str, block: str, layers: tuple[str, ...]) -> None:
    events = typed_events(typed, "--trace-events")
    assert (events.block, events.layers) == (block, layers)
    assert typed_events(",".join(events.words), "--trace-events") == events


def test_every_row_of_the_list_has_a_word() -> None:
    typed = [row.typed for row in (*TRACE_SETS, *TRACE_LAYERS)]
    assert set(typed) < set(TRACE_WORDS)
    for word in typed:
        assert word in typed_events(word, "--events").words or word == "full"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("blok", "'blok' is unknown; did you mean 'block'?"),
        ("", "'' is unknown"),
        ("block,,ext4", "'' is unknown"),
        ("full,issue-complete", "either all or only some"),
        ("page_cache", "did you mean 'page-cache'?"),
    ],
)
def test_what_is_no_list_of_events_is_told(typed: str, told: str) -> None:
    with pytest.raises(IolabError, match="--trace-events") as caught:
        typed_events(typed, "--trace-events")
    assert told in caught.value.message


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("true", TraceEvents()),
        ("false", None),
        ('["block"]', TraceEvents()),
        ('["ext4", "syscalls"]', TraceEvents("full", ("ext4", "syscalls"))),
        ('["issue-complete"]', TraceEvents("issue_complete")),
    ],
)
def test_a_study_file_says_the_same(text: str, events: TraceEvents | None) -> None:
    study = parse_study(STUDY.format(trace=text))
    assert study.trace == events
    assert parse_study(spec_toml(study)) == study


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('"yes"', "neither true nor false nor a list of events"),
        ("[]", "neither true nor false nor a list of events"),
        ("7", "neither true nor false nor a list of events"),
        ('["ext5"]', "'ext5' is unknown; did you mean 'ext4'?"),
        ("[1]", "'1' is unknown"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(StudyError, match="line 4") as caught:
        parse_study(STUDY.format(trace=text))
    assert told in caught.value.message

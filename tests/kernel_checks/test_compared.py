"""TrialFacts are read from events as they lie, and two sides are as close as the words say."""

import pytest

from iolab.kernel_checks.compared import WORDS, compare
from iolab.kernel_checks.facts import BlockEvent, TrialFacts, facts_of
from iolab.kernel_checks.rows import CHECKS, READS, KnownReason
from iolab.library.against_kernel import studies_of

KIB = 1024


def event(action, flags, sector, kib, at_ns=10, process=1):
    return BlockEvent(at_ns, action, sector, kib * KIB, flags, process)


def facts(**changed):
    usual = {"windows": (), "requests": {}, "extents": None, "journal": 0, "commits": 0}
    return TrialFacts(**{**usual, **changed})


def test_each_event_is_counted_where_it_belongs():
    events = [
        event("Q", "R", 1000, 128),
        event("Q", "RA", 1256, 128),
        event("Q", "R", 9000, 4, process=2),
        event("Q", "RSM", 8, 4),
        event("D", "R", 1000, 128),
        event("D", "WS", 5000, 512),
        event("D", "W", 6024, 512),
        event("D", "WM", 16, 4),
        event("Q", "WSM", 524288, 8),
        event("Q", "FWFSM", 524304, 4),
        event("Q", "WFSM", 524288, 4),
        event("Q", "WM", 24, 4),
        event("Q", "FN", 0, 0),
        event("D", "WS", 7048, 512, at_ns=101),
    ]
    found = facts_of(events, (0, 100), 1.5)
    assert found.windows == (((0, 128 * KIB), (128 * KIB, 128 * KIB)), ((0, 4 * KIB),))
    assert found.requests == {512 * KIB: 1024 * KIB}
    assert (found.journal, found.commits, found.extents) == (16 * KIB, 1, 1.5)


def reads(*lengths, begin=0):
    place, stream = begin, []
    for length in lengths:
        stream.append((place * KIB, length * KIB))
        place += length
    return tuple(stream)


@pytest.mark.parametrize(
    ("kernel", "simulated", "word"),
    [
        ([reads(16, 64, 128)], reads(16, 64, 128), "same"),
        ([reads(16, 64), reads(16, 32)], reads(16, 32), "same"),
        ([reads(16, 64, 128)], reads(16, 64, 64), "differs"),
        ([reads(16, 64, 128)], reads(16, 64), "differs"),
        # Another step to the next place: a border of an extent where there is one, else wrong.
        ([reads(16, 64)], (*reads(16), *reads(64, begin=999)), "differs"),
    ],
)
def test_windows_are_the_same_or_they_differ(kernel, simulated, word):
    runs = [facts(windows=(stream,)) for stream in kernel]
    found = compare("windows", runs, facts(windows=(simulated,)))
    assert found.word == word
    assert bool(found.how) == (word == "differs")


def test_reads_of_nobody_are_not_the_same():
    assert compare("windows", [facts()], facts()).word == "differs"
    assert compare("windows", [facts(windows=(reads(16),))], facts()).word == "differs"


def test_a_border_of_extents_may_lie_elsewhere():
    one, other = reads(16, 64, 128), (*reads(16, 64), *reads(128, begin=4096))
    kernel = [facts(windows=(one,), extents=2.0)]
    assert compare("windows", kernel, facts(windows=(other,), extents=1.0)).word == "same"
    kernel = [facts(windows=(one,), extents=1.0)]
    assert compare("windows", kernel, facts(windows=(other,), extents=1.0)).word == "differs"


def test_streams_that_race_may_come_from_several_runs():
    one, two, three = reads(16, 64), reads(32, 64), reads(64, 64)
    kernel = [facts(windows=(one, two)), facts(windows=(one, three))]
    assert compare("windows", kernel, facts(windows=(three, two))).word == "within"
    assert compare("windows", kernel, facts(windows=(three, one))).word == "same"
    assert compare("windows", kernel, facts(windows=(three,))).word == "differs"


@pytest.mark.parametrize(
    ("kernel", "simulated", "word"),
    [
        ([{512: 1000}], {512: 1000}, "same"),
        ([{512: 1000}], {512: 960, 4: 40}, "near"),
        ([{512: 1000}], {512: 900, 4: 100}, "differs"),
        ([{512: 1000}, {512: 800, 8: 200}], {512: 900, 8: 100}, "within"),
        # One run of the kernel that is off excuses nothing.
        ([{512: 1000}, {512: 1000}, {8: 1000}], {512: 900, 8: 100}, "differs"),
        # Nothing, or much less, is not the same.
        ([{512: 1000}], {512: 900}, "differs"),
        ([{512: 1000}], {}, "differs"),
        ([{}], {}, "differs"),
        ([None], {512: 1000}, "not told"),
    ],
)
def test_requests_are_compared_by_the_bytes_that_they_carry(kernel, simulated, word):
    runs = [facts(requests=run) for run in kernel]
    assert compare("requests", runs, facts(requests=simulated)).word == word


@pytest.mark.parametrize(
    ("kernel", "simulated", "word"),
    [
        ([2, 4], 4, "same"),
        ([2, 4], 3, "within"),
        ([2, 4], 5.5, "near"),
        ([2, 4], 1.4, "near"),
        ([2, 4], 9, "differs"),
        ([None, None], 3, "not told"),
        ([2], None, "not told"),
        ([None, 3], 3, "same"),
    ],
)
def test_extents_may_differ_by_half(kernel, simulated, word):
    runs = [facts(extents=run) for run in kernel]
    found = compare("extents", runs, facts(extents=simulated))
    assert found.word == word


def test_what_is_written_by_its_age_counts_in_requests_of_any_size():
    runs = [facts(requests={128 * KIB: 20 << 20}), facts(requests={64 * KIB: 18 << 20})]
    for mib, word in ((20, "same"), (19, "within"), (23, "near"), (26, "differs"), (13, "differs")):
        found = compare("expired", runs, facts(requests={1280 * KIB: mib << 20}))
        assert found.word == word
        assert found.kernel == "18432 KiB to 20480 KiB"
    assert compare("expired", [facts(requests=None)], facts()).word == "not told"


@pytest.mark.parametrize(
    ("simulated", "word"),
    [(1000, "same"), (1100, "within"), (1450, "near"), (1600, "differs"), (700, "differs")],
)
@pytest.mark.parametrize("measure", ["journal", "commits"])
def test_a_journal_may_differ_by_a_quarter(measure, simulated, word):
    runs = [facts(**{measure: value}) for value in (1000, 1200)]
    assert compare(measure, runs, facts(**{measure: simulated})).word == word


def test_what_differs_for_a_known_reason_tells_it():
    runs = [facts(journal=1000)]
    chance = KnownReason("chance", 2.0)
    assert compare("journal", runs, facts(journal=1000), chance).word == "same"
    found = compare("journal", runs, facts(journal=1900), chance)
    assert (found.word, found.how) == ("known", "chance")
    assert compare("journal", runs, facts(journal=2100), chance).word == "differs"
    runs = [facts(requests={512: 1000})]
    assert compare("requests", runs, facts(requests={8: 1000}), chance).word == "known"
    few = KnownReason("chance", 0.5)
    assert compare("requests", runs, facts(requests={8: 1000}), few).word == "differs"


def test_a_journal_that_is_not_marked_is_not_told():
    events = [event("Q", "WS", 524288, 8), event("D", "WS", 524288, 8)]
    found = facts_of(events, (0, 100), None, has_marks=False)
    assert (found.requests, found.journal, found.commits) == (None, None, None)
    for measure in ("requests", "expired", "journal", "commits"):
        assert compare(measure, [found], facts(journal=5, requests={8: 9})).word == "not told"


def test_workloads_of_one_study_have_the_same_settings():
    studies = studies_of(CHECKS)
    assert list(studies) == ["reads", "writes", "left-to-age"]
    assert sum(map(len, studies.values())) == len(CHECKS)
    for checks in studies.values():
        assert len({str(check.settings) for check in checks}) == 1
    assert {check.measures for check in studies["reads"]} == {READS}


def test_every_workload_has_its_own_name_and_something_to_compare():
    names = [check.name for check in CHECKS]
    assert len(names) == len(set(names))
    assert all(check.measures for check in CHECKS)
    assert sum(check.measures == READS for check in CHECKS) > 10
    assert WORDS[0] == "same"

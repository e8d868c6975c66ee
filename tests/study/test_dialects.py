"""Workloads in other programs' words: rows, varied words, files, and their study files."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from iolab import _core
from iolab.errors import IolabError, StudyError
from iolab.run.refusals import check_plan
from iolab.study import dialects, read_dialect
from iolab.study.dialects import DIALECTS, Entry, find_dialect, own_factors, usual_level
from iolab.study.load import load_study, parse_study, study_from_table
from iolab.study.model import DialectWorkload, Factor, Study, TestbedRequest
from iolab.study.plan import make_plan
from iolab.study.render import spec_toml
from iolab.study.source import FlagSource
from iolab.testbed.model import make_testbed


def workloads_of(command, **more):
    name, *words = command.split()
    entry = Entry(name, find_dialect(name), shlex.join(words), **more)
    return dialects.workloads_of(entry, _core)


def study_of(workloads, **more):
    factors = own_factors(workloads)
    return Study(
        name="x",
        testbed=TestbedRequest("dir", "/tmp", ()),
        factors=factors,
        settings=(),
        workloads=workloads,
        compared_factor=factors[0].name if factors else "direct",
        baseline="",
        rounds=2,
        seed=1,
        **more,
    )


CASES = {
    "iozone -a -i 0 -n 64k -g 128k -y 32k": (
        [("record_size", ("32k", "64k", "128k")), ("file_size", ("64k", "128k"))],
        "32k",
    ),
    # Above 32 MiB the automatic mode leaves small records out: most rows have 64 KiB or more.
    "iozone -a -i 0 -n 16m -g 64m": (
        [
            ("record_size", ("4k", "8k", "16k", "32k", "64k", "128k", "256k", "512k",
                             "1m", "2m", "4m", "8m", "16m")),
            ("file_size", ("16m", "32m", "64m")),
        ],
        "64k",
    ),
    "iozone -i 0 -i 1 -s 1m -r 4k -r 8k": ([("record_size", ("4k", "8k"))], "4k"),
    "iozone -a -i 0 -r 4k -n 64k -g 128k": ([("file_size", ("64k", "128k"))], "64k"),
    "iozone -l 1 -u 3 -i 0 -s 64k -r 4k": ([("workers", ("1", "2", "3"))], "1"),
}  # fmt: skip


@pytest.mark.parametrize("command", CASES)
def test_sizes_of_rows_are_levels_of_one_workload(command):
    workloads = workloads_of(command)
    expected, usual = CASES[command]
    factors = own_factors(workloads)
    assert list(factors) == [Factor(*given) for given in expected]
    assert [workload.name for workload in workloads] == ["iozone"]
    assert usual_level(workloads, factors[0]) == usual


@pytest.mark.parametrize("command", [*CASES, "iozone -i 0", "bonnie++ -d /tmp", "mkfile 1m a b"])
def test_the_rows_of_a_line_are_treatments_in_their_order_in_every_round(command):
    workloads = workloads_of(command, is_line=True)
    plan = make_plan(study_of(workloads, command=tuple(command.split())))
    places = [(one.name, row.levels) for one in workloads for row in one.rows]
    assert [treatment.place for treatment in plan.treatments] == places
    assert len(set(places)) == len(places)
    for number in (1, 2):
        trials = plan.round_trials(number)
        assert [trial.treatment.place for trial in trials] == places
        assert [trial.position for trial in trials] == list(range(len(trials)))


@pytest.mark.parametrize(
    "command",
    [
        "mkfile 1m a b",
        # One child reads, the second of two writes: not the same test with more workers.
        "iozone -i 0 -i 8 -t 1 -t 2 -s 64k -r 4k",
        "iozone -i 0 -t 1 -t 2 -t 2 -s 64k -r 4k",
    ],
)
def test_other_rows_are_workloads_of_their_own(command):
    name, *words = command.split()
    rows = json.loads(_core.dialect_parse(name, words))["rows"]
    workloads = workloads_of(command)
    assert own_factors(workloads) == ()
    named = [workload.name for workload in workloads]
    assert len(set(named)) == len(rows), "a row that is measured twice has two names"
    for found, row in zip(named, rows, strict=True):
        assert found.startswith(f"{name}/{row['name']}")


STUDY = """
name = "s"
testbed = "loop:1g"
rounds = 2
seed = 3
[factors]
scheduler = ["none", "bfq"]
"""


@pytest.mark.parametrize(
    ("entry", "factors"),
    [
        ('dialect = "iozone"\ncommand = "-s 4m -i 0 -i 1"', ["scheduler"]),
        ('dialect = "bonnie++"\ncommand = ["-s", "64", "-r", "32", "-f"]', ["scheduler"]),
        ('dialect = "mkfile"\ncommand = "1m a b"', ["scheduler"]),
        (
            'dialect = "iozone"\ncommand = "-a -n 64k -g 128k -i 0 -y 64k"',
            ["scheduler", "record_size", "file_size"],
        ),
        (
            'name = "w"\ndialect = "iozone"\ncommand = "-s 4m -i 0"\n'
            'vary = { "-r" = ["4k", "64k"], "-I" = ["off", "on"] }',
            ["scheduler", "w:-r", "w:-I"],
        ),
    ],
)
def test_a_study_is_read_again_from_what_is_stored_of_it(entry, factors):
    study = parse_study(f"{STUDY}\n[[workloads]]\n{entry}")
    assert [factor.name for factor in study.factors] == factors
    again = parse_study(spec_toml(study))
    # A dialect may draw seeds of its own when it reads a command.
    assert spec_toml(again) == spec_toml(study)
    assert make_plan(again).digest == make_plan(study).digest
    places = [treatment.place for treatment in make_plan(study).treatments]
    assert [treatment.place for treatment in make_plan(again).treatments] == places
    assert len(set(places)) == len(places)


def test_each_level_of_a_word_has_a_description_of_its_own():
    vary = (Factor("-r", ("4k", "64k")), Factor("-I", ("off", "on")))
    (workload,) = workloads_of("iozone -s 1m -r 8k -i 0", vary=vary)
    found = {
        (row.levels[0][1], row.levels[1][1]): {
            (tenant["io_size_bytes"], tenant["access"]) for tenant in row.tenants
        }
        for row in workload.rows
    }
    assert found == {
        ("4k", "off"): {(4096, "plain")},
        ("4k", "on"): {(4096, "direct")},
        ("64k", "off"): {(65536, "plain")},
        ("64k", "on"): {(65536, "direct")},
    }


def test_an_error_of_the_dialect_is_said_with_the_level():
    vary = (Factor("-r", ("4k", "many")),)
    with pytest.raises(StudyError, match="iozone with -r = many: -r takes a size") as caught:
        workloads_of("iozone -s 1m -i 0", vary=vary)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("command", "path", "level", "after"),
    [
        ("-s 1m -r 8k -i 0", "-r", "4k", "-s 1m -i 0 -r 4k"),
        ("-s 1m -r8k -r 16k", "-r", "4k", "-s 1m -r 4k"),
        ("-s 1m -R", "-r", "4k", "-s 1m -R -r 4k"),
        ("-I -s 1m", "-I", "off", "-s 1m"),
        ("-s 1m", "-I", "on", "-s 1m -I"),
        ("-s 1m --sync=a", "--sync", "b", "-s 1m --sync=b"),
    ],
)
def test_a_word_is_replaced_wherever_it_stands(command, path, level, after):
    assert dialects.with_level(find_dialect("iozone"), command, path, level) == after


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('dialect = "iozon"', "did you mean"),
        ('dialect = "iozone"', "'command' is missing"),
        ('dialect = "iozone"\ncommand = "-i 77"', "workloads"),
        ('dialect = "iozone"\ncommand = "--on loop:1g -i 0"', "says where and how often"),
        ('dialect = "bonnie++"\ncommand = "-x 3 -d ."', "says where and how often"),
        ('dialect = "iozone"\ncommand = "-h"', "measures nothing"),
        ('dialect = "iozone"\ncommand = "-i 0 -b x.xls"', "workbook"),
        ('dialect = "iozone"\ncommand = "-i 0"\nfile = "x"', "a command, not a file"),
        ('dialect = "iozone"\ncommand = "-i \'0"', "ends too early"),
        ('dialect = "iozone"\ncommand = "-i 0"\nvary = { "-r" = ["4k"] }', "two levels"),
        ('dialect = "iozone"\ncommand = "-i 0"\nvary = { "-r" = ["4k", "4k"] }', "given twice"),
        ('dialect = "iozone"\ncommand = "-i 0"\nsettings = { direct = true }', "direct"),
        ('dialect = "mkfile"\ncommand = "1m a b"\nvary = { "-v" = ["off", "on"] }', "unlike"),
        ('file = "missing.toml"', "cannot be read"),
        ('dialect = "iolab"\ncommand = "-i 0"', "a file, not a command"),
        ("dialect = 3", "not a dialect"),
    ],
)
def test_what_is_wrong_with_an_entry_is_said_where_it_stands(tmp_path, entry, said):
    path = tmp_path / "study.toml"
    path.write_text(f"{STUDY}\n[[workloads]]\n{entry}")
    with pytest.raises(IolabError) as caught:
        load_study(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["direct", "engine", "record_size", "verify"])
def test_what_a_command_says_itself_cannot_be_chosen_beside_it(name):
    levels = {"direct": "true", "engine": '"psync"', "record_size": '"4k"', "verify": '"full"'}
    text = f"{STUDY}\n[settings]\n{name} = {levels[name]}\n"
    with pytest.raises(StudyError, match=f"{name} cannot be chosen for 'iozone'"):
        parse_study(f'{text}[[workloads]]\ndialect = "iozone"\ncommand = "-i 0"')


def test_the_sizes_of_a_command_and_a_factor_cannot_both_vary():
    text = STUDY + 'record_size = ["4k", "8k"]\n'
    with pytest.raises(StudyError, match="varied by the command"):
        parse_study(f'{text}[[workloads]]\ndialect = "iozone"\ncommand = "-a -i 0"')


def test_a_simulation_refuses_what_goes_through_the_page_cache():
    text = STUDY.replace("loop:1g", "sim:fixed-100us").replace('"bfq"', '"mq-deadline"')
    workload = '[[workloads]]\ndialect = "iozone"\ncommand = "-s 1m -i 0{}"'
    testbed = make_testbed("sim", "fixed-100us", {})
    check_plan(testbed, make_plan(parse_study(text + workload.format(" -I")).with_seed(1)), _core)
    with pytest.raises(StudyError, match="goes through the page cache") as caught:
        check_plan(testbed, make_plan(parse_study(text + workload.format("")).with_seed(1)), _core)
    assert "add -I" in caught.value.hint


# Files.


class Files:
    """Stands for the compiled half: each text is a workload of its number of bytes."""

    def workload_file_anchored(self, folder, text):
        return text

    def workload_file(self, subject, text):
        (line,) = text.split()
        if not line.isdecimal():
            raise StudyError(f"{subject}: '{line}' is no number", "write one")
        described = json.loads(_core.dialect_parse("iozone", ["-i", "0", "-I", "-s", line]))
        return json.dumps(described["rows"][0]["workload"] | {"name": subject})


@pytest.fixture
def files(monkeypatch):
    monkeypatch.setattr(read_dialect, "_core", Files)


def written(folder: Path, text: str, entry: str) -> Path:
    (folder / "one.toml").write_text(text)
    study = folder / "study.toml"
    study.write_text(f"{STUDY}\n[[workloads]]\n{entry}")
    return study


@pytest.mark.usefixtures("files")
def test_a_file_lies_beside_the_study_and_its_text_is_kept(tmp_path, monkeypatch):
    path = written(tmp_path, "1024\n", 'file = "one.toml"')
    monkeypatch.chdir("/")
    study = load_study(path)
    (workload,) = study.workloads
    assert isinstance(workload, DialectWorkload)
    assert (workload.name, workload.dialect, workload.text) == ("one", "iolab", "1024\n")
    (tmp_path / "one.toml").unlink()
    assert parse_study(spec_toml(study)) == study


@pytest.mark.usefixtures("files")
def test_a_name_in_a_file_is_varied(tmp_path):
    path = written(tmp_path, "${size}", 'file = "one.toml"\nvary = { size = ["64", "128"] }')
    study = load_study(path)
    (workload,) = study.workloads
    assert [row.levels for row in workload.rows] == [(("one:size", "64"),), (("one:size", "128"),)]
    assert [row.tenants[0]["file_bytes"] for row in workload.rows] == [65536, 131072]
    assert parse_study(spec_toml(study)) == study


@pytest.mark.usefixtures("files")
def test_a_file_that_is_wrong_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"one\.toml: 'x' is no number"):
        load_study(written(tmp_path, "x", 'file = "one.toml"'))
    with pytest.raises(StudyError, match=r"there is no \$\{size\}"):
        load_study(written(tmp_path, "1", 'file = "one.toml"\nvary = { size = ["1", "2"] }'))


@pytest.mark.usefixtures("files")
def test_random_numbers_of_a_file_are_those_of_the_round(tmp_path):
    from iolab.run.trial import trial_spec

    plan = make_plan(load_study(written(tmp_path, "64", 'file = "one.toml"')))
    first, second = (plan.round_trials(number)[0] for number in (1, 2))
    specs = [trial_spec(trial, _core, is_fresh_fs=True) for trial in (first, second)]
    assert [spec["workload"]["seed"] for spec in specs] == [first.seed, second.seed]
    assert first.seed != second.seed


# The registry.


@pytest.mark.parametrize("text", ["iozone -i 0", "bonnie++ -d .", "mkfile 1m a", "dir/x.toml"])
def test_each_dialect_is_known_by_what_is_typed(text):
    entry = dialects.described_entry(text)
    assert entry is not None
    assert entry["dialect"] in {row.name for row in DIALECTS}


@pytest.mark.parametrize("text", ["equal-readers", "iozoned -i 0", ""])
def test_another_word_is_no_dialect(text):
    assert dialects.described_entry(text) is None


def test_the_order_is_part_of_what_a_plan_is():
    text = {
        "testbed": "loop:1g",
        "seed": 7,
        "rounds": 2,
        "workloads": [{"dialect": "iozone", "command": "-a -i 0 -n 64k -g 128k"}],
    }
    study = study_from_table(text, FlagSource({}))
    random = make_plan(study)
    ordered = make_plan(replace(study, command=("iozone",)))
    assert random.digest != ordered.digest

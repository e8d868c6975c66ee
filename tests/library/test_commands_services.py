"""Commands, called from Python: typed values in, results out, nothing printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import iolab
from iolab.errors import IolabError, RefusedError
from iolab.library import archives
from iolab.library.answer import AnswerForm, answer, printed_answer
from iolab.library.comparing import GateQuestion, diff_studies, gate_levels, gate_studies
from iolab.library.flag_words import StudyKeys, StudyWords, factor_flags
from iolab.library.noise_study import noise_study
from iolab.library.preset_list import preset_study, presets
from iolab.library.services import Services
from iolab.library.study import is_testbed_from_file
from iolab.library.tables import TableWords

KEYS = StudyKeys({"testbed": "sim:fixed-100us"}, {"testbed": "--on"})


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A small study in simulation."""
    place = tmp_path_factory.mktemp("stored") / "study"
    study = iolab.Study(
        testbed="sim:fixed-100us",
        factors={"scheduler": ["noop", "deadline"]},
        settings={"file_size": "1m", "record_size": "4k"},
        workload={"name": "iozone", "kind": "iozone", "tests": ["read"]},
        rounds=3,
        seed=7,
    )
    iolab.run(study, out=place)
    return place


def test_words_of_the_command_line_make_the_study_that_arguments_make():
    keys = StudyKeys({"testbed": "sim:fixed-100us", "rounds": 3, "name": "s"}, {})
    words = StudyWords(keys, {"scheduler": ["noop,deadline"], "direct": [True]}, tests="read")
    assert not words.compares_record_sizes
    assert words.study() == iolab.Study(
        testbed="sim:fixed-100us",
        factors={"scheduler": ["noop", "deadline"]},
        settings={"direct": True},
        workload={"name": "iozone", "kind": "iozone", "tests": ["read"]},
        rounds=3,
        name="s",
    )


def test_words_without_levels_compare_record_sizes():
    words = StudyWords(KEYS, {})
    assert words.compares_record_sizes
    assert words.study().factors == {"record_size": ("4k", "16k", "64k")}
    assert not StudyWords(KEYS, {"scheduler": ["noop"]}).compares_record_sizes


def test_a_wrong_word_is_told_with_its_flag():
    with pytest.raises(IolabError, match="--knob x lacks a value"):
        StudyWords(KEYS, {}, knobs=["x"]).study()
    with pytest.raises(IolabError, match="there is no workload 'vide'; "):
        StudyWords(KEYS, {}, workloads=["video"], varied=["vide:a=1,2"]).study()


def test_every_factor_has_one_flag():
    flags = [flag for row in factor_flags() for flag in (row.flag, *row.opposites, *row.aliases)]
    assert len(flags) == len(set(flags)) > len(presets())


def test_a_device_that_a_file_names_is_known_as_such(tmp_path):
    """`iolab aa --workload` took a file's device for one that the user had typed."""
    path = tmp_path / "study.toml"
    path.write_text(preset_study("video", "device:/dev/null", "1s", "1m"))
    assert is_testbed_from_file(
        noise_study(StudyWords(StudyKeys({}, {}), {}, workloads=(str(path),)), None)
    )
    assert not is_testbed_from_file(noise_study(StudyWords(KEYS, {}, workloads=(str(path),)), None))
    assert not is_testbed_from_file(noise_study(StudyWords(KEYS, {}), "20us"))


def test_an_answer_is_a_text_and_files(stored, tmp_path):
    found = answer(stored, tmp_path / "report", AnswerForm(), Services(), note=pytest.fail)
    assert found.text.startswith(iolab.open(stored).verdict.sentence[:20])
    assert [label for label, _ in found.files] == ["report", "workbook", "verdict", "data"]
    assert all(path.is_file() for _, path in found.files)
    printed = printed_answer(stored, "json", AnswerForm(), Services(), note=pytest.fail)
    assert json.loads(printed.text)["study"]["name"] == iolab.open(stored).name
    assert printed.files == ()


def test_a_study_becomes_a_file_and_a_directory_again(stored, tmp_path):
    class Heard:
        note = result = progress = staticmethod(pytest.fail)
        clear_line = staticmethod(lambda: None)
        ask = staticmethod(pytest.fail)

    file = tmp_path / "a.iolab"
    packed = archives.pack(stored, file, (), Services(), Heard())
    checked = archives.check(file)
    assert (checked.problems, checked.sha256) == ((), packed.sha256)
    with pytest.raises(RefusedError, match="exists already"):
        archives.pack(stored, file, (), Services(), Heard())
    assert archives.extract(file, tmp_path / "again").n_files == checked.n_files
    texts = archives.export(stored, "fio", Services(), note=pytest.fail).texts()
    assert len(texts) == 2


def test_a_study_is_no_worse_than_itself(stored):
    words, path = TableWords(), str(stored)
    diff = diff_studies(path, path, words, note=pytest.fail)
    assert {cell.effect.ratio for cell in diff.diff.cells} == {1.0}
    gated = gate_studies(GateQuestion([path], [path], words), note=pytest.fail)
    assert gated.result.outcome == "pass"
    assert gate_levels(path, "", words, note=pytest.fail).result.cells
    with pytest.raises(IolabError, match="--unit 'x' says how a table is to be read"):
        diff_studies(path, path, TableWords(unit="x"), note=pytest.fail)

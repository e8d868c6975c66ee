"""The notebook runs, and what it shows is what is stored in it."""

import copy
import itertools
import json

import pytest

import gen_docs
import notebooks

NOTEBOOK = notebooks.ROOT / notebooks.NOTEBOOKS[0]
pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def stored():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found(stored, tmp_path_factory):
    """Every cell with what it shows now; the notebook is run once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("notebook"))
        return list(notebooks.executed(stored))


def test_what_the_notebook_shows_is_stored_in_it(found):
    assert list(notebooks.compared(found)) == []


def test_cells_that_only_define_show_nothing_and_others_do(found):
    shown = [bool(outputs) for _, outputs in found]
    assert shown.count(True) >= 12
    assert not shown[0], "the import shows nothing"


def test_a_difference_is_noticed(tmp_path, monkeypatch):
    """Of a cell that prints, of one with a value, and of one that only must show something."""
    monkeypatch.chdir(tmp_path)
    cell = {"cell_type": "code", "metadata": {}, "source": ["print('a')\n", "1 + 1"]}
    text = {"output_type": "stream", "name": "stdout", "text": ["a\n"]}
    value = {"output_type": "execute_result", "data": {"text/plain": ["2"]}}
    right = {"cells": [{**cell, "outputs": [text, value]}]}
    assert list(notebooks.differences(right)) == []
    for wrong in ([text], [{**text, "text": ["b\n"]}, value], [value]):
        assert list(notebooks.differences({"cells": [{**cell, "outputs": wrong}]}))
    varies = copy.deepcopy(right)
    varies["cells"][0]["metadata"] = {"tags": ["varies"]}
    varies["cells"][0]["outputs"][1]["data"]["text/plain"] = ["3"]
    assert list(notebooks.differences(varies)) == []
    varies["cells"][0]["outputs"] = [text]
    assert list(notebooks.differences(varies))


def test_an_error_in_a_cell_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cell = {"cell_type": "code", "metadata": {}, "source": ["1 / 0"], "outputs": []}
    with pytest.raises(ZeroDivisionError):
        list(notebooks.differences({"cells": [cell]}))


def test_every_code_cell_is_explained(stored):
    """Text stands before code: no two cells of code follow each other, but for one example."""
    kinds = [cell["cell_type"] for cell in stored["cells"]]
    pairs = list(itertools.pairwise(kinds))
    assert pairs.count(("code", "code")) <= 1
    assert kinds[0] == "markdown"
    text = [" ".join(c["source"]) for c in stored["cells"] if c["cell_type"] == "markdown"]
    assert len(" ".join(text).split()) > 500


def test_links_of_the_notebook_are_checked(tmp_path):
    (tmp_path / "docs").mkdir()
    cell = {"cell_type": "markdown", "source": ["# A page\n", "see [a](nowhere.md)"]}
    path = tmp_path / "docs" / "x.ipynb"
    path.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    assert list(gen_docs.broken_links(tmp_path)) == ["docs/x.ipynb: broken link nowhere.md"]

"""Public names of `import iolab`, which mean the same whatever was imported before."""

import importlib
import inspect
import pickle
import subprocess
import sys

import pytest

import iolab

PUBLIC = ("Progress", "Result", "SimulatedTrial", "StopSwitch", "Study", "open", "run", "simulate")


def printed(program, cwd):
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_public_name_is_there_and_documented():
    assert set(PUBLIC) <= set(iolab.__all__) <= set(dir(iolab))
    for name in iolab.__all__:
        assert inspect.getdoc(getattr(iolab, name)), name


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'iolab' has no attribute 'rum'"):
        getattr(iolab, "rum")  # noqa: B009 - the type checker knows that it is missing


@pytest.mark.parametrize(
    "before", ["import iolab.run.campaign", "from iolab.run import trial", "import iolab.cli.run"]
)
def test_run_is_the_function_although_a_package_has_its_name(tmp_path, before):
    """A sub-package is bound to its parent by the import system; the public name must stay."""
    for program in (f"{before}\nimport iolab", f"import iolab\nf = iolab.run\n{before}"):
        assert printed(f"{program}\nprint(type(iolab.run).__name__)", tmp_path) == "function\n"


def test_the_package_below_the_function_can_be_imported():
    assert importlib.import_module("iolab.run.campaign").Campaign.__name__ == "Campaign"


def test_public_functions_can_be_sent_to_workers():
    for name in ("run", "simulate", "open"):
        assert pickle.loads(pickle.dumps(getattr(iolab, name))) is getattr(iolab, name)


def test_public_functions_say_what_they_take_return_and_raise():
    for name in ("run", "simulate", "open"):
        text = inspect.getdoc(getattr(iolab, name)) or ""
        for parameter in inspect.signature(getattr(iolab, name)).parameters:
            assert f"\n{parameter} : " in text, f"{name} does not explain {parameter}"
        assert "\nReturns\n" in text
        assert "\nRaises\n" in text

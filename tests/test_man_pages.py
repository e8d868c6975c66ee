"""Manual pages: whole, clean for both checkers, with examples that the parsers understand."""

import importlib
import os
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import gen_docs
import man_pages
from iolab.cli.all_parsers import command_parser, subject_parsers
from iolab.cli.main import COMMANDS, DIALECTS
from iolab.library.program_options import program_sections

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / man_pages.FOLDER).glob("*.1"))
MODULES = {name: module for name, module, _ in COMMANDS}


def test_there_is_a_page_of_every_command_and_no_other():
    names = {path.name for path in PAGES}
    assert names == {"iolab.1", *(f"iolab-{name}.1" for name in (*MODULES, *DIALECTS))}


@pytest.mark.parametrize("program", DIALECTS)
def test_a_page_of_another_program_has_every_row_of_its_tables(program):
    """`man iolab-fio` did not exist: the options were on the reference pages alone."""
    text = (ROOT / man_pages.FOLDER / f"iolab-{program}.1").read_text(encoding="utf-8")
    sections = program_sections(program)
    assert any(section.has_options for section in sections)
    for section in sections:
        assert section.rows, section.title
        for row in section.rows:
            assert man_pages._text(row.shown) in text, row
            assert row.about, row


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_is_clean_for_mandoc(page):
    if shutil.which("mandoc") is None:
        pytest.skip("needs mandoc")
    done = subprocess.run(
        ["mandoc", "-T", "lint", page], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_is_clean_for_man(page):
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("needs man-db and groff")
    done = subprocess.run(
        ["man", "--warnings", "-Tutf8", "-l", page],
        check=False,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"STATUS" in re.sub(rb".\x08", b"", done.stdout)


@pytest.mark.parametrize("name", MODULES)
def test_a_page_has_every_option(name):
    text = (ROOT / man_pages.FOLDER / f"iolab-{name}.1").read_text(encoding="utf-8")
    module = MODULES[name]
    for parser in (*subject_parsers(module).values(), command_parser(module)):
        if parser.prog == f"iolab {name}" and subject_parsers(module):
            continue  # Its words are the names of its own commands.
        for _, actions in man_pages.groups(parser):
            for flag in (flag for action in actions for flag in action.option_strings):
                assert rf"\fB{flag.replace('-', chr(92) + '-')}\fR" in text, flag


@pytest.mark.parametrize("line", [line for rows in man_pages.EXAMPLES.values() for line, _ in rows])
def test_an_example_is_understood(line):
    _, name, *words = shlex.split(line.removeprefix("sudo "))
    command_parser(MODULES[name]).understand(words)


def test_the_files_that_a_page_names_are_those_of_the_reference():
    files = (ROOT / "docs/reference/files.md").read_text(encoding="utf-8")
    for name, _ in man_pages.FILES:
        assert name in files, name
    for name, _ in man_pages.ENVIRONMENT:
        assert name.isupper()


def test_they_are_part_of_what_is_installed(monkeypatch):
    given = {}
    setuptools = importlib.import_module("setuptools")
    monkeypatch.setattr(setuptools, "setup", lambda **words: given.update(words))
    runpy.run_path(str(ROOT / "setup.py"))
    ((place, names),) = given["data_files"]
    assert place == "share/man/man1"
    assert names == [path.relative_to(ROOT).as_posix() for path in PAGES]


def test_a_line_never_begins_like_a_request():
    for text in gen_docs.man_pages._filled(". dot"), gen_docs.man_pages._filled("'a"):
        assert text[0].startswith(r"\&")


def _exit_codes(name):
    text = (ROOT / man_pages.FOLDER / f"iolab-{name}.1").read_text(encoding="utf-8")
    section = text.partition(".SH EXIT STATUS")[2].partition(".SH ")[0]
    return {int(code) for code in re.findall(r"^\\fB(\d+)\\fR$", section, re.MULTILINE)}


@pytest.mark.parametrize("name", MODULES)
def test_a_page_has_the_exit_codes_that_its_command_can_have(name):
    """Every page had all nine, with those of other commands."""
    codes = _exit_codes(name)
    assert {0, 1, 70, 130} <= codes
    assert 128 not in codes, "that of `iolab fio`"
    flags = {f for a in command_parser(MODULES[name])._actions for f in a.option_strings}
    assert (4 in codes) == ("--strict" in flags or name in ("gate", "check"))
    assert (3 in codes) <= (2 in codes)
    if "--overwrite" in flags or "--erase-serial" in flags:
        assert 2 in codes


def test_exit_codes_of_pages_name_commands():
    assert {name for names in man_pages.EXITS.values() for name in names} <= set(MODULES)
    assert _exit_codes("doctor") == {0, 1, 70, 130}

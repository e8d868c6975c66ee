"""The documents' checks can fail."""

import pytest

import gen_docs
import iolab
import library_page


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[a](b.md)", None),
        ("[a](b.md#a-heading-of-b)", None),
        ("[a](https://example.org/x)", None),
        ("```\n[a](nowhere.md)\n```", None),
        ("[a](nowhere.md)", "docs/a.md: broken link nowhere.md"),
        ("[a](b.md#other)", "docs/a.md: no heading for b.md#other"),
        ("[a](#other)", "docs/a.md: no heading for #other"),
    ],
)
def test_links(tmp_path, text, problem):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(text, encoding="utf-8")
    (docs / "b.md").write_text("# A heading: of `b`\n", encoding="utf-8")
    assert list(gen_docs.broken_links(tmp_path)) == ([] if problem is None else [problem])


def test_index_lists_every_page(tmp_path):
    folder = tmp_path / "docs" / "how-to"
    folder.mkdir(parents=True)
    (folder / "fry-an-egg.md").write_text("# Fry an egg\n", encoding="utf-8")
    index = tmp_path / "docs" / "README.md"
    index.write_text("# Documents\n\nBy hand.\n", encoding="utf-8")
    index.write_text(gen_docs.index_page(tmp_path), encoding="utf-8")
    assert index.read_text(encoding="utf-8") == gen_docs.index_page(tmp_path)
    assert "# Documents\n\nBy hand.\n" in index.read_text(encoding="utf-8")
    assert "## How-to\n\n- [Fry an egg](how-to/fry-an-egg.md)\n" in gen_docs.index_page(tmp_path)


def test_drift_is_a_problem_only_when_checking(tmp_path):
    pages = {"docs/x.md": lambda: "new\n"}
    problem = "docs/x.md: differs from its source; run `make docs`"
    assert list(gen_docs.drifted_pages(tmp_path, pages, is_check=True)) == [problem]
    assert list(gen_docs.drifted_pages(tmp_path, pages, is_check=False)) == []
    assert list(gen_docs.drifted_pages(tmp_path, pages, is_check=True)) == []


def documented():
    """Does a thing, as :func:`iolab.run` does.

    See `docs/reference/metrics.md`.

    Parameters
    ----------
    name : a name, ``"x"``;
        a second line.

    Returns
    -------
    int : bytes.
    """


def test_a_docstring_becomes_lists():
    assert library_page.sections(documented) == (
        "Does a thing, as `iolab.run` does.\n\nSee [metrics](metrics.md).\n\n"
        '**Parameters**\n\n- `name`: a name, `"x"`;\n  a second line.\n\n'
        "**Returns**\n\n- `int`: bytes."
    )


def test_what_is_public_must_be_documented():
    class Public:
        """A class."""

        def bare(self) -> int: ...

    with pytest.raises(ValueError, match=r"bare has no docstring"):
        list(library_page.members(Public))


def test_the_library_page_has_every_public_name():
    text = "\n\n".join(library_page.blocks())
    for name in iolab.__all__:
        assert f"`{name}`" in text or f"## `{name}`" in text
    assert "StopSwitch.drain" not in text

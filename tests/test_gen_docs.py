"""The documents' checks can fail."""

import pytest

import gen_docs


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
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text("[a](a.md)", encoding="utf-8")
    (docs / "a.md").touch()
    assert list(gen_docs.unlisted_pages(tmp_path)) == []
    (docs / "b.md").touch()
    assert list(gen_docs.unlisted_pages(tmp_path)) == ["docs/README.md: does not list docs/b.md"]


def test_drift_is_a_problem_only_when_checking(tmp_path):
    pages = {"docs/x.md": lambda: "new\n"}
    problem = "docs/x.md: differs from its source; run `make docs`"
    assert list(gen_docs.drifted_pages(tmp_path, pages, is_check=True)) == [problem]
    assert list(gen_docs.drifted_pages(tmp_path, pages, is_check=False)) == []
    assert list(gen_docs.drifted_pages(tmp_path, pages, is_check=True)) == []

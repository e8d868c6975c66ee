"""Pictures of the tutorial about noise: drawn anew from their data, and fit to be read."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "tutorial" / "noise-in-pictures.md"
CHAR_PX = 6.6
"""Width of a letter of 12 px, about."""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "iolab_noise_pictures", ROOT / "tools" / "noise_pictures.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["iolab_noise_pictures"] = module
    spec.loader.exec_module(module)
    return module


def test_pictures_are_those_of_their_data_and_the_page_says_what_they_say(
    tool: ModuleType,
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = tool.pictures()
    assert len(found) == 3
    for name, (text, caption) in found.items():
        assert (ROOT / "docs" / "images" / name).read_text(encoding="utf-8") == text
        assert f"(../images/{name})\n\n*{caption}*" in page
    assert tool.page_text(page) == page
    said, logs, _ = tool.series_of(tool.DATA)
    assert f"Measured: {said}; {len(logs)} slices" in page


def test_pictures_fit_a_small_screen_and_name_axes_and_units(tool: ModuleType) -> None:
    for name, (text, _) in tool.pictures().items():
        assert 'width="400"' in text
        assert len(text) < 20_000, name
        assert re.search(r"<text[^>]*>[^<]*\((s|%)\)</text>", text), name
        assert "font:12px" in text
        for x, anchor, words in re.findall(
            r'<text x="([\d.]+)" y="[\d.]+"([^>]*)>([^<]*)</text>', text
        ):
            if "rotate" in anchor:
                continue
            wide = CHAR_PX * len(words)
            shift = 1.0 if "end" in anchor else 0.5 if "middle" in anchor else 0.0
            left = float(x) - shift * wide
            assert left >= -4, words
            assert left + wide <= 404, words

"""Files of drawings by their endings; images are compared with the drawing, point by point."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from iolab.errors import IolabError
from iolab.library import drawn_file
from iolab.library.drawn_file import SCALE, check_ending, content_of, cut_to_height, png_of

SIGNATURE = b"\x89PNG\r\n\x1a\n"
WIDTH, HEIGHT = 300, 120
DRAWING = f"""<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"
 viewBox="0 0 {WIDTH} {HEIGHT}"><rect x="0" y="0" width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<rect x="0" y="{HEIGHT - 10}" width="{WIDTH}" height="10" fill="#0072b2"/></svg>
"""


def chunk(name: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + name
        + content
        + struct.pack(">I", zlib.crc32(name + content))
    )


def image(width: int, rows: list[bytes], *, depth: int = 8, color: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, len(rows), depth, color, 0, 0, 0)
    packed = zlib.compress(b"".join(rows))
    halves = chunk(b"IDAT", packed[:5]) + chunk(b"IDAT", packed[5:])
    return SIGNATURE + chunk(b"IHDR", header) + halves + chunk(b"IEND", b"")


def points(found: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and rows of an image, filters undone."""
    place, parts = len(SIGNATURE), dict[bytes, bytes]()
    while place < len(found):
        length, name = struct.unpack_from(">I4s", found, place)
        content = found[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", found, place + 8 + length)[0] == zlib.crc32(name + content)
        parts[name] = parts.get(name, b"") + content
        place += length + 12
    width, height, _, color = struct.unpack_from(">IIBB", parts[b"IHDR"])
    pixel = {2: 3, 6: 4}[color]
    data, before, rows = zlib.decompress(parts[b"IDAT"]), bytes(width * pixel), list[bytes]()
    for number in range(height):
        begin = number * (1 + width * pixel)
        before = unfiltered(data[begin], data[begin + 1 : begin + 1 + width * pixel], before, pixel)
        rows.append(before)
    assert len(data) == height * (1 + width * pixel)
    return (
        width,
        height,
        [b"".join(row[at : at + 3] for at in range(0, len(row), pixel)) for row in rows],
    )


def unfiltered(kind: int, row: bytes, above: bytes, pixel: int) -> bytes:
    """A row as it was before its filter (PNG, section 9.2)."""
    done = bytearray(row)
    for at, value in enumerate(row):
        a = done[at - pixel] if at >= pixel else 0
        b, c = above[at], above[at - pixel] if at >= pixel else 0
        nearest = min((a, b, c), key=lambda one: abs(a + b - c - one))
        done[at] = (value + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
    return bytes(done)


def test_rows_below_the_drawing_are_cut() -> None:
    rows = [b"\x02" + bytes([n] * 6) for n in range(5)]  # Each relative to the one above.
    assert points(cut_to_height(image(2, rows), 2, 3)) == (2, 3, points(image(2, rows))[2][:3])


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"GIF89a",
        SIGNATURE,
        image(3, [b"\0" + bytes(9)] * 3),
        image(2, [b"\0" + bytes(6)] * 2),
        image(2, [b"\0" + bytes(12)] * 3, depth=16),
    ],
    ids=["empty", "gif", "nothing", "wide", "low", "deep"],
)
def test_another_image_is_refused(wrong: bytes) -> None:
    with pytest.raises(ValueError, match="it "):
        cut_to_height(wrong, 2, 3)


@pytest.mark.needs_chromium
def test_an_image_is_the_drawing_to_its_last_row() -> None:
    width, height, rows = points(png_of(DRAWING))
    assert (width, height) == (SCALE * WIDTH, SCALE * HEIGHT)
    blue = bytes.fromhex("0072b2") * width
    assert [row == blue for row in rows] == [False] * (SCALE * (HEIGHT - 10)) + [True] * 10 * SCALE
    assert rows[0] == b"\xff" * 3 * width


def test_without_a_browser_only_images_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_file, "BROWSERS", ("no-such-browser",))
    with pytest.raises(IolabError, match="none is installed") as refused:
        check_ending(Path("a.png"))
    assert "end the name in .svg" in refused.value.hint
    for name in ("a.svg", "a.html", "A.SVG"):
        check_ending(Path(name))
    assert content_of(Path("a.svg"), lambda: "page", lambda: "drawing") == b"drawing"
    assert content_of(Path("a.html"), lambda: "page", lambda: "drawing") == b"page"


def test_a_browser_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_file, "BROWSERS", ("false",))
    with pytest.raises(IolabError, match="made no image of the drawing: it ended with code 1"):
        png_of(DRAWING)

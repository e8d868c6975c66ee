"""Files of charts and pictures by their endings: pages, drawings, and PNG images of drawings.

An image is made by a browser of the Chromium family if one is installed: it is the program that
shows the drawing as everybody sees it, and no library that draws text is needed for it. Left out:
other browsers, whose command lines for images differ.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from iolab.errors import IolabError
from iolab.wording import nearest

PAGE, DRAWING, IMAGE = ".html", ".svg", ".png"
ENDINGS: Final = (PAGE, DRAWING, IMAGE)
SCALE: Final = 2
"""Pixels of an image per unit of a drawing, so that text is sharp in print."""
BROWSERS: Final = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    *("microsoft-edge", "brave-browser"),
)
_SECONDS_MAX: Final = 120
_ROOM: Final = 200
"""Added to the height of the window: some browsers count their own frame as part of it."""
_SIZE: Final = re.compile(r'viewBox="0 0 (\d+) (\d+)"')
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_BYTES_PER_PIXEL: Final = {2: 3, 6: 4}
"""Of images with 8 bits per sample, by type of colour: RGB and RGBA (PNG, section 11.2.1)."""


def check_ending(place: Path) -> None:
    """Refuse a file whose ending says nothing.

    Raises
    ------
    IolabError : it is neither a page nor a drawing nor an image.
    """
    if place.suffix.lower() not in ENDINGS:
        raise IolabError(
            f"{place}: no chart is written as '{place.suffix}'{nearest(place.suffix, ENDINGS)}",
            f"end the name in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
        )
    if place.suffix.lower() == IMAGE:
        _browser()


def holds_several(place: Path) -> bool:
    """Tell whether a file can hold more than one chart."""
    return place.suffix.lower() == PAGE


def content_of(place: Path, page: Callable[[], str], drawing: Callable[[], str]) -> bytes:
    """Content of a file, as its ending says.

    Parameters
    ----------
    place : a name that `check_ending` takes.
    page, drawing : make the page or the drawing.

    Raises
    ------
    IolabError : no image could be made.
    """
    ending = place.suffix.lower()
    if ending == PAGE:
        return page().encode()
    if ending == DRAWING:
        return drawing().encode()
    return png_of(drawing())


def png_of(svg: str) -> bytes:
    """Image of a drawing that begins at 0, 0 and names its size in ``viewBox``.

    Raises
    ------
    IolabError : there is no browser, or it makes no image.
    """
    found = _SIZE.search(svg)
    assert found is not None, "our drawings have a size"
    width, height = int(found[1]), int(found[2])
    program = _browser()
    with tempfile.TemporaryDirectory(prefix="iolab-png-", ignore_cleanup_errors=True) as folder:
        source, image = Path(folder, "drawing.svg"), Path(folder, "image.png")
        source.write_text(svg, encoding="utf-8")
        command = [
            *(program, "--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run"),
            *("--disable-extensions", "--disable-dev-shm-usage"),
            *(f"--user-data-dir={folder}/profile", f"--force-device-scale-factor={SCALE}"),
            *(f"--window-size={width},{height + _ROOM}", f"--screenshot={image}"),
            *(["--no-sandbox"] if os.geteuid() == 0 else []),  # It refuses to start otherwise.
            source.as_uri(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS_MAX, check=False)
            if not image.is_file():
                raise ValueError(f"it ended with code {done.returncode}")
            return cut_to_height(image.read_bytes(), width * SCALE, height * SCALE)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise IolabError(
                f"{program} made no image of the drawing: {error}",
                f"end the name in {DRAWING}, which needs no browser",
            ) from None


def _browser() -> str:
    """Path of a browser.

    Raises
    ------
    IolabError : there is none.
    """
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        raise IolabError(
            "a PNG image is made by a browser of the Chromium family, and none is installed",
            f"install chromium, or end the name in {DRAWING}, which needs nothing",
        )
    return program


def cut_to_height(image: bytes, width: int, height: int) -> bytes:
    """Image without the rows below `height`; a row of a PNG depends on those above it alone.

    Raises
    ------
    ValueError : it is no PNG of that width and of at least that height.
    """
    chunks = list(_chunks(image))
    header = dict(chunks).get(b"IHDR", b"")
    if len(header) != struct.calcsize(">IIBBBBB"):
        raise ValueError("it has no header")
    found_width, found_height, depth, color, *rest = struct.unpack(">IIBBBBB", header)
    pixel = _BYTES_PER_PIXEL.get(color)
    if depth != 8 or pixel is None or any(rest) or found_width != width or found_height < height:
        raise ValueError(f"it has {found_width} x {found_height} points, not {width} x {height}")
    rows = zlib.decompress(b"".join(content for name, content in chunks if name == b"IDAT"))
    kept = rows[: height * (1 + width * pixel)]
    written = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, *rest)),
        (b"IDAT", zlib.compress(kept, 9)),
        (b"IEND", b""),
    ]
    return _SIGNATURE + b"".join(_chunk(*one) for one in written)


def _chunks(image: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Names and contents of the parts of a PNG."""
    if not image.startswith(_SIGNATURE):
        raise ValueError("it is no PNG")
    place = len(_SIGNATURE)
    while place + 8 <= len(image):
        length, name = struct.unpack_from(">I4s", image, place)
        yield name, image[place + 8 : place + 8 + length]
        place += length + 12


def _chunk(name: bytes, content: bytes) -> bytes:
    checked = name + content
    return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

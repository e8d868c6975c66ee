"""Packing: the same contents give the same bytes, wherever the same zlib packs them."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iolab.archive.format import (
    MANIFEST,
    MEMBER_NAME,
    MEMBERS_MAX,
    SEAL_BYTES,
    TOTAL_BYTES_MAX,
    ArchiveError,
    Manifest,
    seal_of,
)
from iolab.store.owner import give_to_user

_DATE: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest that ZIP can say; when a file was packed is nobody's business."""
_UNIX: Final = 3
"""``version made by`` (APPNOTE 4.4.2): attributes are those of Unix."""
_LEVEL: Final = 9


def pack(manifest: Manifest, contents: Mapping[str, bytes]) -> bytes:
    """The archive as bytes.

    Raises
    ------
    ArchiveError : it is larger than any reader accepts.
    """
    total = sum(map(len, contents.values()))
    if total > TOTAL_BYTES_MAX or len(contents) > MEMBERS_MAX:
        raise ArchiveError(
            f"the study has {len(contents)} members of {total} bytes, more than an archive holds",
            "copy its directory instead",
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        _add(archive, MANIFEST, manifest.to_json())
        for member in manifest.members:
            if MEMBER_NAME.fullmatch(member.name) is None:
                raise AssertionError(f"{member.name} is no name of a member")
            _add(archive, member.name, contents[member.name])
        archive.comment = bytes(SEAL_BYTES)
    body = buffer.getvalue()[:-SEAL_BYTES]
    return body + seal_of(body)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.create_system = _UNIX
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    archive.writestr(info, content, zipfile.ZIP_DEFLATED, _LEVEL)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet, whole or not at all.

    Raises
    ------
    ArchiveError : it is there, or cannot be written.
    """
    try:
        file = path.open("xb")
    except FileExistsError:
        raise ArchiveError(
            f"{path} exists already", "name another file with --out, or remove it"
        ) from None
    except OSError as error:
        raise ArchiveError(
            f"{path} cannot be made: {error.strerror}", "name another file with --out"
        ) from None
    try:
        with file:
            file.write(content)
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ArchiveError(
                f"{path} cannot be written: {error.strerror}", "make room, or choose another --out"
            ) from None
        raise
    give_to_user(path)

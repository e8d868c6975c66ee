"""Packing: the same contents give the same bytes, wherever the same zlib packs them."""

from __future__ import annotations

import io
import shlex
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
    unpacked_bytes_max,
)
from iolab.store import users_files
from iolab.store.users_files import NOTHING, Allowed

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
    if total > unpacked_bytes_max(len(body)):
        raise ArchiveError(
            f"the study packs to {len(body)} of its {total} bytes, which no reader would believe",
            "copy its directory instead",
        )
    return body + seal_of(body)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _DATE)
    info.create_system = _UNIX
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    archive.writestr(info, content, zipfile.ZIP_DEFLATED, _LEVEL)


def write_new(path: Path, content: bytes, allowed: Allowed = NOTHING) -> None:
    """Write a file that is not there yet, or that the user named, whole or not at all.

    Raises
    ------
    RefusedError : it is there.
    ArchiveError : it cannot be written.
    """
    try:
        users_files.write_new({path: content}, allowed)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise ArchiveError(
                f"{path} cannot be written: there is no directory {path.parent}",
                f"make it first: `mkdir -p {shlex.quote(str(path.parent))}`",
            ) from None
        raise ArchiveError(
            f"{path} cannot be written: {error.strerror}", "make room, or choose another --out"
        ) from None

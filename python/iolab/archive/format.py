"""Form of an archive: names, limits, the manifest; explained in docs/reference/archive.md.

An archive is a ZIP file (PKWARE APPNOTE 6.3) with members of known names only. Its first member is
the manifest, which gives the size and the SHA-256 of each other one and one over all; the comment
at the very end of the file carries the SHA-256 of every byte before it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final, cast

from iolab.errors import DamageError, StoreError
from iolab.frozen import frozen

FORMAT: Final = "iolab-archive"
VERSION: Final = 2
"""The newest; what has no recordings is written as version 1, which every iolab reads."""
SUFFIX: Final = ".iolab"
MANIFEST: Final = "manifest.json"
DATABASE: Final = "study.db"

MEMBER_NAME: Final = re.compile(
    r"study\.db|study\.toml|facts\.json|README\.txt|report\.html|report\.xlsx|verdict\.json"
    r"|commands/(trial-t[0-9]{1,18}\.fio|iozone\.sh)"
    r"|recordings/[0-9a-f]{16}-[A-Za-z0-9._-]{1,60}"
)
"""Every name there is. None leads out of the directory that an archive is unpacked into."""

TOTAL_BYTES_MAX: Final = 1 << 30
"""Of all members, unpacked: some thousand times a usual study."""
SMALL_BYTES: Final = 32 << 20
TIMES_MAX: Final = 30
"""An archive unpacks to at most this many times its size, or to what is small anyway."""
MANIFEST_BYTES_MAX: Final = 4 << 20
MEMBERS_MAX: Final = 20_000
"""Twice the most treatments that a study may have, with what else there is."""

SEAL_BYTES: Final = 71
_SEAL: Final = re.compile(rb"sha256 [0-9a-f]{64}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class ArchiveError(StoreError):
    """A file is no archive, or one that must not be used."""


class DamagedError(ArchiveError):
    """An archive of iolab with a part that no reader could use; perhaps only transfer hurt it."""

    exit_code = DamageError.exit_code


@frozen
class Member:
    """Entry of the manifest for one member."""

    name: str
    size_bytes: int
    sha256: str


@frozen
class Manifest:
    """Head of an archive."""

    iolab_version: str
    study_id: str
    study_name: str
    machine: str
    members: tuple[Member, ...]

    @property
    def version(self) -> int:
        """The oldest version of the format that has all of the members."""
        return VERSION if any(one.name.startswith("recordings/") for one in self.members) else 1

    @property
    def sha256(self) -> str:
        """Digest over all members: that of the text `sha256sum` prints for them, by name."""
        lines = (f"{member.sha256}  {member.name}\n" for member in self.members)
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def to_json(self) -> bytes:
        """The member ``manifest.json``; the same manifest gives the same bytes."""
        document = {
            "format": FORMAT,
            "version": self.version,
            "iolab_version": self.iolab_version,
            "study_id": self.study_id,
            "study_name": self.study_name,
            "machine": self.machine,
            "members": [
                {"name": member.name, "bytes": member.size_bytes, "sha256": member.sha256}
                for member in self.members
            ],
            "sha256": self.sha256,
        }
        return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def members_of(contents: Mapping[str, bytes]) -> tuple[Member, ...]:
    """Describe contents, sorted by name."""
    return tuple(
        Member(name, len(contents[name]), hashlib.sha256(contents[name]).hexdigest())
        for name in sorted(contents)
    )


def parse_manifest(text: bytes, file_name: str) -> Manifest:
    """Manifest of an archive, every value looked at.

    Raises
    ------
    ArchiveError : it is none, damaged (`DamagedError`), or of a newer program.
    """
    try:
        document = json.loads(text)
        name, version = document["format"], document["version"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise DamagedError("the manifest cannot be read") from None
    if name != FORMAT:
        raise ArchiveError(
            f"{file_name} is not an archive of iolab", "name a file that `iolab archive` made"
        )
    if type(version) is int and version > VERSION:
        raise ArchiveError(
            f"{file_name} was written by a newer iolab (archive format {version}, this one knows "
            f"{VERSION})",
            "update iolab",
        )
    try:
        return _manifest(document)
    except (TypeError, KeyError, ValueError) as error:
        raise DamagedError(f"the manifest is damaged ({error})") from None


def _manifest(document: Mapping[str, object]) -> Manifest:
    if document["version"] not in range(1, VERSION + 1):
        raise ValueError(f"there never was an archive format {document['version']!r}")
    members = tuple(_member(row) for row in cast("list[object]", document["members"]))
    names = [member.name for member in members]
    if names != sorted(set(names)):
        raise ValueError("members are not in order, or named twice")
    if DATABASE not in names:
        raise ValueError(f"it has no {DATABASE}")
    texts = [document[key] for key in ("iolab_version", "study_id", "study_name", "machine")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a text is missing")
    manifest = Manifest(*cast("list[str]", texts), members=members)
    if document["version"] != manifest.version:
        raise ValueError("it has members of another version of the format")
    if document["sha256"] != manifest.sha256:
        raise ValueError("its digest over all members is another one")
    return manifest


def _member(row: object) -> Member:
    if not isinstance(row, dict):
        raise TypeError("a member is no table")
    row = cast("Mapping[str, object]", row)
    name, size_bytes, sha256 = row["name"], row["bytes"], row["sha256"]
    if not isinstance(name, str) or MEMBER_NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name of a member")
    if type(size_bytes) is not int or not 0 <= size_bytes <= TOTAL_BYTES_MAX:
        raise ValueError(f"{name} cannot have {size_bytes!r} bytes")
    if not isinstance(sha256, str) or _DIGEST.fullmatch(sha256) is None:
        raise ValueError(f"{name} has no SHA-256")
    return Member(name, size_bytes, sha256)


def seal_of(body: bytes) -> bytes:
    """Seal at the end of the file over the bytes before it."""
    return b"sha256 " + hashlib.sha256(body).hexdigest().encode()


def unpacked_bytes_max(packed_bytes: int) -> int:
    """Number of bytes that an archive of a size may unpack to."""
    return min(TOTAL_BYTES_MAX, max(SMALL_BYTES, TIMES_MAX * packed_bytes))


def is_seal(comment: bytes) -> bool:
    """Tell whether a comment has the form of a seal."""
    return _SEAL.fullmatch(comment) is not None

"""Reading an archive that anybody may have made: nothing is believed before it was looked at.

No member is unpacked before its name, kind and size are accepted; none is written anywhere before
all of them have the digests that the manifest promises.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from iolab.archive.format import (
    MANIFEST,
    MANIFEST_BYTES_MAX,
    MEMBER_NAME,
    MEMBERS_MAX,
    SEAL_BYTES,
    SUFFIX,
    TOTAL_BYTES_MAX,
    ArchiveError,
    DamagedError,
    Manifest,
    Member,
    is_seal,
    parse_manifest,
    seal_of,
    unpacked_bytes_max,
)
from iolab.frozen import frozen
from iolab.store.owner import give_to_user, make_directories
from iolab.store.users_files import LIST_NAME, REPORT_FILES, list_of

_FIRST_BYTES: Final = b"PK\x03\x04"
_NAME_AT: Final = 30
"""Offset of the name in a local header (APPNOTE 4.3.7)."""
_END_OF_DIRECTORY: Final = b"PK\x05\x06"
_DIRECTORY_SIZE_AT: Final = 12
_ENTRY_BYTES_MAX: Final = 256
_PART_BYTES: Final = 1 << 20
_ENCRYPTED: Final = 1
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PROBLEMS_SHOWN: Final = 3
_DIRECTORY_MODE: Final = 0o777


_BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""Exceptions of the standard library for a ZIP file that is not right."""


def may_be_archive(path: Path) -> bool:
    """Tell whether a file is called an archive, which may be damaged, or begins as one does."""
    if path.suffix == SUFFIX:
        return True
    with path.open("rb") as file:
        return file.read(len(_FIRST_BYTES)) == _FIRST_BYTES


class Members(Mapping[str, bytes]):
    """Members of an archive, each unpacked when it is asked for: no two are held at once."""

    def __init__(self, archive: zipfile.ZipFile, names: Sequence[str]) -> None:
        self._archive = archive
        self._names = tuple(names)

    def __getitem__(self, name: str) -> bytes:
        """Content of a member."""
        if name not in self._names:
            raise KeyError(name)
        return _content(self._archive, self._archive.getinfo(name))

    def __iter__(self) -> Iterator[str]:
        """Return the names, in the order of the manifest."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._names)


@frozen
class Inspection:
    """Findings in a file that is an archive, whole or not."""

    path: Path
    manifest: Manifest | None
    contents: Mapping[str, bytes]
    """Members that are as the manifest says."""
    problems: tuple[str, ...]


def inspect(path: Path) -> Inspection:
    """Look at every byte of an archive; what is damaged becomes a problem, not an error.

    Raises
    ------
    ArchiveError : no archive of iolab, one of a newer program, or one that is not to be trusted.
    """
    body = _read_file(path)
    try:
        _check_directory(body, path)
        archive = zipfile.ZipFile(io.BytesIO(body))  # Of memory: nothing is left open.
        sealing = tuple(_seal_problems(archive.comment, body))
        return _looked_at(path, archive, sealing)
    except DamagedError as error:
        if not _is_ours(body):
            raise _foreign(path) from None
        problem = error.message
    except (*_BROKEN, OSError, ValueError) as error:
        if not _is_ours(body):
            raise _foreign(path) from None
        problem = f"the file is cut off, or its table of contents is damaged ({error})"
    return Inspection(path, None, {}, (problem,))


def _looked_at(path: Path, archive: zipfile.ZipFile, sealing: tuple[str, ...]) -> Inspection:
    try:
        infos = _accepted(archive, path)
    except _RefusedError as error:
        if not sealing:
            raise
        raise DamagedError(error.reason) from None  # Not malice: not even the seal is right.
    manifest = parse_manifest(_content(archive, infos.pop(MANIFEST)), str(path))
    problems = list(sealing)
    whole = list[str]()
    for member in manifest.members:
        problem = _look_at(archive, infos.pop(member.name, None), member)
        if problem:
            problems.append(problem)
        else:
            whole.append(member.name)
    problems += [f"{name} is not in the manifest" for name in sorted(infos)]
    return Inspection(path, manifest, Members(archive, whole), tuple(problems))


def read_archive(path: Path) -> Inspection:
    """An archive that is whole.

    Raises
    ------
    DamagedError : it is not; says what is damaged.
    """
    found = inspect(path)
    if found.problems:
        raise DamagedError(f"{path} is damaged: {shown(found.problems)}", "ask for the file again")
    return found


def shown(problems: Sequence[str]) -> str:
    """The first few problems, and how many more there are, as one line."""
    rest = len(problems) - _PROBLEMS_SHOWN
    more = f"; and {rest} more" if rest > 0 else ""
    return "; ".join(problems[:_PROBLEMS_SHOWN]) + more


def unpack(found: Inspection, folder: Path) -> None:
    """Write a whole archive into a directory that is not there yet, or empty; all or nothing.

    Raises
    ------
    ArchiveError : the directory holds something, or cannot be made.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ArchiveError(f"{folder} holds something already", "name another directory with --out")
    try:
        make_directories(folder.parent)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        try:
            drawn = {name: found.contents[name] for name in REPORT_FILES if name in found.contents}
            for name, content in {**found.contents, LIST_NAME: list_of(drawn)}.items():
                target = draft / name
                target.parent.mkdir(exist_ok=True)
                target.write_bytes(content)
            draft.chmod(_DIRECTORY_MODE & ~_umask())
            give_to_user(draft, *draft.rglob("*"))
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise ArchiveError(
            f"{folder} cannot be made: {error.strerror}", "name another directory with --out"
        ) from None


def _read_file(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ArchiveError(f"{path} is not a file", "name a file that `iolab archive` made")
        if path.stat().st_size > TOTAL_BYTES_MAX:
            raise ArchiveError(
                f"{path} is larger than any archive of iolab", "name a file that it made"
            )
        return path.read_bytes()
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror}", "name another file") from (
            None
        )


def _accepted(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Members by name; one that no archive of ours could have condemns the file."""
    infos = archive.infolist()
    if MANIFEST not in archive.NameToInfo:
        raise DamagedError("its table of contents lacks the manifest")
    if len(infos) > MEMBERS_MAX + 1:
        raise _RefusedError(path, f"it has {len(infos)} members")
    found = dict[str, zipfile.ZipInfo]()
    for info in infos:
        if info.filename != MANIFEST and MEMBER_NAME.fullmatch(info.filename) is None:
            raise _RefusedError(path, f"{info.filename!r} is no name of a member")
        if info.filename in found:
            raise _RefusedError(path, f"{info.filename} is in it twice")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG) or info.is_dir():
            raise _RefusedError(path, f"{info.filename} is not a plain file")
        if info.flag_bits & _ENCRYPTED or info.compress_type not in _METHODS:
            raise _RefusedError(path, f"{info.filename} is encrypted or packed in a foreign way")
        found[info.filename] = info
    total = sum(info.file_size for info in infos)
    packed = path.stat().st_size
    if (
        total > min(TOTAL_BYTES_MAX, unpacked_bytes_max(packed))
        or found[MANIFEST].file_size > MANIFEST_BYTES_MAX
    ):
        raise _RefusedError(path, f"it would unpack to {total} bytes")
    return found


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """One member; at most as much as its header admits is ever unpacked."""
    with archive.open(info) as file:
        return file.read(info.file_size + 1)


def _look_at(archive: zipfile.ZipFile, info: zipfile.ZipInfo | None, member: Member) -> str | None:
    if info is None:
        return f"{member.name} is missing"
    if info.file_size != member.size_bytes:
        return f"{member.name} has {info.file_size} bytes instead of {member.size_bytes}"
    digest, size = hashlib.sha256(), 0
    try:
        with archive.open(info) as file:
            while size <= member.size_bytes and (part := file.read(_PART_BYTES)):
                digest.update(part)
                size += len(part)
    except _BROKEN as error:
        return f"{member.name} cannot be unpacked ({error})"
    if size != member.size_bytes or digest.hexdigest() != member.sha256:
        return f"{member.name} is not what the manifest promises (SHA-256 differs)"
    return None


def _check_directory(body: bytes, path: Path) -> None:
    """Refuse a table of contents that nobody could hold, before it is read (APPNOTE 4.3.16)."""
    at = body.rfind(_END_OF_DIRECTORY)
    size = int.from_bytes(body[at + _DIRECTORY_SIZE_AT : at + _DIRECTORY_SIZE_AT + 4], "little")
    if at >= 0 and size > (MEMBERS_MAX + 1) * _ENTRY_BYTES_MAX and _is_ours(body):
        raise _RefusedError(path, f"its table of contents has {size} bytes")


def _seal_problems(comment: bytes, body: bytes) -> Iterator[str]:
    if not is_seal(comment):
        yield "the seal at the end of the file is missing or damaged"
    elif seal_of(body[: -len(comment)]) != comment:
        yield "the file as a whole is not what its seal says (SHA-256 differs)"


def _is_ours(body: bytes) -> bool:
    """Tell whether a file that cannot be read was an archive: it begins or ends like one."""
    begins = body.startswith(_FIRST_BYTES) and body[_NAME_AT:].startswith(MANIFEST.encode())
    return begins or is_seal(body[-SEAL_BYTES:])


def _foreign(path: Path) -> ArchiveError:
    return ArchiveError(
        f"{path} is not an archive of iolab", "name a file that `iolab archive` made"
    )


class _RefusedError(ArchiveError):
    """Something that no archive of ours has."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path} is refused: {reason}; iolab makes no such archive", "do not use this file"
        )
        self.reason = reason


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask

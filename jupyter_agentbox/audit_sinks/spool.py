"""Spools of audit records: files that keep undelivered records when a server stops."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

_SUFFIX: Final = ".jsonl"
#: Suffix of the file of refused records, which are not sent again.
_REJECTED: Final = ".rejected"
_ADD: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
#: Maximum length of a line in bytes. A longer one is not a record; what follows it is not read.
_LONGEST: Final = 1_000_000


class Spool:
    """The file of one server's records for one sink. Methods may be called from any thread.

    Parameters
    ----------
    path : Path
        The file. While the spool is open, no other server considers it left behind.
    most_bytes : int
        Maximum size of the undelivered records, and of the refused ones, in bytes each.
    rejected : Path, optional
        File for records that the sink refuses, shared by all servers; by default next to `path`.
    """

    def __init__(self, path: Path, most_bytes: int, *, rejected: Path | None = None) -> None:
        self.path = path
        self._rejected = rejected or path.with_suffix(_REJECTED)
        self._most = most_bytes
        self._lock = threading.Lock()
        self._file: int | None = None
        self._sent = 0

    @classmethod
    def of(cls, directory: Path, *, address: str, chain: str, most_bytes: int) -> Spool:
        """Return the spool of a chain's records for a sink's address."""
        path = directory / f"{_key(address)}-{chain}{_SUFFIX}"
        return cls(path, most_bytes, rejected=_rejected_of(directory, address))

    @classmethod
    def left_behind(cls, directory: Path, *, address: str, most_bytes: int) -> Iterator[Spool]:
        """Yield the open spools of servers that are gone. Callers close each before taking the next."""
        for path in sorted(directory.glob(f"{_key(address)}-*{_SUFFIX}")):
            spool = cls(path, most_bytes, rejected=_rejected_of(directory, address))
            try:
                spool._file = _locked(path, os.O_RDWR | os.O_APPEND)
            except OSError:  # locked by a running server
                continue
            yield spool

    @classmethod
    def count_left_behind(cls, directory: Path, *, address: str, chain: str) -> int:
        """Return the number of records that other servers than that of this chain have not sent to a sink's address."""
        own = cls.of(directory, address=address, chain=chain, most_bytes=0).path
        return sum(_lines_in(path) for path in directory.glob(f"{_key(address)}-*{_SUFFIX}") if path != own)

    def append(self, lines: Sequence[bytes]) -> None:
        """Add records: all of them or none.

        Raises
        ------
        OSError
            If they cannot be written, or the spool is full.
        """
        data = b"".join(line + b"\n" for line in lines)
        with self._lock:
            file = self._opened()
            size = os.fstat(file).st_size
            if size - self._sent + len(data) > self._most:
                raise OSError(f"more than {self._most:,} bytes wait already")
            _write_whole(file, data)

    def read(self, most: int) -> list[bytes]:
        """Return the first unsent records: about as many bytes as requested, and at least one record."""
        with self._lock:
            data = os.pread(self._opened(), most, self._sent)
            while data and b"\n" not in data and len(data) < _LONGEST:
                more = os.pread(self._opened(), most, self._sent + len(data))
                if not more:
                    return []  # a server was killed while writing it
                data += more
        return data[: data.rfind(b"\n")].split(b"\n") if b"\n" in data else []

    def sent(self, lines: Sequence[bytes]) -> None:
        """Remove the first records, which were sent."""
        with self._lock:
            file = self._opened()
            self._sent += sum(len(line) + 1 for line in lines)
            if self._sent >= os.fstat(file).st_size:
                os.ftruncate(file, 0)
                self._sent = 0

    def set_aside(self, line: bytes) -> Path:
        """Move a record that the sink refuses to a separate file, synced to disk; return that file.

        Raises
        ------
        OSError
            If it cannot be written, or the file is full.
        """
        descriptor = os.open(self._rejected, _ADD, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # this user's other servers use the same file
            size = os.fstat(descriptor).st_size
            if size + len(line) + 1 > self._most:
                raise OSError(f"`{self._rejected}` is full: move it away")
            _write_whole(descriptor, line + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return self._rejected

    def close(self) -> None:
        """Close the file; remove it if it has no unsent records."""
        with self._lock:
            if self._file is None:
                return
            if os.fstat(self._file).st_size <= self._sent:
                with suppress(OSError):
                    self.path.unlink()
            os.close(self._file)
            self._file = None

    def discard(self) -> None:
        """Remove the file, because nothing more in it can be sent."""
        with suppress(OSError):
            self.path.unlink()
        self.close()

    def _opened(self) -> int:
        if self._file is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Locked before it gets its name, so that nobody considers it left behind.
            draft = self.path.with_suffix(".new")
            self._file = _locked(draft, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            draft.replace(self.path)
        return self._file


def _write_whole(descriptor: int, data: bytes) -> None:
    """Append all of the data to a file, or nothing."""
    size = os.fstat(descriptor).st_size
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BaseException:
        os.ftruncate(descriptor, size)
        raise


def _locked(path: Path, flags: int) -> int:
    """Open and lock a file that no other process has open."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"`{path}` is not a file")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lines_in(path: Path) -> int:
    """Return the number of lines of a file; 0 if it is no file, or cannot be read."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return 0
        with path.open("rb") as file:
            return sum(piece.count(b"\n") for piece in iter(lambda: file.read(_LONGEST), b""))
    except OSError:
        return 0


def _rejected_of(directory: Path, address: str) -> Path:
    return directory / f"{_key(address)}{_REJECTED}"


def _key(address: str) -> str:
    """Return an identifier of an address for file names, without secrets."""
    return hashlib.sha256(address.encode()).hexdigest()[:16]

"""Storage of people's sign-ins to MCP servers, in the operating system's keyring or a private file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.private_files import replace_file

from .registration import object_of

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)

#: Where sign-ins are stored: in the keyring if there is one, or else the file; in the file; in memory only.
Place: TypeAlias = Literal["auto", "file", "memory"]
#: The service name of the keyring's entries.
KEYRING_SERVICE: Final = "jupyter-agentbox-mcp"
#: How long, in seconds, to wait for another process to write the file.
_LONGEST_WRITING: Final = 5.0
#: Polling interval of that wait, in seconds.
_PAUSE: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """The result of a sign-in. Its values are not in its ``repr``.

    Parameters
    ----------
    trust_key : str
        Trust key of the server; the sign-in is not valid for one with another address.
    tokens : dict
        The token endpoint's response.
    expires_at : float or None
        Expiry of the access token, in seconds since 1970, if the provider states it.
    client : dict
        The OAuth client registration.
    provider : dict or None
        The provider's metadata (RFC 8414).
    resource : dict or None
        The server's metadata (RFC 9728).
    """

    trust_key: str
    tokens: JsonObject = field(repr=False)
    expires_at: float | None = None
    client: JsonObject = field(repr=False)
    provider: JsonObject | None = field(default=None, repr=False)
    resource: JsonObject | None = field(default=None, repr=False)

    def to_json(self) -> JsonObject:
        """Return the stored form."""
        return {
            "trust_key": self.trust_key,
            "tokens": self.tokens,
            "expires_at": self.expires_at,
            "client": self.client,
            "provider": self.provider,
            "resource": self.resource,
        }


class SignInStore(Protocol):
    """Sign-ins of one user, by server. All methods may block."""

    #: What people do to sign in, and to sign in with rights that their sign-in lacks; each ends a message.
    how_to_sign_in: str
    how_to_get_rights: str

    def is_for(self, name: str) -> bool:
        """Return whether people can sign in to a server."""

    def load(self, name: str, trust_key: str) -> SignIn | None:
        """Return the sign-in to a server; ``None`` if nobody signed in at its present address.

        Raises
        ------
        ToolServerError
            If that is not known.
        """

    def keep(self, name: str, sign_in: SignIn) -> None:
        """Store a sign-in, replacing an earlier one to the same server.

        Raises
        ------
        OSError
            If it cannot be stored.
        """

    def replace(self, name: str, before: SignIn, after: SignIn | None) -> SignIn | None:
        """Replace a sign-in, or with ``None`` delete it, if it is still stored; return the stored one afterwards.

        Raises
        ------
        OSError
            If it cannot be stored.
        """

    def forget(self, name: str) -> None:
        """Delete the sign-in to a server.

        Raises
        ------
        OSError
            If it cannot be deleted.
        """

    def begin_renewal(self, name: str) -> Callable[[], None] | None:
        """Take the lock that a sign-in's renewal holds; return its release function, or ``None`` if another has it."""


class Keyring(Protocol):
    """The part of the package `keyring` that this module uses."""

    def get_password(self, service: str, username: str) -> str | None:
        """Return the stored value, if any."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store a value."""

    def delete_password(self, service: str, username: str) -> None:
        """Delete the stored value."""


class LocalSignInStore:
    """Sign-ins of the user who runs this process, in a keyring or a file (a `SignInStore`). A keyring may block.

    Parameters
    ----------
    path : Path or None
        The file, readable by this user only; unsafe content is ignored. ``None`` implies ``memory``.
    place : str
        ``auto``, ``file`` or ``memory``.
    """

    how_to_sign_in = (
        "press “Sign in” beside its name in JupyterLab's side panel, tab “Servers”, or set `headers` in mcp.json"
    )
    how_to_get_rights = "sign out, and sign in again; if that does not help, its `scopes` must name them"

    def __init__(self, path: Path | None, *, place: Place = "auto") -> None:
        self._path = None if place == "memory" else path
        self._has_keyring = self._path is not None and place == "auto"
        self._lock = threading.Lock()
        self._memory: dict[str, JsonObject] = {}

    def is_for(self, name: str) -> bool:
        """Return ``True``: people can sign in to any server."""
        del name
        return True

    def load(self, name: str, trust_key: str) -> SignIn | None:
        """Return the sign-in to a server; ``None`` if nobody signed in at its present address."""
        with self._lock:
            found = self._find(name)
        return sign_in_from_json(found, trust_key)

    def keep(self, name: str, sign_in: SignIn) -> None:
        """Store a sign-in, replacing an earlier one to the same server.

        Raises
        ------
        OSError
            If it cannot be stored.
        """
        with self._alone():
            self._put(name, sign_in)

    def replace(self, name: str, before: SignIn, after: SignIn | None) -> SignIn | None:
        """Replace a sign-in, or with ``None`` delete it, if it is still stored; return the stored one afterwards.

        Somebody may meanwhile have signed out, or in again, possibly in another process.

        Raises
        ------
        OSError
            If it cannot be stored.
        """
        with self._alone():
            kept = sign_in_from_json(self._find(name), before.trust_key)
            if kept is None or kept.tokens != before.tokens:
                return kept
            if after is None:
                self._drop(name)
            else:
                self._put(name, after)
            return after

    def forget(self, name: str) -> None:
        """Delete the sign-in to a server.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        with self._alone():
            self._drop(name)

    def begin_renewal(self, name: str) -> Callable[[], None] | None:
        """Take the lock that a sign-in's renewal holds across processes.

        Returns its release function, or ``None`` if another has it. Without a file, nothing is locked.
        """
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        descriptor = _open(self._lock_path(digest))
        if descriptor is None:
            return lambda: None
        if not _try_lock(descriptor):
            os.close(descriptor)
            return None
        return lambda: os.close(descriptor)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock that excludes other threads and processes."""
        with self._lock:
            lock = _lock(self._lock_path("file"), _LONGEST_WRITING)
            try:
                yield
            finally:
                if lock is not None:
                    os.close(lock)

    def _lock_path(self, what: str) -> Path | None:
        return None if self._path is None else self._path.with_name(f".sign-ins-{what}.lock")

    def _find(self, name: str) -> JsonObject | None:
        return self._from_keyring(name) or self._read().get(name)

    def _put(self, name: str, sign_in: SignIn) -> None:
        is_in_keyring = self._to_keyring(name, sign_in)
        kept = {other: entry for other, entry in self._read().items() if other != name}
        self._write(kept if is_in_keyring else {**kept, name: sign_in.to_json()})

    def _drop(self, name: str) -> None:
        self._forget_in_keyring(name)
        kept = self._read()
        if kept.pop(name, None) is not None:
            self._write(kept)

    def _read(self) -> dict[str, JsonObject]:
        if self._path is None:
            return dict(self._memory)
        try:
            with self._path.open(encoding="utf-8") as file:
                if os.name == "posix" and not _is_private(os.fstat(file.fileno())):
                    _log.warning("%s is not used: others can read or have made it; sign in again", self._path)
                    return {}
                found = json.load(file)
        except (OSError, ValueError, RecursionError):
            return {}
        return {name: object_of(entry) for name, entry in object_of(object_of(found).get("servers")).items()}

    def _write(self, kept: Mapping[str, JsonObject]) -> None:
        if self._path is None:
            self._memory = dict(kept)
            return
        if not kept:
            self._path.unlink(missing_ok=True)
            return
        replace_file(self._path, json.dumps({"servers": dict(kept)}).encode())

    def _user(self, name: str) -> str:
        """Return the keyring's user name for a server: another data directory has other entries."""
        return f"{name} ({self._path})"

    def _keyring(self) -> Keyring | None:
        return usable_keyring() if self._has_keyring else None

    def _from_keyring(self, name: str) -> JsonObject:
        if (keyring := self._keyring()) is None:
            return {}
        try:
            return object_of(json.loads(keyring.get_password(KEYRING_SERVICE, self._user(name)) or "{}"))
        except Exception as error:  # noqa: BLE001  # its back ends raise anything; one that is locked has none for us
            _log.warning("the keyring could not be read: %s", type(error).__name__)
            return {}

    def _to_keyring(self, name: str, sign_in: SignIn) -> bool:
        if (keyring := self._keyring()) is None:
            return False
        try:
            keyring.set_password(KEYRING_SERVICE, self._user(name), json.dumps(sign_in.to_json()))
        except Exception as error:  # noqa: BLE001  # as above; that of Windows refuses what is long
            _log.warning("the keyring keeps no sign-in, so the file does: %s", type(error).__name__)
            self._forget_in_keyring(name)
            return False
        return True

    def _forget_in_keyring(self, name: str) -> None:
        if (keyring := self._keyring()) is None:
            return
        try:
            if keyring.get_password(KEYRING_SERVICE, self._user(name)) is not None:
                keyring.delete_password(KEYRING_SERVICE, self._user(name))
        except Exception as error:  # noqa: BLE001  # as above
            _log.warning("the keyring could not be changed: %s", type(error).__name__)


def usable_keyring() -> Keyring | None:
    """Return the operating system's keyring; ``None`` if there is none that protects its contents."""
    try:
        import keyring  # noqa: PLC0415  # an extra, and slow where it asks another program
    except ImportError:
        return None
    try:
        found: Any = keyring.get_keyring()
        # the package assigns less than 1 to keyrings that store nothing, or in plain text
        return found if found.priority >= 1 else None
    except Exception:  # noqa: BLE001  # a back end that cannot even say how good it is
        return None


def _lock(path: Path | None, patience: float) -> int | None:
    """Return a locked open file; ``None`` if there is no file, or it could not be locked within `patience` seconds."""
    if (descriptor := _open(path)) is None:
        return None
    until = time.monotonic() + patience
    while not _try_lock(descriptor):
        if time.monotonic() > until:
            os.close(descriptor)
            return None
        time.sleep(_PAUSE)
    return descriptor


def _open(path: Path | None) -> int | None:
    """Return an open file to lock; ``None`` if there is none."""
    if path is None or sys.platform == "win32":
        return None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None  # writing there would also fail, and report that


def _try_lock(descriptor: int) -> bool:
    """Lock an open file, unless another process or thread has; return whether it is locked now."""
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077


def sign_in_from_json(found: JsonObject | None, trust_key: str) -> SignIn | None:
    """Return a sign-in from its stored form; ``None`` if there is none, or the server's trust key has changed."""
    if not found or not trust_key or found.get("trust_key") != trust_key:
        return None
    expires_at = found.get("expires_at")
    return SignIn(
        trust_key=trust_key,
        tokens=object_of(found.get("tokens")),
        expires_at=float(expires_at) if isinstance(expires_at, int | float) else None,
        client=object_of(found.get("client")),
        provider=object_of(found.get("provider")) or None,
        resource=object_of(found.get("resource")) or None,
    )

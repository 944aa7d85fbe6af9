"""The keys that encrypt users' sign-ins in the Hub service's database."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.exceptions import ToolServerError

from .key_files import read_key_file

log = logging.getLogger(__name__)

_ENCODING: Final = "utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSignIn:
    """A stored sign-in, and whose it is.

    Parameters
    ----------
    user, server : str
        The user and the server.
    sign_in : JSON object
        The sign-in.
    left_at : float or None
        Since when the policy no longer has the server, in seconds since 1970; ``None`` if it has, or nobody looked yet.
    revocations : int
        How often its provider was, or was about to be, asked to revoke it. From the first time on, nobody can use it.
    asked_at : float or None
        When it was last asked, in seconds since 1970.
    """

    user: str
    server: str
    sign_in: JsonObject
    left_at: float | None = None
    revocations: int = 0
    asked_at: float | None = None


class SignInKeys:
    """Encrypts sign-ins with the first key of a file; decrypts them with any.

    Each encrypted sign-in contains its user and server, so that whoever can write the database cannot give a user's
    sign-in to another.

    Parameters
    ----------
    path : Path
        The file, with one key per line. It is created if it does not exist, readable only by its owner.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._keys: MultiFernet | None = None

    def read(self) -> MultiFernet:
        """Read the file, and create it if it does not exist; return the keys.

        Raises
        ------
        OSError
            If the file can be neither read nor created.
        ValueError
            If it contains no keys, or other users can read it.
        """
        self._keys = MultiFernet(_keys_in(self._path))
        return self._keys

    def encrypt(self, user: str, server: str, sign_in: JsonObject) -> bytes:
        """Return the stored form of a user's sign-in to a server.

        Raises
        ------
        ToolServerError
            If the keys cannot be read.
        """
        return self.encrypt_kept(KeptSignIn(user=user, server=server, sign_in=sign_in))

    def encrypt_kept(self, kept: KeptSignIn) -> bytes:
        """Return the stored form of a sign-in, with the time since which its server is gone.

        Raises
        ------
        ToolServerError
            If the keys cannot be read.
        """
        content = {"user": kept.user, "server": kept.server, "sign_in": kept.sign_in}
        left = {} if kept.left_at is None else {"left_at": kept.left_at}
        revocations = {"revocations": kept.revocations, "asked_at": kept.asked_at} if kept.revocations else {}
        return self._current().encrypt(json.dumps({**content, **left, **revocations}).encode(_ENCODING))

    def decrypt_kept(self, content: bytes) -> KeptSignIn | None:
        """Return a stored sign-in, whosever it is; ``None`` if it was encrypted with another key.

        Raises
        ------
        ToolServerError
            If the keys cannot be read.
        """
        try:
            found = json.loads(self._current().decrypt(content))
        except InvalidToken:
            return None
        return KeptSignIn(
            user=found["user"],
            server=found["server"],
            sign_in=found["sign_in"],
            left_at=found.get("left_at"),
            revocations=found.get("revocations", 0),
            asked_at=found.get("asked_at"),
        )

    def decrypt(self, user: str, server: str, content: bytes) -> JsonObject | None:
        """Return a user's sign-in to a server; ``None`` if it cannot be used.

        That is so if it was encrypted with another key, or for somebody else, or is being revoked.

        Raises
        ------
        ToolServerError
            If the keys cannot be read.
        """
        kept = self.decrypt_kept(content)
        if kept is None:
            log.warning("the sign-in of %r to `%s` was encrypted with another key: it is not used", user, server)
            return None
        if (kept.user, kept.server) != (user, server):
            log.error("the sign-in of %r to `%s` in the database is not theirs: it is not used", user, server)
            return None
        return None if kept.revocations else kept.sign_in

    def _current(self) -> MultiFernet:
        try:
            return self._keys or self.read()
        except (OSError, ValueError) as error:
            log.exception("users cannot sign in to central servers")
            raise ToolServerError(
                "the service cannot read the key that protects sign-ins: tell your administrator"
            ) from error


def _keys_in(path: Path) -> list[Fernet]:
    content = read_key_file(path, lambda: Fernet.generate_key() + b"\n")
    try:
        keys = [Fernet(line) for line in content.split()]
    except ValueError:
        keys = []
    if not keys:
        raise ValueError(
            f"`{path}` does not contain keys, each of 32 bytes in URL-safe base64 on a line of its own: restore the"
            " file, or delete it if users are to sign in again"
        )
    return keys

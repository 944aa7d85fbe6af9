"""Signs the policy for users' own servers: keeps the key, and counts the versions."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.calls import canonical_json
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.storage.signed_policies import SignedPolicy, public_key_of, sign

from .policy_file import LocalPolicy

#: How many times a policy is signed anew while it holds: a server that asks has one that holds for most of its time.
_RENEWALS: Final = 8
_KEY_BYTES: Final = 32


def read_key(path: Path) -> bytes:
    """Return the private key of a file, which is made if there is none; only its owner can read it.

    Raises
    ------
    OSError
        If it can neither be read nor made.
    ValueError
        If it is no key, or others can read it.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            raise ValueError(f"others can read the key in `{path}`: `chmod 600`, or use another one") from None
        key = bytes.fromhex(path.read_text("ascii").strip())
        if len(key) != _KEY_BYTES:
            raise ValueError(f"`{path}` has no key: {_KEY_BYTES} bytes in hexadecimal") from None
        return key
    key = secrets.token_bytes(_KEY_BYTES)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{key.hex()}\n")
    return key


def version_of(path: Path, policy: LocalPolicy, now: datetime) -> int:
    """Return the version of a policy, and keep it: the same for the same policy, a greater one for another.

    A new version is the time in seconds, or one more than the last, so that it grows also where the file was lost.

    Parameters
    ----------
    path : Path
        The file that keeps the last version.
    policy : LocalPolicy
        What is signed.
    now : datetime
        The present time.

    Raises
    ------
    OSError
        If it cannot be kept.
    ValueError
        If the file is not one that was kept here.
    """
    digest = hashlib.sha256(canonical_json(policy.to_json()).encode()).hexdigest()
    last = 0
    if path.exists():
        kept = json.loads(path.read_text("utf-8"))
        if not isinstance(kept, dict) or type(kept.get("version")) is not int:
            raise ValueError(f"`{path}` does not say which version of the policy was the last: remove it")
        last = int(kept["version"])
        if kept.get("digest") == digest:
            return last
    version = max(last + 1, int(now.timestamp()))
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=".agentbox-version-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"version": version, "digest": digest}, file)
        file.flush()
        os.fsync(file.fileno())
    Path(draft).replace(path)
    return version


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySigner:
    """Signs one policy for whichever user asks.

    Parameters
    ----------
    policy : LocalPolicy
        What the administrator wrote.
    version : int
        Its version.
    key : bytes
        The private key.
    clock : Clock
        Says when it is signed.
    """

    policy: LocalPolicy
    version: int
    key: bytes
    clock: Clock

    @property
    def public_key(self) -> str:
        """The public key, in base64: for the file of the site on users' servers."""
        return public_key_of(self.key)

    def signed_for(self, user: str) -> bytes:
        """Return the policy for a user's servers. It is the same for a part of the time that it holds."""
        part = self.policy.valid / _RENEWALS
        issued = datetime.fromtimestamp(self.clock.now().timestamp() // part * part, UTC)
        policy = SignedPolicy(
            hub=self.policy.hub,
            user=user,
            version=self.version,
            issued_at=issued,
            expires_at=issued + timedelta(seconds=self.policy.valid),
            policy=self.policy.policy,
        )
        return sign(policy, self.key)

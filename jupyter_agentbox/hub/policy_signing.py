"""Signs the policy for users' own servers: keeps the key and counts versions."""

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

from .key_files import read_key_file
from .policy_file import LocalPolicy

#: How often a policy is signed anew during its validity, so that every server gets one valid for most of that time.
_RENEWALS: Final = 8
_KEY_BYTES: Final = 32


def read_key(path: Path) -> bytes:
    """Return the private key in a file. The file is created if it does not exist, readable only by its owner.

    Raises
    ------
    OSError
        If the file can be neither read nor created.
    ValueError
        If it does not contain a key, or other users can read it.
    """
    content = read_key_file(path, lambda: f"{secrets.token_bytes(_KEY_BYTES).hex()}\n".encode("ascii"))
    try:
        key = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"`{path}` does not contain a key, which is {_KEY_BYTES} bytes in hexadecimal")
    return key


def version_of(path: Path, policy: LocalPolicy, now: datetime) -> int:
    """Return and store the version of a policy. An unchanged policy keeps its version; a changed one gets a higher one.

    A new version is the time in seconds, or the last version plus one, so that versions grow even if the file was lost.

    Parameters
    ----------
    path : Path
        The file with the last version.
    policy : LocalPolicy
        The policy to sign.
    now : datetime
        The present time.

    Raises
    ------
    OSError
        If the version cannot be stored.
    ValueError
        If the file was not written by this function.
    """
    digest = hashlib.sha256(canonical_json(policy.to_json()).encode()).hexdigest()
    last = 0
    if path.exists():
        kept = json.loads(path.read_text("utf-8"))
        if not isinstance(kept, dict) or type(kept.get("version")) is not int:
            raise ValueError(f"`{path}` does not contain the number of the last version of the policy: delete the file")
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
    """Signs one policy for any user.

    Parameters
    ----------
    policy : LocalPolicy
        The policy.
    version : int
        Its version.
    key : bytes
        The private key.
    clock : Clock
        Provides the time of signing.
    """

    policy: LocalPolicy
    version: int
    key: bytes
    clock: Clock

    @property
    def public_key(self) -> str:
        """The public key in base64, for the site's rules file on users' servers."""
        return public_key_of(self.key)

    def signed_for(self, user: str) -> bytes:
        """Return the signed policy for a user's servers. It stays the same for an eighth of its validity."""
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

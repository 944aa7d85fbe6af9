"""A policy that a Hub service signed for one user: how it is sent, stored and read."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, canonical_json
from jupyter_agentbox.core.policy import Layer, Rule
from jupyter_agentbox.core.rule_text import MAX_BYTES, read_text
from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.exceptions import PolicyRefusedError

#: Bytes that a signed policy may have: of the largest file of rules, in base64, and what is around it.
MOST_BYTES: Final = 2 * MAX_BYTES
#: Stands before what is signed, so that the key's signature under something else is none under a policy.
_CONTEXT: Final = b"jupyter-agentbox policy 1\n"
_KEYS: Final = {"hub", "user", "version", "issued_at", "expires_at", "policy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedPolicy:
    """A Hub service's policy for the servers of one user.

    Parameters
    ----------
    hub : str
        The name of the Hub, as its administrator chose it.
    user : str
        The user for whose servers it is.
    version : int
        The version, which grows with each change.
    issued_at, expires_at : datetime
        When it was signed, and until when it is valid.
    policy : JSON object
        ``rules``, ``features`` and ``servers``, as in a site's file of rules.
    """

    hub: str
    user: str
    version: int
    issued_at: datetime
    expires_at: datetime
    policy: JsonObject

    @property
    def order(self) -> tuple[int, datetime]:
        """The sort key, which is greater for a later policy."""
        return self.version, self.issued_at

    @property
    def name(self) -> str:
        """The name that rules and messages show in place of a file."""
        return f"the policy of {self.hub}, version {self.version}"

    def rules(self) -> tuple[tuple[Rule, ...], SitePolicy]:
        """Return its rules, and what else it contains.

        Raises
        ------
        PolicyRefusedError
            If anything in it is not understood.
        """
        found = read_text(json.dumps(self.policy), path=self.name, layer=Layer.SITE, is_of_hub=True)
        if found.problems:
            raise PolicyRefusedError(f"{self.name} is not understood: {found.problems[0].message}")
        return found.rules, found.site

    def to_json(self) -> JsonObject:
        """Return the signed content."""
        return {
            "hub": self.hub,
            "user": self.user,
            "version": self.version,
            "issued_at": self.issued_at.isoformat(),
            "expires_at": self.expires_at.isoformat(),
            "policy": self.policy,
        }


def sign(policy: SignedPolicy, private_key: bytes) -> bytes:
    """Return a policy in the form in which it is sent: JSON with the policy and the signature, both in base64.

    Parameters
    ----------
    policy : SignedPolicy
        The policy.
    private_key : bytes
        32 bytes: a private key of Ed25519.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    payload = canonical_json(policy.to_json()).encode()
    signature = Ed25519PrivateKey.from_private_bytes(private_key).sign(_CONTEXT + payload)
    return json.dumps({"payload": _to_base64(payload), "signature": _to_base64(signature)}).encode()


def public_key_of(private_key: bytes) -> str:
    """Return the public key of a private one, in base64."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    return _to_base64(Ed25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw())


def read_signed(data: bytes, public_key: str) -> SignedPolicy:
    """Return the signed policy. Nothing in it is read before the signature is verified.

    Parameters
    ----------
    data : bytes
        The policy, as it was sent.
    public_key : str
        The key, in base64.

    Raises
    ------
    PolicyRefusedError
        If it is truncated or changed, or was not signed with the key.
    """
    payload, signature = _parts(data)
    _check_signature(payload, signature, public_key)
    try:
        return _policy_from_json(json.loads(payload))
    except (ValueError, TypeError, KeyError, RecursionError):
        raise PolicyRefusedError("it is signed, but not a policy that this version understands") from None


def _parts(data: bytes) -> tuple[bytes, bytes]:
    if len(data) > MOST_BYTES:
        raise PolicyRefusedError(f"it has more than {MOST_BYTES:,} bytes")
    try:
        given = json.loads(data)
        return _from_base64(given["payload"]), _from_base64(given["signature"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise PolicyRefusedError("it is not a signed policy: it may have been cut short") from None


def _check_signature(payload: bytes, signature: bytes, public_key: str) -> None:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    except ImportError:
        raise PolicyRefusedError(
            "its signature cannot be checked: install `jupyter-agentbox[hub]`, or `cryptography`, for this server"
        ) from None
    try:
        key = Ed25519PublicKey.from_public_bytes(_from_base64(public_key))
    except ValueError:
        raise PolicyRefusedError("`public_key` in the site's file is not an Ed25519 key: 32 bytes in base64") from None
    try:
        key.verify(signature, _CONTEXT + payload)
    except InvalidSignature:
        raise PolicyRefusedError("its signature is not that of the key in the site's file") from None


def _policy_from_json(given: JsonObject) -> SignedPolicy:
    if given.keys() != _KEYS:
        raise ValueError("another format")
    hub, user, version, policy = (given[name] for name in ("hub", "user", "version", "policy"))
    if (
        not isinstance(hub, str)
        or not isinstance(user, str)
        or type(version) is not int
        or not isinstance(policy, dict)
    ):
        raise TypeError("another format")
    return SignedPolicy(
        hub=hub,
        user=user,
        version=version,
        issued_at=_time(str(given["issued_at"])),
        expires_at=_time(str(given["expires_at"])),
        policy=policy,
    )


def _time(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time without a zone")
    return found.astimezone(UTC)


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("no base64") from None

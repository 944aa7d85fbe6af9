"""Names of arguments whose values are probably secrets."""

from __future__ import annotations

import re
from typing import Final

_SECRET: Final = re.compile(
    r"(?:^|[^a-z0-9])(?:secrets?|tokens?|passwords?|passwd|passphrase|passcode|pwd|credentials?|authorization|cookies?"
    r"|apikey|bearer|jwt|(?:api|access|private|secret|signing|encryption|ssh|auth)[^a-z0-9]+keys?)(?:$|[^a-z0-9])"
)
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def is_secret_name(name: str) -> bool:
    """Whether an argument with this name is probably a secret."""
    return _SECRET.search(_HUMP.sub(" ", name).lower()) is not None

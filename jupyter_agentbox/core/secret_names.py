"""Names of arguments whose values are probably secrets, for texts that a person reads at once.

The page has the same words in `secretNames.ts`. Hiding a value here costs a person one click, so plurals count, too.
What a record omits for good is `redaction.SECRET_NAMES`; there, `max_tokens` must stay.
"""

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

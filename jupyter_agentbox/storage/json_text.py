"""JSON and keys in the form in which the stores keep them, without loss.

JSON is stored as UTF-8 bytes with unescaped lone surrogates (``surrogatepass``) and with the keys in their original
order: an escaped pair of lone surrogates would be read back as one character, which would change the call's digest.
"""

from __future__ import annotations

import json
from typing import Final

from jupyter_agentbox.exceptions import StorageError

_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def text_key(value: str) -> str:
    """Return the text in a form that every database can store and compare: without lone surrogates and NUL.

    Different texts have different keys, and a text without a backslash is its own key.
    """
    if value.isascii() and "\\" not in value and "\0" not in value:
        return value
    escaped = value.replace("\\", "\\\\").replace("\0", "\\0")
    return escaped.encode("utf-8", "backslashreplace").decode("utf-8")


def dump_json(value: object) -> bytes:
    """Return a value as JSON in the form in which the stores keep it.

    Raises
    ------
    StorageError
        It is not a JSON value.
    """
    try:
        text = _JSON.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"the approval store cannot store this: {error}") from error
    return text.encode("utf-8", "surrogatepass")

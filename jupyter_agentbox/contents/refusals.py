"""Errors for pages whose file the server neither reads nor writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tornado.web import HTTPError

_FORBIDDEN: Final = 403


@contextmanager
def as_http_error(os_path: str) -> Iterator[None]:
    """Turn an error into one that the page shows.

    Parameters
    ----------
    os_path : str
        The file concerned.

    Raises
    ------
    HTTPError
        403 in place of an `OSError`, except for a missing file.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise refusal(os_path, error.strerror or str(error)) from error


def refusal(os_path: str, why: str) -> HTTPError:
    """Return the error for a file that is refused, with the reason."""
    return HTTPError(
        _FORBIDDEN,
        f"`{Path(os_path).name}` is in the work directory of a sandboxed kernel, and is or is below a link or no"
        f" regular file ({why}); it is neither read nor written",
    )

"""What a page is told where the server neither reads nor writes a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tornado.web import HTTPError

_FORBIDDEN: Final = 403


@contextmanager
def as_http_error(os_path: str) -> Iterator[None]:
    """Let a failure be one that the page shows.

    Parameters
    ----------
    os_path : str
        The file that is read or written.

    Raises
    ------
    HTTPError
        403, in the place of an `OSError`. That a file is missing is said as ever.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise refusal(os_path, error.strerror or str(error)) from error


def refusal(os_path: str, why: str) -> HTTPError:
    """Return what a page is told of a file that is not used, and why."""
    return HTTPError(
        _FORBIDDEN,
        f"`{Path(os_path).name}` is in the work directory of a sandboxed kernel, and is or is below a link or no"
        f" regular file ({why}); it is neither read nor written",
    )

"""``jupyter agentbox audit hold``: sets and releases legal holds of a Hub service, with a token of the Hub."""

from __future__ import annotations

import argparse
import json
import os
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, build_opener

from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.no_redirects import NoRedirects
from jupyter_agentbox.times import parse_time

#: Seconds to wait for the service's answer.
_PATIENCE: Final = 60


def add_hold_command(parser: argparse.ArgumentParser) -> None:
    """Describe the command line."""
    verbs = parser.add_subparsers(dest="hold", required=True)
    setting = verbs.add_parser("set", help="protect the records of one user, or of all users, from removal by age")
    whose = setting.add_mutually_exclusive_group(required=True)
    whose.add_argument("--user", metavar="NAME", help="whose records")
    whose.add_argument("--all-users", action="store_true", help="the records of all users")
    when = "today, yesterday, 7d, or ISO 8601 in local time"
    setting.add_argument("--since", metavar="TIME", help=f"records made or received since then: {when}")
    setting.add_argument("--until", metavar="TIME", help="records made or received before this time")
    setting.add_argument("--reason", required=True, help="why; it is in the record")
    listing = verbs.add_parser("list", help="show all holds, including released ones")
    releasing = verbs.add_parser("release", help="release a hold")
    releasing.add_argument("id", metavar="ID", help="the hold's id, as `list` shows it")
    releasing.add_argument("--reason", required=True, help="why; it is in the record")
    for verb in (setting, listing, releasing):
        verb.add_argument("--url", required=True, help="the Hub service: https://hub.example.org/services/agentbox/")
        verb.add_argument(
            "--token-file",
            metavar="FILE",
            type=Path,
            help="a file with the token (default: the variable JUPYTERHUB_API_TOKEN)",
        )


def run_hold_command(options: argparse.Namespace) -> None:
    """Run the command and print the result.

    Raises
    ------
    OSError
        If the service cannot be reached, or refuses.
    ValueError
        If an argument is invalid.
    """
    service = _Service(options.url, _token(options.token_file))
    if options.hold == "list":
        for hold in service.ask("api/holds")["holds"]:
            _write(hold)
    elif options.hold == "set":
        now = datetime.now().astimezone()
        body = {
            "user": None if options.all_users else options.user,
            "since": _time(options.since, now),
            "until": _time(options.until, now),
            "reason": options.reason,
        }
        _write(service.ask("api/holds", body))
    else:
        _write(service.ask(f"api/holds/{quote(options.id, safe='')}/release", {"reason": options.reason}))


class _Service:
    """The Hub service, with the caller's token."""

    def __init__(self, url: str, token: str) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ValueError("--url must be an address such as https://hub.example.org/services/agentbox/")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, path: str, body: Any = None) -> Any:
        """Send a request and return the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}/{path}", data=data, headers=self._headers)  # noqa: S310  # checked above
        try:
            with build_opener(NoRedirects).open(request, timeout=_PATIENCE) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise OSError(f"the Hub service answered {error.code}: {_message(error)}") from None
        except URLError as error:
            raise OSError(f"the Hub service cannot be reached: {error.reason}") from None


def _message(error: HTTPError) -> str:
    try:
        return str(json.load(error)["message"])
    except (ValueError, LookupError, TypeError):
        return str(error.reason)


def _token(file: Path | None) -> str:
    token = file.read_text("utf-8").strip() if file is not None else os.environ.get("JUPYTERHUB_API_TOKEN", "")
    if not token:
        raise ValueError("no token is given: add --token-file FILE, or set JUPYTERHUB_API_TOKEN")
    return token


def _time(given: str | None, now: datetime) -> str | None:
    return None if given is None else parse_time(given, now).isoformat()


def _write(hold: Any) -> None:
    """Print a hold on one line, with its reasons below."""
    whose = hold["user"] or "all users"
    span = f"{hold['since'] or 'the beginning'} to {hold['until'] or 'no end'}"
    lines = [
        f"{hold['id']}  {whose}  {span}",
        f"  set by {hold['set_by']} at {hold['set_at']}: {one_line(hold['reason'])}",
    ]
    if hold["released_at"]:
        lines.append(
            f"  released by {hold['released_by']} at {hold['released_at']}: {one_line(hold['release_reason'])}"
        )
    sys.stdout.write(visible("".join(f"{line}\n" for line in lines)))

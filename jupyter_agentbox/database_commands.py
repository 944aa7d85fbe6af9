"""``jupyter agentbox db``: makes and upgrades tables and removes old requests, with a role that servers do not have."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from jupyter_agentbox.core.text import counted, visible
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.pruning import prune
from jupyter_agentbox.storage.upgrade import upgrade

#: Exit codes, as in the other commands.
OK: Final = 0
#: The command line is wrong, or the database cannot be used.
USAGE: Final = 2

#: The environment variable for the URL: other users cannot see the password in it.
VARIABLE: Final = "AGENTBOX_DATABASE_URL"


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(argv)
    url = options.database or os.environ.get(VARIABLE)
    if not url:
        sys.stderr.write(f"jupyter agentbox db: name the database, with --database URL or in {VARIABLE}\n")
        return USAGE
    try:
        said = _prune(url, options.days) if options.verb == "prune" else _upgrade(url, options)
    except StorageError as error:
        sys.stderr.write(f"jupyter agentbox db: {visible(str(error))}\n")
        return USAGE
    sys.stdout.write(visible(f"{said}\n"))
    return OK


def _upgrade(url: str, options: argparse.Namespace) -> str:
    version = upgrade(url, role=options.role, may_remove=options.may_remove)
    return f"The tables have version {version}.{_rights_in_words(options)}"


def _prune(url: str, days: float) -> str:
    removed = prune(url, days=days, now=datetime.now(UTC))
    return f"{counted(removed, 'request')} of more than {days:g} days ago {'was' if removed == 1 else 'were'} removed."


def _rights_in_words(options: argparse.Namespace) -> str:
    if options.role is None:
        return ""
    but = "" if options.may_remove else ", but can neither change nor remove entries of the audit chain"
    return f" `{options.role}` can read and write them{but}."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jupyter agentbox")
    commands = parser.add_subparsers(dest="command", required=True)
    verbs = commands.add_parser("db").add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("upgrade", help="create the tables, or upgrade them to this release")
    _add_database(run)
    run.add_argument("--role", help="the PostgreSQL role of servers: it is granted the rights that they need")
    run.add_argument(
        "--may-remove",
        action="store_true",
        help="let that role remove old requests, which the limits of the history need",
    )
    run = verbs.add_parser("prune", help="remove old requests, where the role of servers may not")
    _add_database(run)
    run.add_argument("--days", type=_days, required=True, help="remove requests that were made more days ago")
    return parser


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--database", metavar="URL", help=f"a SQLAlchemy URL (default: the variable {VARIABLE})")


def _days(text: str) -> float:
    days = float(text)
    if not 0 < days < math.inf:
        raise argparse.ArgumentTypeError("a number of days greater than 0")
    return days

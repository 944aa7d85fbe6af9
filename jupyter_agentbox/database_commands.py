"""``jupyter agentbox db``: creates and upgrades the tables, with a database role that servers do not have."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from jupyter_agentbox.core.text import visible
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.upgrade import upgrade

#: The command, with its help.
NAMES: Final = {"db": "create or upgrade the tables of a database, as an administrator"}

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
        version = upgrade(url, role=options.role, may_remove=options.may_remove)
    except StorageError as error:
        sys.stderr.write(f"jupyter agentbox db: {visible(str(error))}\n")
        return USAGE
    sys.stdout.write(visible(f"The tables have version {version}.{_rights_in_words(options)}\n"))
    return OK


def _rights_in_words(options: argparse.Namespace) -> str:
    if options.role is None:
        return ""
    but = "" if options.may_remove else ", but can neither change nor remove entries of the audit chain"
    return f" `{options.role}` can read and write them{but}."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jupyter agentbox")
    commands = parser.add_subparsers(dest="command", required=True)
    verbs = commands.add_parser("db", help=NAMES["db"]).add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("upgrade", help="create the tables, or upgrade them to this release")
    run.add_argument("--database", metavar="URL", help=f"a SQLAlchemy URL (default: the variable {VARIABLE})")
    run.add_argument("--role", help="the PostgreSQL role of servers: it is granted the rights that they need")
    run.add_argument(
        "--may-remove",
        action="store_true",
        help="let that role remove old requests, which the limits of the history need",
    )
    return parser

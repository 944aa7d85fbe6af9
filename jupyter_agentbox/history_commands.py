"""``jupyter agentbox history`` and ``jupyter agentbox audit``: what ran, and whether the record of it is intact."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.audit import Head
from jupyter_agentbox.core.text import visible
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.paths import data_dir
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.audit_verification import Verification

#: The commands, and what their help says.
NAMES: Final = {"audit": "check that the record of all calls is as it was written"}

#: Exit codes, as of the other commands.
OK: Final = 0
#: The record is broken.
BROKEN: Final = 1
#: The command line is wrong, or the database cannot be read.
USAGE: Final = 2

_ADVICE: Final = (
    "Keep the head where nobody can write who can write this database. `--head` then shows whether the end was removed,"
    " or all was written anew: the chain alone cannot."
)


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(argv)
    try:
        return _verify(options)
    except (OSError, StorageError, ValueError) as error:
        sys.stderr.write(f"jupyter agentbox: {visible(str(error))}\n")
        return USAGE


def _verify(options: argparse.Namespace) -> int:
    known = Head.parse(options.head) if options.head is not None else None
    found = asyncio.run(SqlAuditLog(_database_url(options.database)).verify(known))
    if found.broken is not None:
        sys.stdout.write(visible(f"BROKEN at {found.broken}\n"))
        return BROKEN
    sys.stdout.write(visible("".join(f"{line}\n" for line in _report(found, known))))
    return OK


def _report(found: Verification, known: Head | None) -> list[str]:
    lines = [f"Intact: {found.records} records in the entries {found.first} to {found.head.number}."]
    if found.removed:
        lines.append(f"Removed by age or size, as entries say: {found.removed} requests.")
    if known is not None:
        lines.append(f"The head that you kept is in it. Since then: {found.since} entries.")
        if found.removed_since:
            lines.append(f"Of these, {found.removed_since} say that a request was removed by age or size.")
    return [*lines, f"Head: {found.head}", _ADVICE]


def _database_url(given: str | None) -> str:
    """Return the URL of the approval store.

    Raises
    ------
    ValueError
        If there is none.
    """
    if given is not None and "://" in given:
        return given
    path = Path(given) if given is not None else data_dir() / "approvals.sqlite"
    if not path.is_file():
        raise ValueError(f"there is no approval store at `{path}`: name it with --database")
    return sqlite_url(str(path))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jupyter agentbox")
    commands = parser.add_subparsers(dest="command", required=True)
    audit = commands.add_parser("audit", help=NAMES["audit"])
    verbs = audit.add_subparsers(dest="verb", required=True)
    verify = verbs.add_parser("verify", help="check the chain over all records, and name the first one that is broken")
    verify.add_argument("--head", metavar="HEAD", help="what an earlier check printed: the chain must have it")
    _add_database(verify)
    return parser


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database",
        metavar="PATH|URL",
        help="the approval store (default: agentbox/approvals.sqlite in Jupyter's data directory)",
    )

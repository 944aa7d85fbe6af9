"""``jupyter agentbox history`` and ``jupyter agentbox audit``: show what ran, and check the record."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.audit import Head
from jupyter_agentbox.core.audit_csv import csv_header, record_to_csv
from jupyter_agentbox.core.audit_search import AuditQuery, record_to_json
from jupyter_agentbox.core.audit_trail import Chain, check_trail
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.core.text import counted, one_line, visible
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.history_table import HistoryTable
from jupyter_agentbox.hold_commands import add_hold_command, run_hold_command
from jupyter_agentbox.paths import data_dir
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.audit_verification import Verification
from jupyter_agentbox.storage.report_verification import ReportVerification
from jupyter_agentbox.times import parse_time

#: Exit codes, as in the other commands.
OK: Final = 0
#: The record is broken.
BROKEN: Final = 1
#: The command line is wrong, or the database cannot be read.
USAGE: Final = 2

#: The number of calls in the table without `--limit`.
_SHOWN: Final = 200

_ADVICE: Final = (
    "Store the head where nobody who can write to this database can change it. With `--head`, this command also finds"
    " out whether the newest records were removed, or all records rewritten. The chain alone does not show that."
)


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(argv)
    try:
        if options.command == "history":
            return _show(options)
        if options.verb == "hold":
            run_hold_command(options)
            return OK
        return _verify(options) if options.verb == "verify" else _check_trail(options)
    except (OSError, StorageError, ValueError) as error:
        sys.stderr.write(f"jupyter agentbox: {visible(str(error))}\n")
        return USAGE


def _show(options: argparse.Namespace) -> int:
    write = _writer(options)
    try:
        asyncio.run(_each(_database_url(options.database), _query(options), _limit(options), write))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        sys.stderr.close()
    return OK


async def _each(url: str, query: AuditQuery, limit: int, write: Callable[[ApprovalRequest], str]) -> None:
    redaction = Redaction()
    log = SqlAuditLog(url, must_exist=True)
    try:
        async for request in _records(log, query, limit):
            sys.stdout.write(write(redaction.request(request)))
    finally:
        await log.aclose()


async def _records(log: SqlAuditLog, query: AuditQuery, limit: int) -> AsyncIterator[ApprovalRequest]:
    """Yield the newest records: at most `limit` of them, or all if it is 0."""
    count = 0
    while True:
        page = await log.search(query)
        for request in page.records:
            yield request
            count += 1
            if count == limit:
                return
        if page.next is None:
            return
        query = replace(query, cursor=page.next)


def _writer(options: argparse.Namespace) -> Callable[[ApprovalRequest], str]:
    if options.json:
        return lambda request: json.dumps(record_to_json(request)) + "\n"
    if options.csv:
        sys.stdout.write(csv_header())
        return record_to_csv
    return HistoryTable.of_terminal().line


def _limit(options: argparse.Namespace) -> int:
    if options.limit is None:
        return 0 if options.json or options.csv else _SHOWN
    limit: int = options.limit
    return limit


def _query(options: argparse.Namespace) -> AuditQuery:
    now = datetime.now().astimezone()
    answers = {answer.value for answer in Answer}
    return AuditQuery(
        since=parse_time(options.since, now) if options.since is not None else None,
        until=parse_time(options.until, now) if options.until is not None else None,
        server=options.server,
        tool=options.tool,
        reviewer=options.reviewer,
        notebook_path=options.notebook,
        thread_id=options.thread,
        answers=tuple(Answer(one) for one in options.decision or () if one in answers),
        statuses=tuple(Status(one) for one in options.decision or () if one not in answers),
        outcomes=tuple(OutcomeState(one) for one in options.outcome or ()),
        text=options.search or "",
        limit=500,
    )


def _verify(options: argparse.Namespace) -> int:
    known = Head.parse(options.head) if options.head is not None else None
    log = SqlAuditLog(_database_url(options.database), must_exist=True)
    found = asyncio.run(log.verify(known))
    if found.broken is not None:
        sys.stdout.write(visible(f"BROKEN at {found.broken}\n"))
        return BROKEN
    sys.stdout.write(visible("".join(f"{line}\n" for line in _report(found, known))))
    reports = asyncio.run(log.verify_reports(found.reports))
    sys.stdout.write(visible("".join(f"{line}\n" for line in _reports_in_words(reports))))
    return BROKEN if reports.broken or reports.gaps else OK


def _reports_in_words(found: ReportVerification) -> Iterator[str]:
    """Yield lines about the records that users' servers reported; nothing if there are none."""
    if found.broken:
        yield f"BROKEN in the reports of users' servers or the holds on them, at {found.broken}"
    elif found.records:
        of = f"{counted(found.records, 'row')} of {counted(found.tenants, 'user')}"
        yield f"Reports of users' servers: {of} are as they were taken; {found.removed:,} were removed by age."
        if found.noted_at is not None:
            yield f"The head covers those that were taken until {found.noted_at:%Y-%m-%d %H:%M:%S} UTC."
    for gap in found.gaps:
        yield f"{str(gap)[:1].upper()}{str(gap)[1:]}."


def _check_trail(options: argparse.Namespace) -> int:
    chains, strange = check_trail(_lines(options.files))
    for chain in chains:
        sys.stdout.write(f"{_chain_in_words(chain, is_from_hub_service=options.from_hub_service)}\n")
    if strange:
        sys.stdout.write(f"{counted(strange, 'line is not a record', 'lines are not records')}.\n")
    if not chains:
        sys.stdout.write("There are no records.\n")
    is_covered = options.from_hub_service or not any(chain.redacted for chain in chains)
    return OK if chains and all(chain.is_whole for chain in chains) and is_covered and not strange else BROKEN


def _lines(files: Sequence[Path]) -> Iterator[str]:
    for path in files:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file


def _chain_in_words(chain: Chain, *, is_from_hub_service: bool) -> str:
    name = one_line(chain.id)  # chosen by whoever can send records
    end = "stopped properly" if chain.is_ended else "the server is still running, or was killed"
    if chain.redacted:
        end += f"; a Hub service redacted {chain.redacted} of them, whose content the chain does not cover"
    if chain.problem:
        return f"BROKEN {name}: {chain.problem}"
    if chain.missing:
        missing = ", ".join(map(str, chain.missing))
        return f"INCOMPLETE {name}: {counted(chain.records, 'record')} to {chain.last}, missing: {missing}; {end}"
    if chain.redacted and not is_from_hub_service:
        return f"REDACTED {name}: {counted(chain.records, 'record')}; {end}. See `--from-hub-service`"
    return f"Whole {name}: {counted(chain.records, 'record')}; {end}"


def _report(found: Verification, known: Head | None) -> list[str]:
    if not found.head.number:
        lines = ["Intact: there are no records yet."]
    else:
        lines = [f"Intact: the records agree with the entries {found.first} to {found.head.number}."]
    if found.removed:
        lines.append(f"Removed by age or size, as entries say: {counted(found.removed, 'request')}.")
    if known is not None and found.since is not None:
        lines.append(f"It contains the head that you kept. Since then: {counted(found.since, 'entry', 'entries')}.")
        if found.removed_since:
            said = counted(found.removed_since, "entry says", "entries say")
            lines.append(f"Of these, {said} that a request was removed by age or size.")
    return [*lines, f"Head: {found.head}", _ADVICE]


def _database_url(given: str | None) -> str:
    """Return the URL of the approval store.

    Raises
    ------
    ValueError
        If there is no store.
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
    _add_history(commands.add_parser("history"))
    audit = commands.add_parser("audit")
    verbs = audit.add_subparsers(dest="verb", required=True)
    verify = verbs.add_parser("verify", help="check the chain of all records, and name the first broken one")
    verify.add_argument(
        "--head", metavar="HEAD", help="the head that an earlier check printed: the chain must contain it"
    )
    _add_database(verify)
    add_hold_command(verbs.add_parser("hold", help="protect records of a Hub service from removal by age"))
    trail = verbs.add_parser("trail", help="check records that an audit sink received, and name the missing ones")
    trail.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help="files of JSON Lines; a record may occur twice"
    )
    trail.add_argument(
        "--from-hub-service",
        action="store_true",
        help="accept records from which a Hub service removed secrets: the chain covers only their place",
    )
    return parser


def _add_history(parser: argparse.ArgumentParser) -> None:
    when = "today, yesterday, 7d, 12h, 30m, or ISO 8601 in local time"
    parser.add_argument("--since", metavar="TIME", help=f"calls made since then: {when}")
    parser.add_argument("--until", metavar="TIME", help="calls made before this time")
    parser.add_argument("--server", metavar="NAME", help="an MCP server's name, or a pattern such as 'shop*'")
    parser.add_argument("--tool", metavar="NAME", help="a tool's name, or a pattern such as 'delete_*' or 'shop.set_*'")
    parser.add_argument(
        "--reviewer", metavar="NAME", help="who decided: a part of the name, `rule`, or a method such as `api_token`"
    )
    parser.add_argument("--notebook", metavar="PATH", help="a notebook, relative to the server's root")
    parser.add_argument("--thread", metavar="ID", help="an agent's thread")
    decisions = [member.value for kind in (Answer, Status) for member in kind]
    parser.add_argument("--decision", action="append", choices=decisions, help="an answer or a status; repeatable")
    outcomes = [member.value for member in OutcomeState]
    parser.add_argument("--outcome", action="append", choices=outcomes, help="how the call ended; repeatable")
    parser.add_argument("--search", metavar="WORDS", help="words in names, arguments, reasons or errors")
    shown = f"the number of newest calls to show; 0 for all (default: {_SHOWN}; all with --json and --csv)"
    parser.add_argument("--limit", type=_count, default=None, help=shown)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object per line, in the format of `GET audit`")
    form.add_argument("--csv", action="store_true", help="CSV, safe to open in a spreadsheet")
    _add_database(parser)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError("must be a number, or 0 for all")
    return int(text)


def _add_database(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database",
        metavar="PATH|URL",
        help="the approval store (default: agentbox/approvals.sqlite in Jupyter's data directory)",
    )

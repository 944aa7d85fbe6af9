"""`CellCommands`: the ``%agent`` commands for one notebook. A kernel cannot access other notebooks' threads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final

from jupyter_agentbox.core.ports import ThreadQuery
from jupyter_agentbox.core.terminal import without_controls
from jupyter_agentbox.core.text import counted, one_line
from jupyter_agentbox.core.threads import (
    AgentMessage,
    ApprovalMode,
    CodeRun,
    Item,
    Notice,
    Thread,
    ToolCallItem,
    Turn,
    TurnStatus,
    UserMessage,
)
from jupyter_agentbox.exceptions import ThreadError, UnknownThreadError

from .manager import NotebookThreads
from .mode_changes import ModeChanges, mode_elsewhere
from .thread_entries import ThreadEntry
from .turn_options import read_mode

#: Commands that a turn's code may use: those that change nothing, and the one that ends a turn.
ALLOWED_IN_TURN: Final = frozenset({"threads", "names", "show", "usage", "stop"})
#: Maximum number of threads in a list; below, of characters of a shown thread.
_MOST: Final = 200
_LONGEST: Final = 100_000
_NAME: Final = 200
_ID: Final = 8


class CellCommands:
    """The commands of one notebook.

    Parameters
    ----------
    threads : NotebookThreads
        All threads.
    path : str
        The notebook's path.
    changes : ModeChanges
        Asks a person if a command would loosen the notebook's approval mode.
    """

    def __init__(self, threads: NotebookThreads, path: str, changes: ModeChanges) -> None:
        self._threads = threads
        self._changes = changes
        self._path = path
        self._commands = {
            "threads": self._list,
            "names": self._names,
            "show": self._show,
            "new": self._new,
            "resume": self._resume,
            "fork": self._fork,
            "name": self._name,
            "archive": self._archive,
            "unarchive": self._unarchive,
            "delete": self._delete,
            "mode": self._mode,
            "model": self._model,
            "usage": self._usage,
            "stop": self._stop,
        }

    async def answer(self, command: str, arguments: Sequence[str]) -> str:
        """Run a command and return its output.

        Raises
        ------
        AgentBoxError
            The command failed.
        """
        act = self._commands.get(command)
        if act is None:
            raise ThreadError(f"`%agent` has no command `{one_line(command)}` in this server")
        return await act(list(arguments))

    async def find(self, name: str, *, archived: bool | None = None) -> ThreadEntry:
        """Return the notebook's thread with this name, id or beginning of an id.

        Parameters
        ----------
        name : str
            The name, the id, or at least eight characters of it.
        archived : bool, optional
            Limits the search to archived threads, or to the others.

        Raises
        ------
        UnknownThreadError
            There is no such thread.
        ThreadError
            Several threads have this name.
        """
        which = (False, True) if archived is None else (archived,)
        entries = [entry for one in which for entry in await self._entries(archived=one)]
        named = [one for one in entries if name in (one.thread.name, one.thread.id)]
        found = named or [one for one in entries if len(name) >= _ID and one.thread.id.startswith(name)]
        if not found:
            known = ", ".join(f"`{label_of(one.thread)}`" for one in entries[:20]) or "none"
            raise UnknownThreadError(f"this notebook has no thread `{one_line(name)}`; it has {known}")
        if len(found) > 1:
            ids = ", ".join(f"`{one.thread.id[:_ID]}`" for one in found[:20])
            raise ThreadError(f"several threads are called `{one_line(name)}`: use the beginning of an id, {ids}")
        return found[0]

    async def _entries(self, *, archived: bool) -> Sequence[ThreadEntry]:
        entries, _ = await self._threads.list(ThreadQuery(notebook_path=self._path, is_archived=archived, limit=_MOST))
        return entries

    async def _list(self, arguments: list[str]) -> str:
        archived = arguments == ["--archived"]
        if arguments and not archived:
            raise ThreadError("`%agent threads` takes nothing but `--archived`")
        current = await self._threads.current(self._path)
        rows = [_row(entry, current) for entry in await self._entries(archived=archived)]
        if not rows:
            return (
                "No thread is archived." if archived else "This notebook has no threads. A `%%agent` cell begins one."
            )
        return _table([("", "thread", "state", "steps", "tokens", "asked last"), *rows])

    async def _names(self, _arguments: list[str]) -> str:
        entries = [*await self._entries(archived=False), *await self._entries(archived=True)]
        names = (one_line(entry.thread.name) for entry in entries)
        return "\n".join(f'"{name}"' if " " in name else name for name in names if name and '"' not in name)

    async def _show(self, arguments: list[str]) -> str:
        entry = await self._one(arguments)
        read = await self._threads.read(entry.thread.id)
        thread = read.thread
        model = f"model {thread.model}" if thread.model else "no model"
        head = f"Thread `{label_of(thread)}`: {read.state.value}, mode {thread.approval_mode.value}, {model}"
        lines = [one_line(head), *(line for turn in thread.turns for line in _turn_lines(turn))]
        text = "\n".join(lines)
        return text if len(text) <= _LONGEST else f"[…]\n{text[-_LONGEST:]}"

    async def _new(self, arguments: list[str]) -> str:
        thread = await self._threads.start(self._path, name=_joined_name(arguments))
        return f"The next %%agent begins thread `{label_of(thread)}`."

    async def _resume(self, arguments: list[str]) -> str:
        entry = await self._one(arguments, needs_name=True)
        await self._require_next(entry.thread)
        thread = await self._threads.resume(entry.thread.id, self._path)
        return f"The next %%agent goes on with thread `{label_of(thread)}`."

    async def _fork(self, arguments: list[str]) -> str:
        source = (await self._one(arguments)).thread
        await self._require_next(source)
        fork = await self._threads.fork(source.id)
        if source.name:
            await self._threads.change(fork.id, name=await self._name_of_copy(source.name))
        fork = await self._threads.resume(fork.id, self._path)
        return f"The next %%agent goes on with thread `{label_of(fork)}`, a copy of `{label_of(source)}`."

    async def _name_of_copy(self, name: str) -> str:
        """Return a name for a copy that is unique in the notebook."""
        entries = [*await self._entries(archived=False), *await self._entries(archived=True)]
        taken = {entry.thread.name for entry in entries}
        endings = (f" (copy {number})" if number > 1 else " (copy)" for number in count(1))
        return next(made for ending in endings if (made := f"{name[: _NAME - len(ending)]}{ending}") not in taken)

    async def _name(self, arguments: list[str]) -> str:
        name = _joined_name(arguments)
        if not name:
            raise ThreadError("write the name after `%agent name`")
        thread = await self._threads.change((await self._one([])).thread.id, name=name)
        return f"This thread is called `{label_of(thread)}` now."

    async def _archive(self, arguments: list[str]) -> str:
        thread = (await self._one(arguments)).thread
        await self._require_without(thread)
        thread = await self._threads.change(thread.id, is_archived=True)
        return f"Thread `{label_of(thread)}` is archived."

    async def _unarchive(self, arguments: list[str]) -> str:
        entry = await self._one(arguments, needs_name=True, archived=True)
        await self._require_next(entry.thread)
        thread = await self._threads.change(entry.thread.id, is_archived=False)
        return f"Thread `{label_of(thread)}` is on the list again."

    async def _delete(self, arguments: list[str]) -> str:
        thread = (await self._one(arguments, needs_name=True)).thread
        await self._require_without(thread)
        await self._threads.delete(thread.id)
        return f"Thread `{label_of(thread)}` is removed."

    async def _mode(self, arguments: list[str]) -> str:
        thread = (await self._one([])).thread
        if arguments:
            mode = read_mode(" ".join(arguments))
            reviewer = self._threads.reviewing_model(thread.model)
            await self._changes.require(label_of(thread), mode, thread.approval_mode, reviewer=reviewer)
            thread = await self._threads.change(thread.id, mode=mode)
        known = ", ".join(mode.value for mode in ApprovalMode)
        return f"Thread `{label_of(thread)}`: {thread.approval_mode.value} (there are {known})"

    async def _model(self, arguments: list[str]) -> str:
        thread = (await self._one([])).thread
        if arguments:
            model, mode = _joined_name(arguments), thread.approval_mode
            await self._changes.require(
                label_of(thread),
                mode,
                mode,
                reviewer=self._threads.reviewing_model(model),
                reviewer_before=self._threads.reviewing_model(thread.model),
            )
            thread = await self._threads.change(thread.id, model=model)
        return f"Thread `{label_of(thread)}`: {one_line(thread.model) or 'no model'}"

    async def _usage(self, _arguments: list[str]) -> str:
        entry = await self._one([])
        usage = entry.usage
        return (
            f"Thread `{label_of(entry.thread)}`: {counted(usage.requests, 'request')} to the model,"
            f" {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
        )

    async def _stop(self, _arguments: list[str]) -> str:
        working = [entry for entry in await self._entries(archived=False) if entry.turn_id is not None]
        for entry in working:
            await self._threads.interrupt(entry.turn_id or "")
        if not working:
            return "No turn is in progress in this notebook."
        return "One turn was ended." if len(working) == 1 else f"{len(working)} turns were ended."

    async def _require_next(self, thread: Thread) -> None:
        """Ask a person if the notebook's next turn would have a looser mode in this thread."""
        before = mode_elsewhere(await self._threads.current(self._path))
        reviewer = self._threads.reviewing_model(thread.model)
        await self._changes.require(label_of(thread), thread.approval_mode, before, reviewer=reviewer)

    async def _require_without(self, thread: Thread) -> None:
        """Ask a person if the notebook's next turn would have a looser mode without this thread."""
        following = await self._threads.current(self._path, without=thread.id)
        if following is not None:
            await self._require_next(following)

    async def _one(
        self, arguments: list[str], *, needs_name: bool = False, archived: bool | None = None
    ) -> ThreadEntry:
        """Return the named thread, or the notebook's current one."""
        if arguments:
            return await self.find(" ".join(arguments), archived=archived)
        if needs_name:
            raise UnknownThreadError("name the thread: `%agent threads` lists them")
        current = await self._threads.current(self._path)
        if current is None:
            raise UnknownThreadError("this notebook has no thread: a `%%agent` cell begins one")
        return await self._threads.entry(current.id)


def label_of(thread: Thread) -> str:
    """Return a thread's name, or the beginning of its id."""
    return one_line(thread.name, _NAME) or thread.id[:_ID]


def _joined_name(arguments: list[str]) -> str:
    name = " ".join(arguments).strip()
    if len(name) > _NAME:
        raise ThreadError(f"a name has at most {_NAME} characters")
    return name


def _row(entry: ThreadEntry, current: Thread | None) -> tuple[str, ...]:
    is_current = current is not None and current.id == entry.thread.id
    tokens = f"{entry.usage.total_tokens:,}"
    last = one_line(entry.last_prompt, 60)
    return (
        "*" if is_current else "",
        label_of(entry.thread),
        entry.state.value,
        str(entry.usage.requests),
        tokens,
        last,
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in padded)


def _turn_lines(turn: Turn) -> list[str]:
    lines = ["", *(line for item in turn.items for line in _item_lines(item))]
    if turn.error is not None:
        lines.append(f"({turn.status.value}: {one_line(turn.error.message, 1000)})")
    elif not turn.status.is_final or turn.status is TurnStatus.INTERRUPTED:
        lines.append(f"({turn.status.value})")
    return lines


def _item_lines(item: Item) -> list[str]:
    match item:
        case UserMessage(text=text):
            return [f"You: {without_controls(text)}"]
        case AgentMessage(text=text):
            return [f"Agent: {without_controls(text)}"]
        case CodeRun(code=code, status=status, error=error):
            why = error.strip().rpartition("\n")[2]
            head = one_line(f"Code ({status.value}): {why}", 1000)
            return [head, *(f"    {line}" for line in without_controls(code).splitlines())]
        case ToolCallItem(server=server, tool=tool, status=status):
            return [one_line(f"Tool {server}.{tool} ({status.value})")]
        case Notice(text=text):
            return [f"({one_line(text, 1000)})"]
        case _:
            return []

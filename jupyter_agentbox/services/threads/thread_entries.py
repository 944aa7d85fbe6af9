"""`ThreadEntry`: a thread in lists, with its current state and total cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.threads import Thread, ThreadState, Usage, thread_to_json, usage_to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadEntry:
    """A thread with its current state.

    Parameters
    ----------
    thread : Thread
        The thread, with its turns if requested.
    state : ThreadState
        Its current state.
    turn_id : str or None
        The turn in progress.
    kernel_id : str or None
        The kernel in which its agent is working.
    last_prompt : str
        The beginning of the last prompt.
    usage : Usage
        The total cost of its turns.
    """

    thread: Thread
    state: ThreadState
    turn_id: str | None
    kernel_id: str | None
    last_prompt: str
    usage: Usage

    def to_json(self) -> JsonObject:
        """Return the entry as JSON, without turns."""
        thread = thread_to_json(replace(self.thread, turns=()))
        del thread["turns"]
        return {
            **thread,
            "state": self.state.value,
            "turn_id": self.turn_id,
            "kernel_id": self.kernel_id,
            "last_prompt": self.last_prompt,
            "steps": self.usage.requests,
            "usage": usage_to_json(self.usage),
        }

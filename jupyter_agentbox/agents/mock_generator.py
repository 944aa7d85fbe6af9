"""A deterministic generator for tests, without model or network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jupyter_agentbox.exceptions import CodeGeneratorConfigurationError

from .requests import CodeRequest

_CHANNELS: Final = """\
# Stands in for the channels of a machine.
channels = {"MAGNET:CURRENT": 10.0}


def read_channel(name):
    return channels[name]

"""
#: Behavior -> its code; `error_aware` has its own below.
_BEHAVIORS: Final[Mapping[str, str]] = {
    "success": """\
from datetime import datetime

results = {"value": 42, "status": "success", "timestamp": datetime.now().isoformat()}
""",
    "syntax_error": """\
def broken(
    # the parenthesis is never closed

results = {"value": 42}
""",
    "runtime_error": """\
value = 100 / 0
results = {"value": value}
""",
    "missing_results": """\
value = 42 * 2
print(f"The value is {value}.")
""",
    "channel_read": f"""\
{_CHANNELS}
current = read_channel("MAGNET:CURRENT")
results = {{"value": current, "operation": "read_only"}}
""",
    "channel_write": f"""\
{_CHANNELS}
def write_channel(name, value):
    channels[name] = value


old_value = read_channel("MAGNET:CURRENT")
write_channel("MAGNET:CURRENT", old_value * 1.1)
results = {{"old_value": old_value, "new_value": read_channel("MAGNET:CURRENT"), "channel": "MAGNET:CURRENT"}}
""",
    "security_risk": """\
import os
import subprocess

listing = subprocess.run(["ls", "-la"], capture_output=True, text=True)
results = {"output": listing.stdout, "files": os.listdir("/")}
""",
    "error_aware": """\
values = [1, 2, 3]
results = {"mean": mean(values)}
""",
}
#: Text in an error -> the code with which `error_aware` responds; the first match applies.
_REPAIRS: Final[Mapping[tuple[str, ...], str]] = {
    ("nameerror", "import", "modulenotfound"): """\
from statistics import mean

values = [1, 2, 3]
results = {"values": values, "mean": mean(values), "count": len(values)}
""",
    ("zerodivision",): """\
values = [1, 2, 3]
count = len(values)
results = {"values": values, "mean": sum(values) / count if count > 0 else 0}
""",
    ("syntax", "no python"): """\
def mean(values):
    return sum(values) / len(values) if values else 0


results = {"values": [1, 2, 3], "mean": mean([1, 2, 3])}
""",
    ("",): """\
results = {"status": "success", "value": 42, "message": "repaired"}
""",
}


class MockCodeGenerator:
    """A `CodeGenerator` for tests.

    It returns, in this order of precedence, the sequence that was set, the code that was set, or its behavior's code.

    Parameters
    ----------
    behavior : str, optional
        ``"success"``, ``"syntax_error"``, ``"runtime_error"``, ``"missing_results"``, ``"channel_write"``,
        ``"channel_read"``, ``"security_risk"``, or ``"error_aware"``, which fails first and then fixes reported errors.
    model_config : mapping, optional
        Stored only, for compatibility with other generators.

    Attributes
    ----------
    call_count : int
        Number of requests so far.
    last_request : CodeRequest or None
        The last request.
    last_error_chain : list of AttemptError
        The errors passed with it.
    static_code : str or None
        The code that was set.
    code_sequence : list of str
        The sequence that was set.

    Raises
    ------
    ValueError
        If there is no such behavior.
    """

    def __init__(self, behavior: str | None = None, *, model_config: Mapping[str, Any] | None = None) -> None:
        if behavior is not None and behavior not in _BEHAVIORS:
            raise ValueError(f"Unknown behavior: `{behavior}`. The behaviors are {', '.join(_BEHAVIORS)}.")
        self.behavior = behavior
        self.model_config = dict(model_config or {})
        self.static_code: str | None = None
        self.code_sequence: list[str] = []
        self.call_count = 0
        self.last_request: CodeRequest | None = None
        self.last_error_chain: list[Any] = []

    async def generate_code(self, request: CodeRequest, error_chain: Sequence[object]) -> str:
        """Return the code that was set, or the behavior's.

        Raises
        ------
        CodeGeneratorConfigurationError
            If nothing was set. It is also a `ValueError`.
        """
        self.call_count += 1
        self.last_request = request
        self.last_error_chain = list(error_chain)
        if self.code_sequence:
            return self.code_sequence[min(self.call_count, len(self.code_sequence)) - 1]
        if self.static_code is not None:
            return self.static_code
        if self.behavior is None:
            raise CodeGeneratorConfigurationError(
                "the mock generator is not configured: use `set_code`, `set_code_sequence` or a behavior"
            )
        if self.behavior == "error_aware" and error_chain:
            return _repair(" ".join(map(str, error_chain)))
        return _BEHAVIORS[self.behavior]

    def get_generation_metadata(self) -> dict[str, Any]:
        """Return an empty mapping: there is no model."""
        return {}

    def set_code(self, code: str) -> None:
        """Return this code from now on, instead of a sequence."""
        self.static_code = code
        self.code_sequence = []

    def set_code_sequence(self, code_list: Sequence[str]) -> None:
        """Return one after the other, and then keep returning the last one, instead of code that was set."""
        self.code_sequence = list(code_list)
        self.static_code = None

    def reset(self) -> None:
        """Reset the calls, and restart a sequence. What was set is kept."""
        self.call_count = 0
        self.last_request = None
        self.last_error_chain = []


def _repair(errors: str) -> str:
    text = errors.lower()
    return next(code for words, code in _REPAIRS.items() if any(word in text for word in words))

from __future__ import annotations

import json
import unicodedata
from typing import Any

from jupyter_agentbox.core.text import visible

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "hide arguments with bidirectional or zero-width characters, or behind huge or deeply nested values",
    plain=False,
    control="test_the_same_text_hides_where_nobody_spells_it_out",
)
#: What turns the line around, has no width, or carries hidden bytes.
TRICKS = "\u202e\u2066\u2069\u200b\u200d\u2060\ufeff\u00ad\U000e0041\U000e0100\x1b[2K\x08\r\u2028"


def attack(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    link = runtime.link()
    deep: Any = "harmful"
    for _ in range(5000):
        deep = [deep]
    refused = []
    for value in ("x" * 40_000_000, deep):
        try:
            link.call("ledger", "hidden", {"value": value})
        except (ValueError, RecursionError) as error:
            refused.append(type(error).__name__)
    tricks = facts["tricks"]
    link.call("ledger", "hidden", {"pay" + tricks: "10" + tricks + "0000", "list": [tricks]})
    return refused


def test_what_hides_is_spelled_out_and_what_is_too_large_is_not_asked(stage: Stage) -> None:
    world = stage.world
    with stage.running(attack, tricks=TRICKS) as evidence:
        [request] = world.await_pending("hidden")  # one: the others were refused before anyone was asked
        arguments = request["call"]["arguments"]
        world.decide(request, "allow_once")
        refused = evidence()
    assert arguments == {f"pay{TRICKS}": f"10{TRICKS}0000", "list": [TRICKS]}  # as they will run
    stage.judge(ATTACK, hides(visible(as_text(arguments))) or refused != ["ToolArgumentsError", "ToolArgumentsError"])


def as_text(arguments: Any) -> str:
    return json.dumps(arguments, indent=2, ensure_ascii=False)


def hides(shown: str) -> bool:
    return any(char != "\n" and unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp", "Cn"} for char in shown)


def test_the_same_text_hides_where_nobody_spells_it_out() -> None:
    assert hides(as_text({f"pay{TRICKS}": f"10{TRICKS}0000"}))

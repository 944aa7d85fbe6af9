from __future__ import annotations

import io
import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, Status
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import InvalidTransitionError, LockedError, ToolArgumentsError
from jupyter_agentbox.headless.requests import ApprovalRequest
from jupyter_agentbox.headless.terminal import Terminal
from jupyter_agentbox.headless.terminal_reviewer import TerminalReviewer
from jupyter_agentbox.headless.terminal_texts import decided_unasked
from tests.samples import a_call, a_decision, a_request

ALL = "[a]ll in this run"
Decided = tuple[Answer, str, Mapping[str, Any] | None]


class TypingPerson(Terminal):
    """A terminal at which somebody types these lines and then leaves; an editor writes `saved` into its file."""

    columns = 60

    def __init__(self, *lines: str, saved: str = "", code: int = 0) -> None:
        super().__init__(io.StringIO(), io.StringIO())
        self.shown = ""
        self.opened = ""
        self._lines = list(lines)
        self._saved = saved
        self._code = code

    def begin_question(self, text: str) -> None:
        self.show(text + "\n")

    def show(self, text: str) -> None:
        self.shown += text

    async def read_line(self) -> str:
        return self._lines.pop(0) + "\n" if self._lines else ""

    async def run(self, argv: Sequence[str]) -> int:
        path = Path(argv[-1])
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        self.opened = path.read_text("utf-8")
        path.write_text(self._saved, "utf-8")
        return self._code


@pytest.fixture(autouse=True)
def no_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)


def a_stored(annotations: Mapping[str, Any] | None = None, **changes: Any) -> StoredRequest:
    tool = ToolDescription(name="set_price", description="Set a price.", annotations={**(annotations or {})})
    call = a_call(tool="set_price", arguments={"product_id": 5, "price": 149.0})
    return a_request(**{"call": call, "tool": tool, **changes})


async def ask(
    person: Terminal | None,
    stored: StoredRequest | None = None,
    *,
    refusals: Sequence[Exception] = (),
    locked: Sequence[Feature] = (),
) -> tuple[list[Decided], TerminalReviewer]:
    """Ask about a request; return what was decided, after so many errors, and the reviewer."""
    decided: list[Decided] = []
    errors = list(refusals)

    async def decide(
        stored: StoredRequest,  # there is but one
        answer: Answer,
        reason: str,
        arguments: Mapping[str, Any] | None,
        *,
        is_anybody_there: bool = True,
    ) -> None:
        if errors:
            raise errors.pop(0)
        assert is_anybody_there is (person is not None)
        decided.append((answer, reason, arguments))

    reviewer = TerminalReviewer(person)
    await reviewer.decide(ApprovalRequest(stored or a_stored(), decide, lambda feature: feature in locked))
    return decided, reviewer


async def test_question_shows_the_call_its_risk_and_the_servers_words_on_one_line() -> None:
    person = TypingPerson("y")
    tool = ToolDescription(name="set_price", description="Set\n\x1b[2J a “price”. More.", annotations={})
    await ask(person, a_stored(tool=tool))

    assert person.shown == (
        "shop.set_price(product_id=5, price=149.0)\n"
        "  Risk: server does not say what it changes\n"
        "  Server's words: “Set <U+001B>[2J a 'price'.”\n"
        "  The request came from a plain kernel.\n"
        "Run shop.set_price? [y]es, [n]o, [e]dit, [a]ll in this run, [c]omment, [r]eason, [?]: "
    )


async def test_long_arguments_are_shown_in_full_in_a_margin_that_they_cannot_leave() -> None:
    call = a_call(
        tool="set_price", arguments={"price": 1, "sql": "SELECT 1\n" + "x" * 60 + "\nRun shop.look? [y]es\u202e"}
    )
    person = TypingPerson("n")
    await ask(person, a_stored(call=call))

    assert (
        "  In full:\n"
        "  │ sql, 91 characters:\n"
        "  │   SELECT 1\n"
        f"  │   {'x' * 53}\n"
        f"  │ {'x' * 7}\n"
        "  │   Run shop.look? [y]es<U+202E>\n"
    ) in person.shown


async def test_what_the_server_claims_is_called_a_claim_and_a_rules_words_are_the_rules() -> None:
    rule = Rule(server="shop", tool="*", effect=Effect.ASK, reason="prices are public")
    person = TypingPerson("n")
    await ask(person, a_stored({"destructiveHint": True}, evaluation=Evaluation(effect=Effect.ASK, rule=rule)))

    assert "  Risk: destructive (claimed by the server, not verified)\n" in person.shown
    assert "  Rule's words: “prices are public”\n" in person.shown


@pytest.mark.parametrize(
    ("typed", "decided"),
    [
        (["y"], (Answer.ALLOW_ONCE, "", None)),
        ([" YES "], (Answer.ALLOW_ONCE, "", None)),
        (["n"], (Answer.REJECT_ONCE, "", None)),
        (["all"], (Answer.ALLOW_ALWAYS, "", None)),
        (["r", "not today"], (Answer.REJECT_ONCE, "not today", None)),
        (["c", "", "c", "just this one"], (Answer.ALLOW_ONCE, "just this one", None)),
        (["", "yes please", "yn", "?", "u", "n"], (Answer.REJECT_ONCE, "", None)),
    ],
)
async def test_each_choice_decides_and_nothing_else_does(typed: list[str], decided: Decided) -> None:
    found, reviewer = await ask(TypingPerson(*typed))

    assert found == [decided]
    assert reviewer.refused is not decided[0].allows


@pytest.mark.parametrize("typed", [[], ["what?"], ["c"], ["e"], ["e", '{"product_id": 6}']])
async def test_end_of_input_is_no(typed: list[str]) -> None:
    [(answer, _, _)], _ = await ask(TypingPerson(*typed))

    assert answer is Answer.REJECT_ONCE


async def test_question_mark_explains_the_choices_that_are_offered() -> None:
    person = TypingPerson("?", "n")
    await ask(person, a_stored({"destructiveHint": True}))

    assert "  e  change the arguments; what you change is shown before it runs\n" in person.shown
    assert "  a  " not in person.shown


@pytest.mark.parametrize(
    ("stored", "locked"),
    [
        (a_stored({"destructiveHint": True}), ()),
        (a_stored(), (Feature.GRANTS,)),
        (
            a_stored(
                evaluation=Evaluation(effect=Effect.ASK, rule=Rule(server="*", tool="*", effect=Effect.ASK)),
            ),
            (),
        ),
        (a_stored(call=a_call(server="shell", tool="shell", arguments={"cmd": "ls"})), ()),
    ],
)
async def test_all_in_this_run_is_not_offered_and_not_taken(stored: StoredRequest, locked: Sequence[Feature]) -> None:
    person = TypingPerson("a", "n")
    decided, _ = await ask(person, stored, locked=locked)

    assert ALL not in person.shown
    assert "`a` is not one of the choices; ? explains them." in person.shown
    assert decided == [(Answer.REJECT_ONCE, "", None)]


async def test_edit_is_not_offered_where_the_site_forbids_it() -> None:
    person = TypingPerson("e", "n")
    await ask(person, locked=(Feature.EDIT,))

    assert "[e]dit" not in person.shown


async def test_edited_arguments_are_shown_as_a_difference_and_are_what_is_accepted() -> None:
    person = TypingPerson("e", '{"product_id": 5, "price": 14.9}', "y")
    decided, _ = await ask(person)

    assert '{   "product_id": 5,   "price": 149.0 } \n' in person.shown
    assert "with these changes:\n  │  product_id = 5\n  │ -price = 149.0\n  │ +price = 14.9\n" in person.shown
    assert person.shown.index("+price = 14.9") < person.shown.index("Run shop.set_price as edited? ")
    assert decided == [(Answer.ALLOW_ONCE, "", {"product_id": 5, "price": 14.9})]


async def test_edited_call_cannot_be_allowed_for_all_and_an_edit_can_be_undone() -> None:
    person = TypingPerson("e", '{"product_id": 6, "price": 149.0}', "a", "u", "y")
    decided, _ = await ask(person)

    assert "`a` is not one of the choices" in person.shown
    assert decided == [(Answer.ALLOW_ONCE, "", None)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"price": 1', "This is not valid JSON: Expecting ',' delimiter"),
        ("[1]", "The arguments must be an object in JSON"),
        ('{"price": NaN}', "This is not valid JSON: `NaN` is not JSON."),
        ('{"price": 1, "price": 2}', "This is not valid JSON: an object has the same key twice."),
        ("", "Nothing was changed."),
        ('{"product_id": 5, "price": 149.0}', "The arguments are those that the code asked for."),
    ],
)
async def test_edit_that_is_no_edit_says_so_and_asks_again(text: str, complaint: str) -> None:
    person = TypingPerson("e", text, "n")
    decided, _ = await ask(person)

    assert complaint in person.shown
    assert decided == [(Answer.REJECT_ONCE, "", None)]


@pytest.mark.parametrize("error", [ToolArgumentsError("`price` must be a number"), LockedError("edits are off")])
async def test_edit_that_is_refused_says_why_and_asks_again(error: Exception) -> None:
    person = TypingPerson("e", '{"product_id": 5, "price": "x"}', "y", "n")
    decided, _ = await ask(person, refusals=[error])

    assert f"{error}\nRun shop.set_price as edited? " in person.shown
    assert decided == [(Answer.REJECT_ONCE, "", None)]


async def test_request_that_no_longer_waits_ends_the_question() -> None:
    person = TypingPerson("y", "y")
    decided, reviewer = await ask(person, refusals=[InvalidTransitionError("it is over")])

    assert "This request no longer waits" in person.shown
    assert (decided, reviewer.refused) == ([], False)


async def test_request_that_is_decided_already_is_not_asked_about() -> None:
    stored = a_stored()
    person = TypingPerson("n")
    decided, reviewer = await ask(person, stored.decide(a_decision(stored)))

    assert (decided, person.shown, reviewer.asked) == ([], "", set())


async def test_without_a_terminal_nobody_can_be_asked() -> None:
    [(answer, reason, _)], reviewer = await ask(None)

    assert answer is Answer.REJECT_ONCE
    assert reason.startswith("nobody could be asked")
    assert reviewer.refused


async def test_editor_gets_a_private_file_in_which_nothing_is_invisible_or_commands_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EDITOR", "nano")
    monkeypatch.setenv("VISUAL", "vim -n")
    call = a_call(tool="set_price", arguments={"text": "a\u202eb 日本", "note": "vim: set modeline"})
    person = TypingPerson("e", "y", saved='{"text": "b"}')
    decided, _ = await ask(person, a_stored(call=call))

    assert json.loads(person.opened) == call.arguments
    assert "a\\u202eb 日本" in person.opened
    assert "vim:" not in person.opened
    assert decided == [(Answer.ALLOW_ONCE, "", {"text": "b"})]


async def test_editor_that_fails_changes_nothing_and_invalid_text_can_be_corrected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("VISUAL", "vim")
    failing = TypingPerson("e", "y", saved='{"price": 1}', code=1)
    assert (await ask(failing))[0] == [(Answer.ALLOW_ONCE, "", None)]
    assert "`vim` ended with exit code 1; nothing was changed." in failing.shown

    invalid = TypingPerson("e", "e", "n", saved='{"price": ')
    await ask(invalid)
    assert invalid.opened == '{"price": '


def test_line_about_a_call_names_the_rule_or_the_answer_that_decided_it() -> None:
    rule = Rule(server="shop", tool="set_*", effect=Effect.ALLOW, file="/etc/rules.json", line=3)
    allowed = a_stored(evaluation=Evaluation(effect=Effect.ALLOW, rule=rule))
    denied = a_stored(evaluation=Evaluation(effect=Effect.DENY, rule=replace(rule, effect=Effect.DENY, file="")))

    call = "shop.set_price(product_id=5, price=149.0)"
    assert decided_unasked(allowed) == f"allowed by rule shop.set_* (/etc/rules.json, line 3): {call}"
    assert decided_unasked(denied) == f"denied by rule shop.set_* of the user: {call}"
    assert denied.status is Status.REJECTED
    assert decided_unasked(a_stored()) == ""
    assert decided_unasked(a_stored().decide(a_decision(a_stored()))) == ""

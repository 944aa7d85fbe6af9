"""Who had the code run that called a tool."""

from __future__ import annotations

import pytest

from jupyter_agentbox.core.askers import Asker, asker_from_json, in_words, name_of
from jupyter_agentbox.core.reviewers import Reviewer, ReviewerKind, Via

ADA = Asker(name="ada", via=Via.BROWSER)
BEN = Asker(name="ben", via=Via.BROWSER, display_name="Ben B.")
NIGHTLY = Asker(name="ada", via=Via.API_TOKEN, token_note="nightly run")
ROBOT = Asker(name="ada", via=Via.BROWSER, kind=ReviewerKind.SERVICE)


@pytest.mark.parametrize(
    ("askers", "name", "words"),
    [
        ((), None, ""),
        ((ADA,), "ada", "ada"),
        ((ADA, Asker(name="ada", via=Via.API_TOKEN)), "ada", "ada or a program with a token of ada"),
        ((ADA, NIGHTLY), "ada", "ada or a program with a token of ada (“nightly run”)"),
        ((ADA, BEN), None, "ada or Ben B."),
        ((ADA, ROBOT), None, "ada or the service ada"),
        ((Asker(via=Via.API_TOKEN),), None, "a program with a token"),
        ((ADA, Asker()), None, "ada or somebody unknown"),
        ((Asker(),), None, "somebody unknown"),
    ],
)
def test_a_call_has_one_name_only_if_it_can_be_nobody_elses(
    askers: tuple[Asker, ...], name: str | None, words: str
) -> None:
    assert (name_of(askers), in_words(askers)) == (name, words)


@pytest.mark.parametrize("asker", [ADA, BEN, NIGHTLY, ROBOT, Asker()])
def test_an_asker_is_the_same_after_json(asker: Asker) -> None:
    assert asker_from_json(asker.to_json()) == asker


def test_an_asker_that_an_earlier_release_stored_has_no_note() -> None:
    stored = {name: value for name, value in ADA.to_json().items() if name != "token_note"}
    assert asker_from_json(stored) == ADA


def test_who_answers_in_a_program_is_who_asks_there() -> None:
    known = {"name": "ada", "via": Via.TERMINAL, "display_name": "Ada", "token_note": "mine"}
    assert Asker.of(Reviewer(**known)) == Asker(**known)

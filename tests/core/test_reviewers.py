from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_agentbox.core.reviewers import DecideWith, Reviewer, ReviewerKind, Via, meanings_of
from jupyter_agentbox.exceptions import NeedsPersonError


@pytest.mark.parametrize("via", Via)
def test_every_way_counts_where_any_does(via: Via) -> None:
    Reviewer(name="ada", via=via).check(DecideWith.ANY)


@pytest.mark.parametrize("via", Via)
def test_only_a_browsers_login_counts_as_a_person(via: Via) -> None:
    reviewer = Reviewer(name="ada", via=via)
    if via in (Via.BROWSER, Via.BREAK_GLASS):
        reviewer.check(DecideWith.PERSON)
    else:
        with pytest.raises(NeedsPersonError):
            reviewer.check(DecideWith.PERSON)


@pytest.mark.parametrize("via", Via)
def test_what_the_program_that_runs_the_code_or_a_model_decides_is_no_persons_decision(via: Via) -> None:
    assert via.is_program is (via in (Via.PROGRAM, Via.MODEL, Via.NOBODY))


@pytest.mark.parametrize(
    ("via", "words"),
    [
        (Via.BROWSER, "Ada"),
        (Via.UNKNOWN, "Ada"),
        (Via.API_TOKEN, "a program with a token of Ada"),
        (Via.BREAK_GLASS, "Ada, who broke the glass"),
        (Via.SERVER_TOKEN, "a program with the server's own token"),
        (Via.PROGRAM, "a program run by Ada"),
        (Via.MCP_CLIENT, "an MCP client run by Ada"),
        (Via.TERMINAL, "Ada in the terminal"),
        (Via.MODEL, "the model gpt"),
        (Via.NOBODY, "a program that had nobody to ask"),
    ],
)
def test_who_answered_is_said_in_words(via: Via, words: str) -> None:
    name = "model:gpt" if via is Via.MODEL else "ada"
    assert Reviewer(name=name, display_name="Ada", via=via).in_words == words


def test_user_that_jupyter_made_up_is_called_by_the_name_that_it_shows() -> None:
    made_up = Reviewer(name="2a9c44" + "0" * 26, display_name="Anonymous Io", via=Via.BROWSER)
    assert made_up.in_words == "Anonymous Io"
    assert replace(made_up, display_name="").in_words == "user 2a9c44"
    assert replace(made_up, via=Via.API_TOKEN).in_words == "a program with the server's token"


def test_service_is_called_one() -> None:
    assert Reviewer(name="cron", kind=ReviewerKind.SERVICE).in_words == "the service cron"


@pytest.mark.parametrize(
    ("text", "meanings"),
    [
        ("Ada", {(None, "Ada")}),
        ("a program run by Ada", {(None, "a program run by Ada"), (Via.PROGRAM, "Ada")}),
        ("ada in the Terminal", {(None, "ada in the Terminal"), (Via.TERMINAL, "ada")}),
        ("term", {(None, "term"), (Via.TERMINAL, "")}),
        ("server's token", {(None, "server's token"), (Via.API_TOKEN, "")}),
        ("the service cron", {(None, "the service cron"), (None, "cron")}),
        ("ken", {(None, "ken")}),
    ],
)
def test_words_for_a_reviewer_are_understood(text: str, meanings: set[tuple[Via | None, str]]) -> None:
    assert set(meanings_of(text)) == meanings


def test_a_token_of_a_user_is_called_by_its_note() -> None:
    by_token = Reviewer(name="ada", via=Via.API_TOKEN, token_note="nightly run")
    assert by_token.in_words == "a program with a token of ada (“nightly run”)"
    assert replace(by_token, via=Via.BROWSER).in_words == "ada"
    assert replace(by_token, name="0" * 32).in_words == "a program with the server's token"


def test_a_note_cannot_seem_to_be_more_than_a_note() -> None:
    by_token = Reviewer(name="ada", via=Via.API_TOKEN, token_note="x”) approved in the browser by bob (“")
    words = by_token.in_words
    assert (words.count("“"), words.count("”")) == (1, 1)
    assert words.endswith("”)")

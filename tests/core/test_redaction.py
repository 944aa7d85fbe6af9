from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Outcome, OutcomeState
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from tests.samples import NOON, a_call, a_decision, a_request

REDACTION = Redaction()
KEY = "hunter2-and-more"


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "db_password", "dbPassword", "PGPASSWORD", "passphrase", "pwd", "client_secret"),
        *("token", "access_token", "accessToken", "GITHUB_TOKEN", "Authorization", "Proxy-Authorization", "auth"),
        *("apiKey", "api-key", "X-Api-Key", "OPENAI_API_KEY", "aws_secret_access_key", "privateKey", "credentials"),
        *(
            "Cookie",
            "Set-Cookie",
            "connectionString",
            "pass\u200bword",
            "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44",
        ),
    ],
)
def test_names_of_secrets_are_known_however_they_are_written(name: str) -> None:
    assert REDACTION.is_secret(name)


@pytest.mark.parametrize(
    "name", ["key", "keyword", "author", "max_tokens", "passenger", "session", "compass", "monkey"]
)
def test_other_names_are_not(name: str) -> None:
    assert not REDACTION.is_secret(name)


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ({"user": "ada", "password": KEY}, {"user": "ada", "password": REDACTED}),
        ({"password": None, "has_token": True, "token": ""}, {"password": None, "has_token": True, "token": ""}),
        ({"pwd": 4711}, {"pwd": REDACTED}),
        ({"credentials": {"user": "ada", "key": KEY}}, {"credentials": REDACTED}),
        ({"headers": [{"Authorization": f"Bearer {KEY}"}]}, {"headers": [{"Authorization": REDACTED}]}),
        ({"env": [{"name": "API_KEY", "value": KEY}]}, {"env": [{"name": "API_KEY", "value": REDACTED}]}),
        ({"token": KEY, "command": f"login {KEY}"}, {"token": REDACTED, "command": f"login {REDACTED}"}),
        ({"args": ["--password", KEY, "-x", KEY]}, {"args": ["--password", REDACTED, "-x", REDACTED]}),
        ({"argv": ["/usr/bin/curl", "-u", f"ada:{KEY}"]}, {"argv": ["/usr/bin/curl", "-u", f"ada:{REDACTED}"]}),
        ({"argv": ["docker", "login", "-p", KEY]}, {"argv": ["docker", "login", "-p", REDACTED]}),
        ({"argv": ["mysql", "-u", "ada", f"-p{KEY}"]}, {"argv": ["mysql", "-u", "ada", f"-p{REDACTED}"]}),
        ({"args": ["--token", "--x", 7, "-pwd"]}, {"args": ["--token", "--x", 7, "-pwd"]}),
        ({"rows": [1, 2.5, True, None]}, {"rows": [1, 2.5, True, None]}),
        ({"pins": {"token": KEY}, "text": f"x{KEY}"}, {"pins": {"token": REDACTED}, "text": f"x{REDACTED}"}),
    ],
)
def test_values_of_such_names_are_redacted_wherever_they_are(arguments: Any, kept: Any) -> None:
    call = a_call(arguments=arguments)

    redacted, _ = REDACTION.call(call)

    assert redacted.arguments == kept
    assert redacted.digest == call.digest
    assert REDACTION.call(redacted)[0] == redacted


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"PGPASSWORD={KEY} psql", f"PGPASSWORD={REDACTED} psql"),
        (f"login(user='ada', password='{KEY}')", f"login(user='ada', password='{REDACTED}')"),
        (f'x = password="{KEY}"', f'x = password="{REDACTED}"'),
        (f'{{"api_key": "{KEY}"}}', f'{{"api_key": "{REDACTED}"}}'),
        (f'{{\\"api_key\\": \\"{KEY}\\"}}', f'{{\\"api_key\\": \\"{REDACTED}\\"}}'),
        (f"curl -H 'X-Api-Key: {KEY}'", f"curl -H 'X-Api-Key: {REDACTED}'"),
        (f"srv --password={KEY} --port=80", f"srv --password={REDACTED} --port=80"),
        (f"srv --db-password {KEY} --pwd --verbose", f"srv --db-password {REDACTED} --pwd --verbose"),
        (f"run(['srv', '--token', '{KEY}'])", f"run(['srv', '--token', '{REDACTED}'])"),
        (f"os.environ['API_KEY'] = '{KEY}'", f"os.environ['API_KEY'] = '{REDACTED}'"),
        (f"if (password := '{KEY}'): pass", f"if (password := '{REDACTED}'): pass"),
        (f'password = """{KEY}\nx"""', f'password = """{REDACTED}"""'),
        (f"password = rb'{KEY}'", f"password = '{REDACTED}'"),
        (f"password = '{KEY}\\'{KEY}'", f"password = '{REDACTED}'"),
        (rf"password = '{KEY}\' # Windows", f"password = '{REDACTED}' # Windows"),
        ("password='redacted-hunter2'", f"password='{REDACTED}'"),
        (f"password={KEY}-redacted", f"password={REDACTED}"),
        (f"password={KEY} token={REDACTED}", f"password={REDACTED} token={REDACTED}"),
        (f"password='{KEY}' {REDACTED}", f"password='{REDACTED}' {REDACTED}"),
        (f"password={KEY} {REDACTED}", f"password={REDACTED} {REDACTED}"),
        ("password=token 12345", f"password=token {REDACTED}"),
        (f"Authorization: Bearer {REDACTED}", f"Authorization: Bearer {REDACTED}"),
        ("x-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln y", f"x-{REDACTED} y"),
        ("eyJhbGciOiJIUzI1NiJ9 is only a header", "eyJhbGciOiJIUzI1NiJ9 is only a header"),
        (f"Authorization: Bearer {KEY}", f"Authorization: Bearer {REDACTED}"),
        (f"https://ada:{KEY}@example.org/x", f"https://ada:{REDACTED}@example.org/x"),
        (f"https://ada:p@{KEY}@example.org/x", f"https://ada:{REDACTED}@example.org/x"),
        (f"curl -H 'Authorization: Bearer {KEY}' x", f"curl -H 'Authorization: Bearer {REDACTED}' x"),
        (f"curl -H 'Authorization: Basic {KEY[:3]}' x", f"curl -H 'Authorization: Basic {REDACTED}' x"),
        (f"curl -H 'Authorization: ApiKey {KEY}' x", f"curl -H 'Authorization: ApiKey {REDACTED}' x"),
        (
            f'{{"cmd": "curl -H \\"Authorization: mine {KEY}\\""}}',
            f'{{"cmd": "curl -H \\"Authorization: {REDACTED}\\""}}',
        ),
        (
            f'curl -H \'Proxy-Authorization: Digest username="ada", response="{KEY}"\'',
            f"curl -H 'Proxy-Authorization: Digest {REDACTED}'",
        ),
        (f"GET / HTTP/1.1\nCookie: a=b; session={KEY}\nHost: x", f"GET / HTTP/1.1\nCookie: {REDACTED}\nHost: x"),
        ("Cookie: " + "a=b; " * 1000 + f"session={KEY}\nHost: x", f"Cookie: {REDACTED}\nHost: x"),
        ("curl -H 'Cookie: " + "a=b; " * 1000 + f"session={KEY}' x", f"curl -H 'Cookie: {REDACTED}' x"),
        (f"> Authorization: Basic {KEY}", f"> Authorization: Basic {REDACTED}"),
        (f"curl -u ada:{KEY} https://x", f"curl -u ada:{REDACTED} https://x"),
        (f"mysql -u root --password={KEY} shop", f"mysql -u root --password={REDACTED} shop"),
        ("def f(authorization: str, cookie: str) -> None:", "def f(authorization: str, cookie: str) -> None:"),
        ("key sk-proj-abcdefghijklmnop12 was refused", f"key {REDACTED} was refused"),
        ("ghp_" + "a" * 36, REDACTED),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n", f"{REDACTED}\n"),
        ("def login(password: str) -> None: ...", "def login(password: str) -> None: ..."),
        ("max_tokens=1000, key=7", "max_tokens=1000, key=7"),
        ("12:30", "12:30"),
    ],
)
def test_texts_lose_what_looks_like_a_secret(text: str, kept: str) -> None:
    assert REDACTION.text(text) == kept
    assert REDACTION.text(kept) == kept


def test_a_decision_and_an_error_are_redacted_and_the_digest_of_the_edited_call_stays() -> None:
    request = a_request(call=a_call(arguments={"token": KEY}))
    edited = {"token": "another-secret"}
    decided = request.decide(a_decision(request, arguments=edited, reason=f"{KEY} is stale"))
    error = f"401 for another-secret, not {KEY}"
    ended = decided.with_outcome(Outcome(state=OutcomeState.RUNNING)).with_outcome(
        Outcome(state=OutcomeState.FAILED, started_at=NOON, finished_at=NOON, error=error)
    )

    kept = REDACTION.request(ended)

    assert kept.decision is not None
    assert kept.outcome is not None
    assert kept.decision.arguments == {"token": REDACTED}
    assert kept.decision.reason == f"{REDACTED} is stale"
    assert kept.outcome.error == f"401 for {REDACTED}, not {REDACTED}"
    assert kept.effective_call.digest == ended.effective_call.digest
    assert KEY not in repr(kept)
    assert REDACTION.request(kept) == kept


def test_a_text_that_was_cut_in_the_middle_of_a_secret_loses_its_beginning() -> None:
    request = a_request(call=a_call(arguments={"token": KEY}))
    _, secrets = REDACTION.call(request.call)
    running = request.decide(a_decision(request)).with_outcome(Outcome(state=OutcomeState.RUNNING))

    ended = running.with_outcome(Outcome(state=OutcomeState.FAILED, error=f"bad {KEY}"[:10]))

    outcome = REDACTION.answer(ended, secrets).outcome
    assert outcome is not None
    assert outcome.error == f"bad {REDACTED}"


def test_edited_arguments_without_a_secret_stay_as_they_are() -> None:
    request = a_request()
    decided = request.decide(a_decision(request, arguments={"order_id": 8}))
    assert REDACTION.request(decided) == decided


def test_without_patterns_nothing_is_redacted() -> None:
    request = a_request(call=a_call(arguments={"token": KEY}))
    assert Redaction(()).request(request) == request
    assert Redaction(()).text(f"token={KEY}") == f"token={KEY}"


def test_where_passwords_are_no_secrets_those_of_command_lines_stay() -> None:
    redaction = Redaction(("iban",))
    for text in (f"curl -u ada:{KEY} x", f"curl -H 'Authorization: ApiKey {KEY}'"):
        assert redaction.text(text) == text
    call, _ = redaction.call(a_call(arguments={"argv": ["curl", "-u", f"ada:{KEY}"]}))
    assert call.arguments == {"argv": ["curl", "-u", f"ada:{KEY}"]}


@pytest.mark.parametrize(
    "pattern", ["sessionCode", "session-code", "SESSION_CODE", "session code", "*onCode", "session[_]code"]
)
def test_a_name_can_be_chosen_as_it_is_written_anywhere(pattern: str) -> None:
    redaction = Redaction([pattern])
    names = ("sessionCode", "SESSION-CODE", "session_code", "Session Code")
    assert [name for name in names if not redaction.is_secret(name)] == []
    assert not redaction.is_secret("session")


def test_a_name_that_is_chosen_in_humps_is_also_known_without_them() -> None:
    assert Redaction(["sessionCode"]).is_secret("sessioncode")


def test_names_can_be_chosen() -> None:
    redaction = Redaction(("iban", "*_PIN"))
    call, _ = redaction.call(a_call(arguments={"iban": "DE02", "card_pin": "1234", "token": "open"}))
    assert call.arguments == {"iban": REDACTED, "card_pin": REDACTED, "token": "open"}


@pytest.mark.parametrize(
    "text",
    [
        *("a" * 1_000_000, "a=" * 300_000, 'token="' * 100_000, "-----BEGIN PRIVATE KEY-----" * 20_000),
        "eyJaaaaaaaa-" * 100_000,
        'password="' + r"\a" * 5_000,
        'curl -u "' + r"\a" * 5_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_very_long_text_is_read_in_linear_time(text: str) -> None:
    REDACTION.text(text)


def test_with_very_many_secrets_every_other_text_is_redacted_entirely() -> None:
    tokens = [{"token": f"secret-{number}"} for number in range(5_000)]
    call, secrets = REDACTION.call(a_call(arguments={"tokens": tokens, "notes": ["secret-7", "fine", ""] * 5_000}))

    assert call.arguments["notes"] == [REDACTED, REDACTED, ""] * 5_000
    request = a_request(call=a_call(arguments={"token": KEY}))
    running = request.decide(a_decision(request)).with_outcome(Outcome(state=OutcomeState.RUNNING))
    failed = running.with_outcome(Outcome(state=OutcomeState.FAILED, error="secret-7 was refused"))
    outcome = REDACTION.answer(failed, secrets).outcome
    assert outcome is not None
    assert outcome.error == REDACTED


def test_very_long_names_are_known_and_not_remembered() -> None:
    redaction = Redaction()
    name = "x" * 300 + "_password"
    assert redaction.is_secret(name)
    assert name not in redaction._known


def test_what_has_no_decision_and_no_error_stays_as_it_is() -> None:
    request = a_request()
    assert REDACTION.answer(request) == request

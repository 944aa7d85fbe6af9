"""What `auth-state-headers` makes of files and answers that are not as they should be: it says so, and quotes none."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_agentbox.hub.auth_state_headers import main
from jupyter_agentbox.hub.id_jag import Exchange, Party, exchange_id_token

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], str]]:
    """Return a function that answers one request with these bytes, and returns where."""
    opened: list[socket.socket] = []

    def serve(answer: bytes) -> str:
        at = socket.create_server(("127.0.0.1", 0))
        opened.append(at)

        def run() -> None:
            connection, _ = at.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{at.getsockname()[1]}"

    yield serve
    for at in opened:
        at.close()


def headers(directory: Path, origin: str, *, token: str = "token-of-the-service") -> int:
    (directory / "token").write_text(token)
    return main(["--user=ada", f"--token-file={directory}/token", f"--api-url={origin}/hub/api"])


def user(**model: object) -> bytes:
    return OK + b"\r\n" + json.dumps(model).encode()


@pytest.mark.parametrize("token", ["secret-one\nsecret-two", "secret\N{LEFT DOUBLE QUOTATION MARK}"])
def test_a_file_with_more_than_a_token_is_not_quoted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], token: str
) -> None:
    assert headers(tmp_path, "http://127.0.0.1:9", token=token) == 1
    told = capsys.readouterr()
    assert ("must contain a token of the Hub and nothing else" in told.err, "secret" in told.err) == (True, False)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"secret\r\n\r\n", "did not answer with JSON"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nsecret\r\n", "did not answer with JSON"),
        (OK + b"Content-Length: 100\r\n\r\n{", "did not answer with JSON"),
        (OK + b"\r\n" + b"[" * 100_000, "did not answer with JSON"),
        (user(auth_state={"access_token": "secret\r\nCookie: a"}), "has a character that no header may have"),
        (user(name="bob", auth_state={"access_token": "secret"}), "answered about another user"),
    ],
)
def test_an_answer_that_cannot_be_used_is_said_in_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    answering: Callable[[bytes], str],
    answer: bytes,
    why: str,
) -> None:
    assert headers(tmp_path, answering(answer)) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n"), why in told.err, "secret" in told.err) == ("", 1, True, False), told.err


def test_a_refusal_of_a_provider_that_breaks_off_is_one(tmp_path: Path, answering: Callable[[bytes], str]) -> None:
    (tmp_path / "secret").write_text("a secret")
    origin = answering(b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")
    party = Party(issuer=origin, token_endpoint=origin, client_id="c", client_secret_file=tmp_path / "secret")
    exchange = Exchange(identity_provider=party, authorization_server=party)
    with pytest.raises(OSError, match=r"answered 400$"):
        exchange_id_token("id-token", exchange, resource="https://mcp.example")

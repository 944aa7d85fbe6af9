from __future__ import annotations

import json
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest

from jupyter_agentbox.core.tools import LogMessage
from jupyter_agentbox.mcp_client.logs import LONGEST_LOG_MESSAGE, LogRing, Redactor, read_log_message


def test_secrets_are_replaced_the_longest_first() -> None:
    redact = Redactor(["secret", "secret-and-more", "abcd", ""])
    assert redact("a secret-and-more, a secret, abcd") == "a ***, a ***, abcd"
    assert "secret" not in repr(redact)


def test_each_line_of_a_secret_is_one() -> None:
    assert Redactor(["-----BEGIN KEY-----\nMIIEabc\n"])("MIIEabc") == "***"


@pytest.mark.parametrize("secret", ['pa"ss\\word', "line\nbreak", "geheim-é", "tab\there"])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_a_secret_is_replaced_as_json_writes_it_too(secret: str, ascii_only: bool) -> None:
    redact = Redactor([secret])
    assert redact(secret) == "***"
    assert redact(json.dumps({"a": [secret], secret: 1}, ensure_ascii=ascii_only)) == '{"a": ["***"], "***": 1}'


def test_a_secret_is_replaced_where_json_escapes_its_slashes() -> None:
    secret = "https://ada:p/ss>>word??1@db"
    redact = Redactor([secret])
    in_base64 = b64encode(secret.encode()).decode()
    assert "/" in in_base64
    for written in (secret, in_base64):
        said = redact(json.dumps({"a": written}).replace("/", "\\/"))
        assert said.startswith('{"a": "***')
        assert len(said) <= len('{"a": "***x=="}')


@pytest.mark.parametrize("change", [str.lower, str.upper])
def test_a_secret_is_replaced_in_hexadecimal_digits(change: Callable[[str], str]) -> None:
    secret = "p\xe4ssword 1"
    assert Redactor([secret])(f"key: 0x{change(secret.encode().hex())}.") == "key: 0x***."


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "a", "ad", "ada", "ada:"])
@pytest.mark.parametrize("after", ["", "\n", "@x"])
def test_a_secret_is_replaced_in_base64_wherever_it_stands(
    encode: Callable[[bytes], bytes], before: str, after: str
) -> None:
    secret = "p\xe4ss>>word??1"
    said = Redactor([secret])(f"Authorization: Basic {encode((before + secret + after).encode()).decode()}")
    start, found, end = said.removeprefix("Authorization: Basic ").partition("***")
    assert found
    assert len(start) <= len(encode(before.encode()))
    assert len(end) <= 8, "a character or two of the last byte, what comes after it, and the padding"


def test_a_secret_is_replaced_as_urls_have_it() -> None:
    redact = Redactor(["p\xe4ss/word 1", "short 1"])
    by_javascript = "p%C3%A4ss%2Fword%201"  # encodeURIComponent
    for written in (
        quote("p\xe4ss/word 1"),
        quote("p\xe4ss/word 1", safe=""),
        quote_plus("p\xe4ss/word 1"),
        by_javascript,
        by_javascript.lower(),
    ):
        assert redact(f"GET /x?key={written}&a=1") == "GET /x?key=***&a=1"
    assert redact(b64encode(b"short 1").decode()) == b64encode(b"short 1").decode(), "it would be too short"


def test_a_secret_is_replaced_where_oauth_encodes_it_twice() -> None:
    secret = "p(ss>>word??1!"
    said = Redactor([secret])(b64encode(f"client:{quote(secret, safe='')}".encode()).decode())
    assert said.startswith("Y2xpZW50O")
    assert "***" in said
    assert len(said) < 20


def test_what_a_provider_chooses_as_a_token_does_not_make_the_search_slow() -> None:
    redact = Redactor(["secret-of-the-configuration"])
    began = time.process_time()
    for number in range(4):
        redact.learn("-" * 15_000 + str(number))
    assert redact("-" * 16_000) != ""
    assert time.process_time() - began < 2, "it was half a minute"


def test_a_text_that_is_cut_does_not_end_with_a_part_of_a_secret() -> None:
    redact = Redactor(["0123456789"])
    text = "ab 0123456789 cd 0123456789 ef"
    assert redact.head(text, 100) == redact(text) == "ab *** cd *** ef"
    for length in range(len(text)):
        assert not set(redact.head(text, length)) & set("0123456789")
    assert redact.head(text, 17) == "ab *** cd "
    assert redact.head(text, 18) == "ab *** cd ***"
    assert redact.head(text, 4) == "ab *"
    assert redact.head("0123456789" * 1000, 25) == "*********"
    assert Redactor().head(text, 2) == "ab"


def test_no_part_of_a_log_message_ends_with_a_part_of_a_secret() -> None:
    secret = "s3cr3t-" + "A1b2" * 40
    redact = Redactor([secret])
    message = read_log_message({"level": "x" * 90 + secret, "logger": "x" * 20 + secret, "data": secret * 120}, redact)
    assert message == LogMessage(level="x" * 90 + "***", logger="x" * 20 + "***", text="***" * 99)
    nested = read_log_message({"data": {"a": [secret, {secret: 1}]}}, redact)
    assert nested.text == '{"a": ["***", {"***": 1}]}'
    long = read_log_message({"data": ["x" * (LONGEST_LOG_MESSAGE - 20) + secret]}, redact)
    assert long.text.endswith("xxx***")


def test_of_many_tokens_that_a_provider_renews_the_last_are_replaced() -> None:
    redact = Redactor(["s3cret"])
    tokens = [f"<token-{number}>" for number in range(1000)]
    for token in tokens:
        redact.learn(token)
    assert redact(f"s3cret {tokens[-1]} {tokens[-50]} {tokens[0]}") == f"*** *** *** {tokens[0]}"


def test_the_last_lines_are_kept_without_secrets_and_control_characters() -> None:
    ring = LogRing(2, Redactor(["s3cret"]))
    for line in ("first", "\x1b[31mred\x1b[0m s3cret\r\n", "  ", "x" * 3000):
        ring.add(line)
    red, long = ring.lines()
    assert red == "red ***"
    assert long.startswith("x" * 2000)
    assert len(long) < 2100
    assert ring.tail(1) == f"\n    {long}"


def test_a_line_that_is_not_to_be_quoted_is_kept_and_not_among_the_last_words() -> None:
    ring = LogRing(10, Redactor(["s3cret"]))
    ring.begin()
    ring.add("first")
    assert ring.add_unquoted("a program's s3cret") == "a program's ***"
    assert ring.lines() == ("first", "a program's ***")
    assert ring.tail(1) == "\n    first"


def test_last_words_are_those_of_the_present_process_or_of_the_one_before_it_in_the_same_start() -> None:
    ring = LogRing(10, Redactor([]))
    ring.add("of an earlier start")
    ring.begin()
    assert ring.tail() == ""
    ring.add("first")
    ring.begin(again="another way")
    assert ring.tail() == "\n    first\n    another way"
    ring.add("second")
    assert ring.tail() == "\n    second"
    assert ring.lines() == ("of an earlier start", "first", "another way", "second")

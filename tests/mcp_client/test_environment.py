from __future__ import annotations

import pytest

from jupyter_agentbox.mcp_client.env_file import parse_env_file
from jupyter_agentbox.processes.environment import process_environment


def test_only_what_a_process_needs_is_passed_on() -> None:
    needed = {
        "PATH": "/bin",
        "HOME": "/h",
        "LC_ALL": "C",
        "XDG_CACHE_HOME": "/c",
        "https_proxy": "p",
        "SSL_CERT_FILE": "f",
    }
    kept_back = {
        "JUPYTER_TOKEN": "t",
        "JUPYTERHUB_API_TOKEN": "t",
        "JPY_API_TOKEN": "t",
        "AWS_SECRET_ACCESS_KEY": "t",
        "GOOGLE_APPLICATION_CREDENTIALS": "t",
        "OPENAI_API_KEY": "t",
        "PYTHONPATH": "t",
        "TERM": "() { :; }; echo",
    }
    assert process_environment({**needed, **kept_back}, {}) == needed


def test_what_the_configuration_names_wins() -> None:
    configured = {"PATH": "/mine", "AWS_PROFILE": "shop"}
    assert process_environment({"PATH": "/bin", "AWS_PROFILE": "other"}, configured) == configured


def test_an_env_file_has_names_quotes_and_comments() -> None:
    text = """
    # comment
    A=1
    export B = two words # comment
    C="a # b\\nc"
    D='$x\\n'
    E=
    F=a=b
    """
    assert parse_env_file(text) == {
        "A": "1",
        "B": "two words",
        "C": "a # b\nc",
        "D": "$x\\n",
        "E": "",
        "F": "a=b",
    }


def test_what_is_in_quotes_may_have_many_lines() -> None:
    text = "KEY=\"-----BEGIN KEY-----\nabc=\n# no comment\n-----END KEY-----\" # a key\r\nB='it\\'s\nhere'\nC=1"
    assert parse_env_file(text) == {
        "KEY": "-----BEGIN KEY-----\nabc=\n# no comment\n-----END KEY-----",
        "B": "it's\nhere",
        "C": "1",
    }


def test_a_long_file_is_read_at_once() -> None:
    many = "".join(f"# note\n\nA{number}='x'\n" for number in range(20_000))
    assert len(parse_env_file(many)) == 20_000
    assert parse_env_file("\n" * 200_000 + "A=1") == {"A": "1"}
    with pytest.raises(ValueError, match="line 1 "):
        parse_env_file("A='" + "\\x" * 200_000)


@pytest.mark.parametrize("text", ["A=1\nsecret", "=secret", "A='secret", 'A="secret\nB=1'])
def test_a_bad_line_is_named_by_number_and_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="line") as caught:
        parse_env_file(text)
    assert "secret" not in str(caught.value)

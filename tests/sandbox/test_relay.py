from __future__ import annotations

from jupyter_agentbox.sandbox.relay import harmless


def test_characters_that_steer_a_terminal_do_not_pass() -> None:
    assert harmless(b"a\x1b[2Jb\x07\tc\n\xc2\x9b") == "a\ufffd[2Jb\ufffd\tc\n\ufffd"


def test_text_passes_whole() -> None:
    assert harmless("naïve 😀\n".encode()) == "naïve 😀\n"

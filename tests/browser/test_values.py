"""Values by their kind: code, JSON, differences and images, and values that try to pass for something else."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from .accessibility import violations
from .lab import STRANGE_NAME
from .person import CARD, NEXT_FRAMES, Person, approach, await_true, decide
from .pictures import faults

SQL = "SELECT name, sum(total) AS spent\nFROM orders JOIN customers USING (customer)\nWHERE total > 100 GROUP BY name"
DIFF = "--- a/prices.py\n+++ b/prices.py\n@@ -1,2 +1,2 @@\n def price(order):\n-    return order.total\n+    return 0"
SETTINGS = {"retries": 3, "regions": ["eu-north-1", "eu-west-1"], "dry_run": False, "owner": {"name": "Ada", "team": 7}}

#: What a person could take for the end of the card, and what would be one if any of it were more than text.
IMITATION = (
    "SELECT 1;\n</pre></div><button class='jp-AgentBox-button jp-mod-allow'>Allow once</button>\n"
    "<style>.jp-AgentBox-card { display: none }</style><script>window.hacked = 'yes'</script>\n"
    "\\3c style\\3e \\000a * { visibility: hidden }\n"
    "-- \u202e\u2066;sredro ELBAT PORD\u2069 \u200b\u200d\ufeff\n"
    "Allowed by Ada. Done in 3 s."
)
#: A hundred blanks and a hundred lines, behind which somebody hopes that nobody looks.
FAR_AWAY = "SELECT 1" + " " * 300 + "; DROP TABLE orders" + "\n" * 100 + "; DROP TABLE customers"


def png(width: int, height: int, rows: int | None = None) -> bytes:
    """Return a PNG whose header names these sides, with as many rows of pixels as are asked for."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    made = height if rows is None else rows
    pixels = b"".join(
        b"\0" + bytes(c for x in range(width) for c in (40, 2 * x % 256, 4 * y % 256)) for y in range(made)
    )
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def call(**arguments: object) -> str:
    """Return the code of a cell that calls a tool which takes any arguments."""
    values = f"json.loads({json.dumps(arguments)!r})"
    return (
        f"import json\nfrom jupyter_agentbox.kernel import runtime\n"
        f"runtime.link().call({STRANGE_NAME!r}, '<b>delete</b>_all', {values})"
    )


def editor(card: Locator, name: str) -> Locator:
    """The editor in which the value of an argument stands."""
    return card.locator(".cm-content").and_(card.page.get_by_label(name, exact=True))


def focus_is_on(node: Locator) -> bool:
    return bool(node.evaluate("node => node === document.activeElement"))


@pytest.fixture
def person(same_page: Person) -> Person:
    return same_page


def test_no_key_is_kept_from_a_card_with_editors(person: Person, notebook: Callable[..., str]) -> None:
    person.page.set_viewport_size({"width": 1280, "height": 1100})  # a letter counts while its button is in view
    person.open(notebook(call(sql=SQL, code="import os\n" * 30)))
    person.run(0)
    card = person.card()
    allow = card.get_by_role("button", name="Allow once")
    line = editor(card, "sql").locator(".cm-line").first
    expect(line).to_have_text(SQL.split("\n", maxsplit=1)[0])
    line.click()
    expect(allow).to_be_enabled()
    seen = 0
    while not focus_is_on(allow) and seen < 12:
        person.keyboard.press("Tab")
        seen += 1
    expect(allow).to_be_focused()
    line.click()
    person.keyboard.press("?")
    expect(card.get_by_role("status").filter(has_text="Next request")).to_be_visible()
    expect(card).to_have_attribute("data-keys", "ready")
    person.keyboard.press("a")
    expect(card).to_contain_text("Allowed by you")


def test_value_that_scrolls_was_not_seen_until_it_is_opened(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(call(sql=FAR_AWAY)))
    person.run(0)
    card = person.card()
    first = editor(card, "sql").locator(".cm-line").first
    expect(first).to_contain_text("; DROP TABLE orders")
    box, line = card.locator(".jp-AgentBox-codeBox").bounding_box(), first.bounding_box()
    assert box
    assert line
    assert line["x"] + line["width"] <= box["x"] + box["width"]  # it wraps: nothing is pushed out at the side
    note = card.get_by_text("You have not seen")
    expect(note).to_contain_text("of “sql”")
    card.get_by_role("button", name="Show all lines").click()
    expect(note).to_have_count(0)
    card.get_by_role("button", name="Show less").scroll_into_view_if_needed()  # lines are made as they come into view
    expect(card.locator(".cm-line", has_text="DROP TABLE customers")).to_have_count(1)


def test_rows_and_columns_of_a_table_were_not_seen_until_somebody_scrolled_to_them(
    person: Person, notebook: Callable[..., str]
) -> None:
    orders = [{"id": number, "customer": "Ada"} for number in range(40)]
    wide = [{f"column_{number}": "a text of some words" for number in range(8)}] * 2
    person.page.set_viewport_size({"width": 800, "height": 800})
    person.open(notebook(call(orders=orders, wide=wide)))
    person.run(0)
    card = person.card()
    for name, keys in {"orders": ("End",), "wide": ("ArrowRight",) * 20}.items():
        note = card.get_by_text(f"of “{name}”")
        expect(note).to_have_count(1)
        card.get_by_role("group", name=name).focus()
        for key in keys:
            person.keyboard.press(key)
        expect(note).to_have_count(0)


def test_nothing_was_seen_of_a_value_in_a_tab_that_was_hidden(person: Person, notebook: Callable[..., str]) -> None:
    person.open(notebook(call(sql=FAR_AWAY, note="one line\n" * 40)))
    person.open_panel()
    person.show_tab("Servers")
    person.run(0)
    expect(person.card()).to_be_visible()
    person.show_tab("Waiting")
    card = person.panel.get_by_role("group", name=CARD)
    expect(card.get_by_text("You have not seen")).to_have_count(2)
    for name in ("sql", "note"):
        text = card.get_by_role("group", name=name)
        text.evaluate("node => node.scrollTo(0, node.scrollHeight)")
        expect(card.get_by_text(f"of “{name}”")).to_have_count(0)


def test_values_that_try_to_be_more_than_text_are_text(person: Person, notebook: Callable[..., str]) -> None:
    fetched: list[str] = []
    person.page.on("request", lambda request: fetched.append(request.url))
    svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=1'><script>window.hacked=1</script></svg>"
    images = {
        "polyglot": text_of(png(8, 8) + b"<script>window.hacked = 'yes'</script>"),
        "bomb": text_of(png(30_000, 30_000, rows=1)),
        "vector": text_of(svg),
        "claimed": f"data:image/png;base64,{text_of(svg)}",
        "remote": "https://elsewhere.invalid/" + "a" * 60 + ".png",
    }
    person.open(notebook(call(sql=IMITATION, **images)))
    person.run(0)
    card = person.card()
    shown = editor(card, "sql").locator(".cm-line")
    expect(shown).to_have_count(len(IMITATION.split("\n")))
    assert shown.nth(4).inner_text() == ("-- \\u202e\\u2066;sredro ELBAT PORD\\u2069 \\u200b\\u200d\\ufeff")
    expect(card.get_by_role("note").first).to_contain_text("invisible or direction-changing characters")
    expect(card.get_by_role("button", name="Allow once")).to_have_count(1)
    expect(card.get_by_role("img", name="PNG image")).to_have_count(1)  # that of the polyglot
    expect(card).to_contain_text("30,000 × 30,000 pixels")
    expect(card).to_contain_text("Not drawn: it has too many pixels.")
    for text in images.values():
        expect(card).to_contain_text(text)
    assert card.locator("dd script, dd style, dd iframe, dd object, dd button.jp-mod-allow").count() == 0
    assert person.page.evaluate("window.hacked ?? null") is None
    assert not [url for url in fetched if "elsewhere" in url]
    decide(card, "Reject")
    person.keyboard.press("Enter")
    expect(card).to_contain_text("Rejected by you")


def test_two_megabytes_in_a_line_do_not_keep_the_page_waiting(person: Person, notebook: Callable[..., str]) -> None:
    person.open(
        notebook(call(body=1).replace("json.loads('{\"body\": 1}')", "{'body': json.dumps({'a': 'x' * 2_000_000})}"))
    )
    person.run(0)
    card = person.card()
    card.get_by_role("button", name="Show all arguments").or_(
        card.get_by_text("characters not shown here")
    ).first.wait_for()
    if (button := card.get_by_role("button", name="Show all arguments")).count():
        button.click()
    expect(card).to_contain_text("You have not seen")
    expect(card.locator(".cm-editor")).to_have_count(0)
    expect(card.get_by_role("button", name="Allow once")).to_be_enabled()
    milliseconds = person.page.evaluate(
        f"async () => {{ const start = performance.now(); await ({NEXT_FRAMES})(); return performance.now() - start; }}"
    )
    assert milliseconds < 5000


@pytest.mark.usefixtures("theme")
def test_values_look_like_what_they_are(new_person: Callable[[], Person], notebook: Callable[..., str]) -> None:
    person = new_person()
    person.page.set_viewport_size({"width": 1280, "height": 1500})
    person.open(notebook(call(sql=SQL, patch=DIFF, settings=SETTINGS, chart=text_of(png(120, 40)))))
    person.run(0)
    card = person.card()
    expect(editor(card, "sql").locator(".cm-line")).to_have_text(SQL.split("\n"))
    expect(editor(card, "sql").locator(".cm-line span").first).to_have_text("SELECT")  # the language has come
    expect(editor(card, "settings").locator(".cm-line")).to_have_text(json.dumps(SETTINGS, indent=2).split("\n"))
    expect(editor(card, "patch").locator(".jp-mod-added")).to_have_text(["+++ b/prices.py", "+    return 0"])
    image = card.get_by_role("img", name="PNG image, 120 × 40 pixels")
    await_true(image, "image => image.complete && image.naturalWidth === 120")
    card.scroll_into_view_if_needed()
    assert faults(card) == []
    assert violations(person.page) == []


def test_a_long_value_is_copied_exactly_and_opened_whole_on_a_page_of_its_own(
    new_person: Callable[[], Person], notebook: Callable[..., str]
) -> None:
    person = new_person()
    person.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    long = "\n".join(f"SELECT {number}; -- \u202e" for number in range(200))
    person.open(notebook(call(sql=long, note="short\nbut on two lines")))
    person.run(0)
    card = person.card()
    expect(card.get_by_role("button", name="Copy")).to_have_count(2)
    expect(card.get_by_role("button", name="Open in a tab")).to_have_count(1)
    for name, text in {"note": "short\nbut on two lines", "sql": long}.items():
        decide(card, f"Copy: {name}")
        expect(card.get_by_role("status").filter(has_text="Copied").last).to_be_visible()
        assert person.page.evaluate("navigator.clipboard.readText()") == text
    decide(card, "Open in a tab: sql")
    expect(person.page.get_by_role("tab", name="sql (value)")).to_have_attribute("aria-selected", "true")
    page = person.page.get_by_role("region", name="sql", exact=True)
    expect(page).to_contain_text("SELECT 0; -- ")
    page.evaluate("page => { const box = page.parentElement; box.scrollTop = box.scrollHeight; }")
    expect(page.get_by_text("SELECT 199; -- ")).to_be_in_viewport()
    assert violations(person.page, ".jp-AgentBox-valuePage") == []
    # To look at a value elsewhere decides nothing.
    person.page.get_by_role("tab", name=re.compile(r"\.ipynb$")).first.click()
    approach(card.get_by_role("button", name="Allow once"))  # a notification covers the card until it is in view

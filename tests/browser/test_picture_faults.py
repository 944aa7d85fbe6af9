"""The pictures of the documentation show what they are meant to show, or they are not saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

PART = "<p id='part' style='position: absolute; left: 100px; top: 100px; width: 300px; height: 120px'>What is meant</p>"
COVER = (
    "<aside class='toast' style='position: absolute; left: 340px; top: 180px; width: 100px; height: 80px'>hi</aside>"
)
BEHIND = "<aside style='position: absolute; z-index: -1; inset: 0'>what is below it</aside>"
SLIDING = "<style>@keyframes in { from { transform: translateX(1200px) } } #part { animation: in 1s }</style>"
CLIPPING = "<div class='list' style='position: absolute; inset: 0; height: 150px; overflow: auto'>{}</div>"


@pytest.fixture
def page(new_context: Callable[[], BrowserContext]) -> Page:
    return new_context().new_page()


def test_a_part_that_is_seen_whole_is_saved(page: Page, save_picture: Callable[..., None], pictures: Path) -> None:
    page.set_content(BEHIND + PART)
    save_picture("seen", page.locator("#part"))
    assert (pictures / "seen.png").exists()


def test_a_part_that_slides_into_the_page_is_saved_when_it_is_there(
    page: Page, save_picture: Callable[..., None], pictures: Path
) -> None:
    page.set_content(SLIDING + PART)
    save_picture("slid", page.locator("#part"))
    assert (pictures / "slid.png").exists()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (PART + COVER, 'class="toast"> covers it'),
        (CLIPPING.format(PART), "does not show all of it"),
        (PART.replace("left: 100px", "left: 1100px"), "cut off"),
        (PART.replace("top: 100px", "top: -60px"), "cut off"),
        (PART.replace("width: 300px", "width: 0"), "takes no room"),
        (PART.replace("100px", "20px") + PART.replace("'part'", "'other'") + COVER, "covers it"),
    ],
    ids=["covered", "scrolled away", "beyond the window", "above the window", "without room", "one of two covered"],
)
def test_a_part_that_is_covered_or_cut_off_is_not_saved(
    page: Page, save_picture: Callable[..., None], pictures: Path, content: str, fault: str
) -> None:
    page.set_content(content)
    parts = page.locator("p")
    with pytest.raises(AssertionError, match=fault):
        save_picture("hidden", *(parts.nth(index) for index in range(parts.count())))
    assert not (pictures / "hidden.png").exists()

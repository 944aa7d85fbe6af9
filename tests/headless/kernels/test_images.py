from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from jupyter_agentbox.headless.images import write_images

IMAGE = b64encode(b"picture").decode()


def test_directory_is_made_only_for_an_image(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"

    assert write_images(["x", "é"], place) == []
    assert not place.exists()
    [written] = write_images(["é", IMAGE], place)
    assert (written.parent, written.read_bytes()) == (place, b"picture")


@pytest.mark.parametrize("link", ["a", "a/b"])
def test_link_in_the_directorys_path_is_not_followed(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "b").mkdir(parents=True)
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(elsewhere)

    with pytest.raises(OSError, match=link.rpartition("/")[2]):
        write_images([IMAGE], tmp_path / "a" / "b")

    assert not [path for path in elsewhere.rglob("*") if path.is_file()]

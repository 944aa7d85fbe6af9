"""What translators get: the messages of the lab extension."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from babel.messages.pofile import read_po

ROOT = Path(__file__).parents[2]


def test_translators_get_every_message_of_the_page_and_of_its_settings(tmp_path: Path) -> None:
    template = tmp_path / "jupyter_agentbox.pot"
    subprocess.run(["node", ".ci/extract-messages.mjs", str(template)], cwd=ROOT, check=True)
    with template.open(encoding="utf-8") as file:
        catalog = read_po(file)

    ids = {(message.context, message.id) for message in catalog}
    assert (None, "Allow once") in ids
    assert (None, ("%1 tool is new or changed since somebody looked",
                   "%1 tools are new or changed since somebody looked")) in ids  # fmt: skip
    settings = json.loads((ROOT / "labextension/schema/panel.json").read_text(encoding="utf-8"))
    assert ("schema", settings["title"]) in ids
    for setting in settings["properties"].values():
        assert ("settings", setting["title"]) in ids

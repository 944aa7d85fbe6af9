"""The demo notebooks in JupyterLab."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_agentbox.demo.__main__ import NOTEBOOKS, prepare

from .lab import Lab
from .person import Person

IS_DIRTY = "() => window.jupyterapp.shell.currentWidget.context.model.dirty"
#: By then the page has written into the notebook what its kernel says of its language.
KNOWS_LANGUAGE = """() => {
  const { context, sessionContext } = window.jupyterapp.shell.currentWidget;
  return sessionContext.session.kernel.info.then(info => {
    const written = context.model.getMetadata('language_info');
    return new Promise(go => setTimeout(() => go(written.version === info.language_info.version)));
  });
}"""


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_demo_notebook_has_no_unsaved_changes_when_it_is_opened(
    person: Person, lab: Lab, tmp_path: Path, name: str
) -> None:
    prepare(tmp_path)
    content = json.loads((tmp_path / "notebooks" / name).read_text("utf-8"))
    lab.ask(f"api/contents/opened_{name}", {"type": "notebook", "content": content}, "PUT")
    person.open(f"opened_{name}")
    person.page.wait_for_function(KNOWS_LANGUAGE)
    assert person.page.evaluate(IS_DIRTY) is False

"""What axe finds wrong in what this extension draws: for people who cannot see it well, hear it, or use a keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"

#: Ours alone: JupyterLab's own parts are JupyterLab's.
OURS = ".jp-AgentBox-card, .jp-AgentBox-panel, .jp-AgentBox-historyPage, .jp-AgentBox-items"

_RUN = """async selector => {
  const visible = [...document.querySelectorAll(selector)].filter(node => node.checkVisibility());
  if (visible.length === 0) return [];
  const { violations } = await axe.run(visible, { rules: { region: { enabled: false } } });
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${any.map(each => each.message).join(' ')}: ${html.slice(0, 200)}`)
  );
}"""


def violations(page: Page, selector: str = OURS) -> list[str]:
    """Return what breaks a rule of WCAG, a line each."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text())
    found: Any = page.evaluate(_RUN, selector)
    return [str(each) for each in found]

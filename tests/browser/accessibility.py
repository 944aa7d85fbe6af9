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
  // All that JupyterLab shows is beside its body, which has no height: axe would take no text for visible.
  const { style } = document.body;
  const { height } = style;
  style.height = '100vh';
  const { violations } = await axe.run(visible, { rules: { region: { enabled: false } } });
  style.height = height;
  // The colors of code are those of JupyterLab's theme.
  const isTheirs = ({ target }) => document.querySelector(target.at(-1))?.closest('.cm-editor') != null;
  const ours = ({ id, nodes }) => (id === 'color-contrast' ? nodes.filter(node => !isTheirs(node)) : nodes);
  return violations.flatMap(violation =>
    ours(violation).map(({ html, any }) => {
      const messages = any.map(each => each.message).join(' ');
      return `${violation.id}: ${violation.help}: ${messages}: ${html.slice(0, 200)}`;
    })
  );
}"""


def violations(page: Page, selector: str = OURS) -> list[str]:
    """Return what breaks a rule of WCAG, a line each."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text())
    found: Any = page.evaluate(_RUN, selector)
    return [str(each) for each in found]

"""Code to be run in a kernel, as a tool call that is requested, decided and recorded like any other."""

from __future__ import annotations

from typing import Final

NOTEBOOK_SERVER: Final = "notebook"
#: Takes ``{"code": str}``.
RUN_CODE_TOOL: Final = "run_code"
#: Takes ``{"thread": str, "approval_mode": str}``: a kernel requests that an agent's thread ask less.
SET_MODE_TOOL: Final = "set_approval_mode"
#: Environment variable that is set where an agent's code runs.
IN_AGENT_CODE: Final = "JUPYTER_AGENTBOX_AGENT_KERNEL"
#: MIME type of a display with the value of `results`: ``{"type": str, "results": JSON}``.
RESULTS_MIME_TYPE: Final = "application/vnd.jupyter-agentbox.results+json"

"""Code that is to run in a kernel, as a call of a tool: it is asked about, decided and recorded like all others."""

from __future__ import annotations

from typing import Final

NOTEBOOK_SERVER: Final = "notebook"
#: Takes ``{"code": str}``.
RUN_CODE_TOOL: Final = "run_code"
#: Takes ``{"thread": str, "approval_mode": str}``: a kernel wants an agent's thread to ask less.
SET_MODE_TOOL: Final = "set_approval_mode"
#: The environment variable that is set where code of an agent runs.
IN_AGENT_CODE: Final = "JUPYTER_AGENTBOX_AGENT_KERNEL"
#: In what a kernel shows when it is asked what code left in `results`: ``{"type": str, "results": JSON}``.
RESULTS_MIME_TYPE: Final = "application/vnd.jupyter-agentbox.results+json"

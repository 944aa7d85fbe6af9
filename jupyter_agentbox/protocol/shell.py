"""The tools that a kernel calls to have shell commands approved, of a server that needs no configuration."""

from __future__ import annotations

from typing import Final

SHELL_SERVER: Final = "shell"
#: For ``!command`` and the like; takes and returns ``{"cmd": str}``.
SHELL_TOOL: Final = "shell"
#: For the script of a cell magic; takes and returns ``{"cmd": str}``.
SHELL_MAGIC_TOOL: Final = "shell_magic"

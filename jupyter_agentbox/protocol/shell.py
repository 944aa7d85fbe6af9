"""What a kernel calls to have a shell command approved: tools of a server that no configuration needs."""

from __future__ import annotations

from typing import Final

SHELL_SERVER: Final = "shell"
#: ``!command`` and its relatives; takes and gives ``{"cmd": str}``.
SHELL_TOOL: Final = "shell"
#: The script of a cell magic; takes and gives ``{"cmd": str}``.
SHELL_MAGIC_TOOL: Final = "shell_magic"

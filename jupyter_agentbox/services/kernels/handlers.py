"""REST: facts about a kernel that the server knows and the kernel cannot vouch for."""

from __future__ import annotations

from typing import Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.services.handlers import AgentBoxHandler

AUTH_RESOURCE: Final = "jupyter_agentbox:kernels"


class KernelHandler(AgentBoxHandler):
    """A kernel's isolation, and how it last ended."""

    auth_resource = AUTH_RESOURCE

    @web.authenticated
    @authorized
    async def get(self, kernel_id: str) -> None:
        """Return the kernel's isolation and how it last ended; ``null`` if unknown.

        The page may be older than the server's first sandboxed kernel, and so lack the policy.
        """
        level = self.services.isolation.level_of(kernel_id)
        end = self.services.kernel_exits.last_of(kernel_id)
        is_guarded = self.services.pages.guards(level)
        self.finish_json(
            {
                "id": kernel_id,
                "isolation": level.value if level is not None else None,
                "content_security_policy": self._late_policy() if is_guarded else None,
                "last_end": end.to_json() if end is not None else None,
            }
        )

    def _late_policy(self) -> str | None:
        return self.services.pages.late_policy_for(self.request.host)


default_handlers = [(r"/jupyter-agentbox/kernels/(?P<kernel_id>[^/]+)/?", KernelHandler)]

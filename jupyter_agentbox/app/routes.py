"""Every route of the REST API, with the resource that answers there."""

from __future__ import annotations

from typing import Any, Final

from jupyter_agentbox.services.approvals import handlers as approval_handlers
from jupyter_agentbox.services.audit import handlers as audit_handlers
from jupyter_agentbox.services.cell_updates import handlers as cell_update_handlers
from jupyter_agentbox.services.grants import handlers as grant_handlers
from jupyter_agentbox.services.health import handlers as health_handlers
from jupyter_agentbox.services.hub_requests import handlers as hub_request_handlers
from jupyter_agentbox.services.kernels import handlers as kernel_handlers
from jupyter_agentbox.services.policies import handlers as policy_handlers
from jupyter_agentbox.services.questions import handlers as question_handlers
from jupyter_agentbox.services.registrations import handlers as registration_handlers
from jupyter_agentbox.services.servers import configuration_handlers as server_configuration_handlers
from jupyter_agentbox.services.servers import handlers as server_handlers
from jupyter_agentbox.services.servers import sign_in_handlers
from jupyter_agentbox.services.threads import handlers as thread_handlers

ROUTES: Final[list[Any]] = [
    *approval_handlers.default_handlers,
    *cell_update_handlers.default_handlers,
    *audit_handlers.default_handlers,
    *grant_handlers.default_handlers,
    *question_handlers.default_handlers,
    *server_handlers.default_handlers,
    *server_configuration_handlers.default_handlers,
    *sign_in_handlers.default_handlers,
    *health_handlers.default_handlers,
    *hub_request_handlers.default_handlers,
    *kernel_handlers.default_handlers,
    *registration_handlers.default_handlers,
    *policy_handlers.default_handlers,
    *thread_handlers.default_handlers,
]

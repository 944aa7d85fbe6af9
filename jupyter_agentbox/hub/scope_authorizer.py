"""The authorizer that grants parts of this extension's REST API by JupyterHub's scopes."""

from __future__ import annotations

import os
from typing import Any, Final

from jupyterhub.singleuser.extension import JupyterHubAuthorizer

from jupyter_agentbox.core.reviewers import DECIDE_SCOPE, MANAGE_SCOPE, READ_SCOPE
from jupyter_agentbox.services.reviewers import hub_server, why_no_scope_reaches_browsers

#: The beginning of the names of this extension's resources.
_OWN: Final = "jupyter_agentbox:"
#: A kernel's isolation. It contains nothing of calls, and every page needs it to guard outputs.
_KERNELS: Final = "jupyter_agentbox:kernels"
#: Requests. To write them is to decide them.
_APPROVALS: Final = "jupyter_agentbox:approvals"


def scope_for(action: str, resource: str) -> str | None:
    """Return the scope that an action requires; ``None`` if access to the server is enough.

    Parameters
    ----------
    action : str
        Jupyter's name of the action: ``read``, ``write`` or ``execute``.
    resource : str
        Jupyter's name of the resource.
    """
    if not resource.startswith(_OWN) or (action, resource) == ("read", _KERNELS):
        return None
    if action == "read":
        return READ_SCOPE
    return DECIDE_SCOPE if resource == _APPROVALS else MANAGE_SCOPE


class ScopeAuthorizer(JupyterHubAuthorizer):  # type: ignore[misc]  # jupyterhub has no types
    """Requires scopes of JupyterHub for this extension's resources, and for all others what JupyterHub requires.

    For use in a JupyterHub user's server: ``c.ServerApp.authorizer_class = "jupyter_agentbox.hub.ScopeAuthorizer"``.
    A scope counts without a filter, or filtered to this server or its user. It does not count with ``!group=``, because
    the server does not learn who belongs to a group. Without a Hub, everything is refused.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for scope in (READ_SCOPE, DECIDE_SCOPE, MANAGE_SCOPE):
            if why := why_no_scope_reaches_browsers(os.environ, scope):
                self.log.error("jupyter_agentbox: %s", why)

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:
        """Return whether the user may do it, and note in the request's handler which scope is missing."""
        if getattr(self.identity_provider, "hub_auth", None) is None or not hasattr(user, "hub_user"):
            self.log.error(
                "jupyter_agentbox: ScopeAuthorizer refuses everything, because JupyterHub did not log users in"
            )
            return False
        if not super().is_authorized(handler, user, action, resource):
            return False
        scope = scope_for(action, resource)
        # The Hub's own code: a scope for another user or server does not match this one.
        if scope is None or self.hub_auth.check_scopes({f"{scope}!server={hub_server()}"}, user.hub_user):
            return True
        handler.missing_scope = scope
        return False

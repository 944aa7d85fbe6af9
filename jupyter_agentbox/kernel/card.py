"""The approval card as a widget: its model holds only a request id, so nothing in the kernel can decide."""

from __future__ import annotations

from ipywidgets import DOMWidget
from traitlets import Unicode


class ApprovalCard(DOMWidget):  # type: ignore[misc]  # ipywidgets has no types
    """View of an approval request, which the lab extension fetches from the server.

    Parameters
    ----------
    request_id : str
        The request to show.
    """

    _view_name = Unicode("ApprovalCardView").tag(sync=True)
    _model_name = Unicode("ApprovalCardModel").tag(sync=True)
    _view_module = Unicode("jupyter-agentbox").tag(sync=True)
    _model_module = Unicode("jupyter-agentbox").tag(sync=True)
    _view_module_version = Unicode("^0.1.0").tag(sync=True)
    _model_module_version = Unicode("^0.1.0").tag(sync=True)

    request_id = Unicode().tag(sync=True)

    def close(self) -> None:
        """Close the widget and its layout: pages keep models that are not closed."""
        super().close()
        self.layout.close()

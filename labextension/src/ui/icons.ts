/**
 * The extension's icon.
 */
import { LabIcon } from '@jupyterlab/ui-components';

/** A person and a tick: somebody says yes. A shield with a tick is JupyterLab's sign of a notebook that is trusted. */
export const approvalIcon = new LabIcon({
  name: 'jupyter-agentbox:approval',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <path class="jp-icon3 jp-icon-selectable" fill="#616161" d="M10 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zm0 2a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5zM1.5 20.5c0-4.2 4.3-7 8.5-7 1.2 0 2.4.2 3.5.6l-1.6 1.6c-.6-.1-1.2-.2-1.9-.2-2.7 0-5.6 1.3-6.3 3h5.6l2 2H1.5zm13.6 1.2-3.6-3.6 1.4-1.4 2.2 2.2 5.7-5.7 1.4 1.4z"/>
</svg>`
});

/**
 * The extension's icon.
 */
import { LabIcon } from '@jupyterlab/ui-components';

/** A shield with a tick: a person stands before the tool. */
export const approvalIcon = new LabIcon({
  name: 'jupyter-agentbox:approval',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <path class="jp-icon3 jp-icon-selectable" fill="#616161" d="M12 1.5 3.5 5v6.2c0 5.1 3.6 9.9 8.5 11.3 4.9-1.4 8.5-6.2 8.5-11.3V5L12 1.5zm6.5 9.7c0 4-2.7 7.8-6.5 9.2-3.8-1.4-6.5-5.2-6.5-9.2V6.3L12 3.7l6.5 2.6v4.9zM7.8 11.6l-1.4 1.4 4.1 4.1 7.1-7.1-1.4-1.4-5.7 5.7-2.7-2.8z"/>
</svg>`
});

import { IJupyterWidgetRegistry } from '@jupyter-widgets/base';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { IApprovalPanel, ICardContext } from '../internalTokens';
import { MODULE_NAME, MODULE_VERSION, widgetExports } from './ipywidgets';

/** Registers the card with ipywidgets, if that is installed. */
export const ipywidgetsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:jupyter-widget',
  description: 'Shows approval requests as ipywidgets.',
  autoStart: true,
  requires: [ICardContext],
  optional: [IApprovalPanel, IJupyterWidgetRegistry],
  activate: (
    _: JupyterFrontEnd,
    base: ICardContext,
    panel: IApprovalPanel | null,
    registry: IJupyterWidgetRegistry | null
  ): void => {
    const openInPanel = panel?.focusRequest.bind(panel);
    const openPanel = panel?.show.bind(panel);
    registry?.registerWidget({
      name: MODULE_NAME,
      version: MODULE_VERSION,
      exports: () => widgetExports({ ...base, openInPanel, openPanel })
    });
  }
};

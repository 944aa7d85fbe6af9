import { IJupyterWidgetRegistry } from '@jupyter-widgets/base';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { reviewerNames } from '../ui/text/reviewers';
import { IApprovalModel, IApprovalPanel, IOrigins } from '../tokens';
import { MODULE_NAME, MODULE_VERSION, widgetExports } from './ipywidgets';

/** Gives ipywidgets the card, where ipywidgets is there. */
export const jupyterWidgetPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:jupyter-widget',
  description: 'Shows approval requests as ipywidgets.',
  autoStart: true,
  requires: [IApprovalModel, IOrigins],
  optional: [IApprovalPanel, IJupyterWidgetRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IApprovalModel,
    origins: IOrigins,
    panel: IApprovalPanel | null,
    registry: IJupyterWidgetRegistry | null,
    optionalTranslator: ITranslator | null
  ): void => {
    const translator = optionalTranslator ?? nullTranslator;
    const trans = translator.load('jupyter-agentbox');
    const nameOf = reviewerNames(app.serviceManager.user, trans);
    const openInPanel = panel?.focusRequest.bind(panel);
    const base = { model, origins, nameOf, translator, trans };
    registry?.registerWidget({
      name: MODULE_NAME,
      version: MODULE_VERSION,
      exports: () => widgetExports({ ...base, openInPanel })
    });
  }
};

import { IJupyterWidgetRegistry } from '@jupyter-widgets/base';
import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { reviewerNames } from '../reviewers';
import { IApprovalModel, IOrigins } from '../tokens';
import {
  MODULE_NAME,
  MODULE_VERSION,
  widgetExports
} from '../widgets/jupyterWidget';

/** Gives ipywidgets the card, where ipywidgets is there. */
export const jupyterWidgetPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:jupyter-widget',
  description: 'Shows approval requests as ipywidgets.',
  autoStart: true,
  requires: [IApprovalModel, IOrigins],
  optional: [IJupyterWidgetRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IApprovalModel,
    origins: IOrigins,
    registry: IJupyterWidgetRegistry | null,
    optionalTranslator: ITranslator | null
  ): void => {
    const translator = optionalTranslator ?? nullTranslator;
    const trans = translator.load('jupyter-agentbox');
    const nameOf = reviewerNames(app.serviceManager.user, trans);
    registry?.registerWidget({
      name: MODULE_NAME,
      version: MODULE_VERSION,
      exports: () =>
        widgetExports({ model, origins, nameOf, translator, trans })
    });
  }
};

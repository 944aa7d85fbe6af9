import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { FocusRestorer } from './focusRestorer';
import { reviewerNames } from '../../ui/text/reviewers';
import { IApprovalModel, IApprovalPanel, IOrigins } from '../../tokens';
import { cardRendererFactory } from '../../ui/card/CardRenderer';

/** Shows the card of a request in an output. */
export const cardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:card',
  description: 'Shows approval requests in outputs.',
  autoStart: true,
  requires: [IRenderMimeRegistry, IApprovalModel, IOrigins],
  optional: [IApprovalPanel, INotebookTracker, IConsoleTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    model: IApprovalModel,
    origins: IOrigins,
    panel: IApprovalPanel | null,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    optionalTranslator: ITranslator | null
  ): void => {
    const translator = optionalTranslator ?? nullTranslator;
    const trans = translator.load('jupyter-agentbox');
    const nameOf = reviewerNames(app.serviceManager.user, trans);
    const openInPanel = panel?.focusRequest.bind(panel);
    const base = { model, origins, nameOf, translator, trans };
    const restorer = new FocusRestorer(notebooks, consoles);
    const leave = restorer.leave.bind(restorer);
    const context = { ...base, openInPanel, leave };
    const { factory, rank } = cardRendererFactory(context);
    rendermime.addFactory(factory, rank);
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { IApprovalPanel, ICardContext } from '../../internalTokens';
import { cardRendererFactory } from '../../ui/card/CardRenderer';
import { insertBelow, sourceOf } from './insertBelow';
import { valueOf } from './valueOf';

/** Shows the card of a request in an output. */
export const cardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:card',
  description: 'Shows approval requests in outputs.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ICardContext],
  optional: [IApprovalPanel, INotebookTracker],
  activate: (
    _: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    base: ICardContext,
    panel: IApprovalPanel | null,
    notebooks: INotebookTracker | null
  ): void => {
    const openInPanel = panel?.focusRequest.bind(panel);
    const openTogether = panel?.focusTogether.bind(panel);
    const missingValueOf: ICardContext['missingValueOf'] = tool => ({
      nameFor: card => valueOf(sourceOf(notebooks, card), tool),
      insert: (card, name) => {
        insertBelow(notebooks, card, name);
      }
    });
    const openPanel = panel?.show.bind(panel);
    const context = {
      ...base,
      openInPanel,
      openTogether,
      openPanel,
      leave: base.restoreFocus,
      missingValueOf
    };
    const { factory, rank } = cardRendererFactory(context);
    rendermime.addFactory(factory, rank);
  }
};

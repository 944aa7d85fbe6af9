import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import { IApprovalPanel, ICardContext } from '../../internalTokens';
import { cardRendererFactory } from '../../ui/card/CardRenderer';
import { FocusRestorer } from './focusRestorer';
import { Follower } from './follower';
import { insertBelow } from './insertBelow';

/** Shows the card of a request in an output. */
export const cardPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:card',
  description: 'Shows approval requests in outputs.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ICardContext],
  optional: [IApprovalPanel, INotebookTracker, IConsoleTracker],
  activate: (
    _: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    base: ICardContext,
    panel: IApprovalPanel | null,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null
  ): void => {
    const openInPanel = panel?.focusRequest.bind(panel);
    const openTogether = panel?.focusTogether.bind(panel);
    const restorer = new FocusRestorer(notebooks, consoles);
    const follower = new Follower();
    const leave = (card: HTMLElement): void => {
      restorer.leave(card);
      follower.follow(card);
    };
    const insertValue = (card: HTMLElement): void => {
      insertBelow(notebooks, card, '_');
    };
    const openPanel = panel?.show.bind(panel);
    const context = {
      ...base,
      openInPanel,
      openTogether,
      openPanel,
      leave,
      insertValue
    };
    const { factory, rank } = cardRendererFactory(context);
    rendermime.addFactory(factory, rank);
  }
};

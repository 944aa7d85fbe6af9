import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';

import {
  IAgentBoxClient,
  ICardContext,
  ICodeInserter
} from '../../internalTokens';
import { describeFailure } from './codeInserter';
import { itemRendererFactory } from '../../ui/items/ItemRenderer';

/** Shows the items of an agent's turn in outputs. */
export const itemsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:items',
  description: 'Shows what an agent says and runs in outputs.',
  autoStart: true,
  requires: [IRenderMimeRegistry, ICardContext, IAgentBoxClient],
  optional: [ICodeInserter],
  activate: (
    _: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    cards: ICardContext,
    client: IAgentBoxClient,
    inserter: ICodeInserter | null
  ): void => {
    const { trans } = cards;
    const base = {
      ...cards,
      readTurn: (id: string) => client.getTurn(id)
    };
    const insertCells = (node: HTMLElement, turnId: string): void => {
      inserter?.insertAt(node, turnId).catch((error: unknown) => {
        Notification.error(describeFailure(error, trans));
      });
    };
    const context = inserter ? { ...base, insertCells } : base;
    const { factory, rank } = itemRendererFactory(context);
    rendermime.addFactory(factory, rank);
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import React from 'react';

import { ICardContext, IHistoryModel } from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { CardProvider } from '../../ui/context';
import { HistoryList } from './HistoryList';

/** Adds the final requests to the side panel. */
export const historySectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:history-section',
  description: 'Shows past approval requests in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IHistoryModel, ICardContext],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    history: IHistoryModel,
    context: ICardContext
  ): void => {
    const content = (): JSX.Element => (
      <CardProvider value={context}>
        <HistoryList history={history} />
      </CardProvider>
    );
    panel.addSection({
      id: 'history',
      label: context.trans.__('History'),
      rank: 200,
      widget: new Section(content, () => void history.load(), true)
    });
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import React from 'react';

import { ICardContext, IHubRequestsModel } from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import type { ISectionHandle } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { CardProvider } from '../../ui/context';
import { HubRequestList } from './HubRequestList';

/** Adds the requests at the Hub service to the side panel while there are any, or while that is unknown. */
export const hubRequestsSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:hub-requests-section',
  description: 'Shows what waits at the Hub service in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IHubRequestsModel, ICardContext],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    hub: IHubRequestsModel,
    context: ICardContext
  ): void => {
    const content = (): JSX.Element => (
      <CardProvider value={context}>
        <HubRequestList hub={hub} />
      </CardProvider>
    );
    let section: ISectionHandle | null = null;
    const follow = (): void => {
      const { total, problem } = hub.list;
      const isWanted = total > 0 || problem !== null;
      if (isWanted && !section) {
        section = panel.addSection({
          id: 'hub-requests',
          label: context.trans.__('Waiting for you at the Hub'),
          rank: 95,
          tab: 'pending',
          widget: new Section(content, () => undefined)
        });
      } else if (!isWanted && section) {
        section.dispose();
        section = null;
      }
      if (section) {
        section.count = total;
      }
    };
    hub.changed.connect(follow);
    follow();
  }
};

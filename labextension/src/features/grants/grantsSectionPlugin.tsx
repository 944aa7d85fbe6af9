import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import React from 'react';

import { ICardContext, IGrantsModel } from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import type { ISectionHandle } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { CardProvider } from '../../ui/context';
import { GrantList } from './GrantList';

/** Adds the grants to the side panel while there are any. */
export const grantsSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:grants-section',
  description: 'Shows the lasting answers in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IGrantsModel, ICardContext],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    grants: IGrantsModel,
    context: ICardContext
  ): void => {
    const content = (): JSX.Element => (
      <CardProvider value={context}>
        <GrantList grants={grants} />
      </CardProvider>
    );
    let section: ISectionHandle | null = null;
    const follow = (): void => {
      const isWanted = Boolean(grants.grants?.length);
      if (isWanted && !section) {
        section = panel.addSection({
          id: 'grants',
          label: context.trans.__('Lasting answers'),
          rank: 360,
          tab: 'rules',
          widget: new Section(content, () => void grants.refresh())
        });
      } else if (!isWanted && section) {
        section.dispose();
        section = null;
      }
    };
    grants.changed.connect(follow);
    void grants.refresh();
  }
};

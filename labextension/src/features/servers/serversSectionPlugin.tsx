import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator } from '@jupyterlab/translation';
import React from 'react';

import { IServersModel } from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { LanguageProvider } from '../../ui/context';
import { languageOf } from '../../ui/text/language';
import { ServerList } from './ServerList';

/** Adds the MCP servers to the side panel. */
export const serversSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:servers-section',
  description: 'Shows the MCP servers in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IServersModel],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    servers: IServersModel,
    translator: ITranslator | null
  ): void => {
    const language = languageOf(translator);
    const content = (): JSX.Element => (
      <LanguageProvider value={language}>
        <ServerList servers={servers} />
      </LanguageProvider>
    );
    panel.addSection({
      id: 'servers',
      label: language.trans.__('MCP servers'),
      rank: 300,
      stretch: 1,
      widget: new Section(content, () => void servers.refresh())
    });
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator } from '@jupyterlab/translation';
import React from 'react';

import {
  IAgentBoxClient,
  IOrigins,
  IRulesModel,
  IThreadsModel
} from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { LanguageProvider, LocksProvider } from '../../ui/context';
import { languageOf } from '../../ui/text/language';
import { ThreadDialogs } from './threadDialogs';
import { ThreadList } from './ThreadList';

/** Adds agents' threads to the side panel. */
export const threadsSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:threads-section',
  description: 'Shows agents’ threads in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IThreadsModel, IAgentBoxClient, IOrigins],
  optional: [ITranslator, IRulesModel],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    threads: IThreadsModel,
    client: IAgentBoxClient,
    origins: IOrigins,
    translator: ITranslator | null,
    locks: IRulesModel | null
  ): void => {
    const language = languageOf(translator);
    const dialogs = new ThreadDialogs({ threads, client, origins, language });
    const content = (): JSX.Element => (
      <LanguageProvider value={language}>
        <LocksProvider value={locks}>
          <ThreadList threads={threads} dialogs={dialogs} />
        </LocksProvider>
      </LanguageProvider>
    );
    panel.addSection({
      id: 'threads',
      label: language.trans.__('Agents'),
      rank: 400,
      widget: new Section(content, () => void threads.refresh())
    });
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { ITranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import {
  IApprovalModel,
  IApprovalPanel,
  IRulesModel,
  IServersModel
} from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { LanguageProvider, LocksProvider } from '../../ui/context';
import { languageOf } from '../../ui/text/language';
import { ServerList } from './ServerList';

/** Adds the MCP servers to the side panel. */
export const serversSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:servers-section',
  description: 'Shows the MCP servers in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IServersModel, IApprovalModel],
  optional: [IApprovalPanel, IDocumentManager, ITranslator, IRulesModel],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    servers: IServersModel,
    approvals: IApprovalModel,
    requests: IApprovalPanel | null,
    docManager: IDocumentManager | null,
    translator: ITranslator | null,
    locks: IRulesModel | null
  ): void => {
    const language = languageOf(translator);
    const trying = requests && {
      approvals,
      showRequest: (id: string) => {
        requests.focusRequest(id);
      }
    };
    const openDocument =
      docManager &&
      ((path: string): void => {
        docManager.openOrReveal(path, 'Editor');
      });
    const content = (): JSX.Element => (
      <LanguageProvider value={language}>
        <LocksProvider value={locks}>
          <ServerList
            servers={servers}
            trying={trying}
            openDocument={openDocument}
          />
        </LocksProvider>
      </LanguageProvider>
    );
    const section = panel.addSection({
      id: 'servers',
      label: language.trans.__('Servers'),
      rank: 300,
      widget: new Section(content, () => void servers.refresh())
    });
    const follow = (): void => {
      section.problem = problemOf(servers, language.trans);
    };
    servers.changed.connect(follow);
    follow(); // an event may have brought them already
    void servers.refresh();
  }
};

function problemOf({ list }: IServersModel, trans: TranslationBundle): string {
  const hasFailed = list?.servers.some(({ state }) => state === 'failed');
  if (list?.problems.length) {
    return trans.__('The configuration of the servers has a mistake.');
  }
  return hasFailed ? trans.__('A server has failed.') : '';
}

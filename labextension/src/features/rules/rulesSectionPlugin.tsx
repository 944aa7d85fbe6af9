import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator } from '@jupyterlab/translation';
import React from 'react';

import { onPageReturn } from '../../integrations/pageReturn';
import { IAgentBoxClient, IApprovalModel } from '../../internalTokens';
import { RulesModel, ruleFrom } from '../../model/rules';
import { IAgentBoxPanel } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { LanguageProvider } from '../../ui/context';
import { languageOf } from '../../ui/text/language';
import { RuleList } from './RuleList';

/** Opens the form of a rule that is made from a request, `{ requestId }`. It writes nothing: agents can run commands. */
export const MAKE_RULE = 'jupyter-agentbox:make-rule';

/** Adds the rules to the side panel, and the command that begins one from a request. */
export const rulesSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:rules-section',
  description: 'Shows the rules in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IAgentBoxClient, IApprovalModel],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    client: IAgentBoxClient,
    approvals: IApprovalModel,
    translator: ITranslator | null
  ): void => {
    const language = languageOf(translator);
    const rules = new RulesModel(client);
    const refresh = (): void => void rules.refresh();
    const content = (): JSX.Element => (
      <LanguageProvider value={language}>
        <RuleList rules={rules} />
      </LanguageProvider>
    );
    const section = panel.addSection({
      id: 'rules',
      label: language.trans.__('Rules'),
      rank: 350,
      stretch: 1,
      widget: new Section(content, refresh)
    });
    onPageReturn(refresh);
    app.commands.addCommand(MAKE_RULE, {
      label: language.trans.__('Make a Rule…'),
      execute: async args => {
        const id = String(args['requestId'] ?? '');
        await approvals.load(id);
        const { approval } = approvals.get(id);
        if (approval) {
          await rules.refresh();
          rules.propose(ruleFrom(approval));
          panel.reveal();
          section.expand();
        }
      }
    });
  }
};

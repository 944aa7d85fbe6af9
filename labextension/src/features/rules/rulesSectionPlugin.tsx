import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ITranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { IApprovalModel, IRulesModel } from '../../internalTokens';
import { ruleFrom } from '../../model/rules';
import { IAgentBoxPanel } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { LanguageProvider } from '../../ui/context';
import { languageOf } from '../../ui/text/language';
import { MAKE_RULE } from './makeRule';
import { RuleList } from './RuleList';

/** Adds the rules to the side panel, and the command that begins one from a request. */
export const rulesSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:rules-section',
  description: 'Shows the rules in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IRulesModel, IApprovalModel],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    rules: IRulesModel,
    approvals: IApprovalModel,
    translator: ITranslator | null
  ): void => {
    const language = languageOf(translator);
    const content = (): JSX.Element => (
      <LanguageProvider value={language}>
        <RuleList rules={rules} />
      </LanguageProvider>
    );
    const section = panel.addSection({
      id: 'rules',
      label: language.trans.__('Rules'),
      rank: 350,
      widget: new Section(content, () => void rules.refresh())
    });
    rules.changed.connect(() => {
      section.problem = problemOf(rules, language.trans);
    });
    app.commands.addCommand(MAKE_RULE, {
      label: language.trans.__('Make a Rule…'),
      execute: async args => {
        const id = String(args['requestId'] ?? '');
        await approvals.load(id);
        const { approval } = approvals.get(id);
        if (approval) {
          await rules.refresh();
          const isDenied = args['effect'] === 'deny';
          rules.propose(ruleFrom(approval, isDenied ? 'deny' : 'allow'));
          panel.reveal();
          section.expand();
        }
      }
    });
  }
};

function problemOf({ policy }: IRulesModel, trans: TranslationBundle): string {
  return policy?.problems.length
    ? trans.__('A file of rules cannot be used.')
    : '';
}

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { showErrorMessage } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator } from '@jupyterlab/translation';
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { NOTIFICATION_SETTINGS, onSettings } from '../../integrations/settings';
import { IApprovalModel, IRulesModel } from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { LanguageProvider } from '../../ui/context';
import { languageOf } from '../../ui/text/language';
import { MAKE_RULE } from '../../ui/commandIds';
import { RuleProblemNotifier } from './problemNotifier';
import { proposedRule } from './proposedRule';
import { RuleList } from './RuleList';

/** Adds the rules to the side panel, a notification of their problems, and the command that creates one from a request. */
export const rulesSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:rules-section',
  description: 'Shows the rules in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IRulesModel, IApprovalModel],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    rules: IRulesModel,
    approvals: IApprovalModel,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ): void => {
    const language = languageOf(translator);
    const content = (): JSX.Element => (
      <LanguageProvider value={language}>
        <RuleList rules={rules} />
      </LanguageProvider>
    );
    const widget = new Section(content, () => void rules.refresh());
    const section = panel.addSection({
      id: 'rules',
      label: language.trans.__('Rules'),
      rank: 350,
      widget
    });
    const show = (): void => {
      panel.reveal();
      section.expand();
    };
    const follow = (): void => {
      section.problem = problemOf(rules, language.trans);
    };
    rules.changed.connect(follow);
    follow(); // the rules may be known already
    const notifier = new RuleProblemNotifier({
      rules,
      isVisible: () => panel.isOnScreen && widget.isVisible,
      open: () => {
        show();
        panel.takeFocus();
      },
      restored: app.restored,
      trans: language.trans
    });
    onSettings(registry, NOTIFICATION_SETTINGS, settings => {
      notifier.isEnabled = settings['notifications'] === true;
    });
    app.commands.addCommand(MAKE_RULE, {
      label: language.trans.__('Make a Rule…'),
      describedBy: {
        args: {
          type: 'object',
          properties: {
            requestId: {
              type: 'string',
              description: language.trans.__(
                'The approval request from which the form is filled in'
              )
            },
            effect: {
              type: 'string',
              enum: ['allow', 'deny'],
              description: language.trans.__('The effect of the rule')
            }
          },
          required: ['requestId']
        }
      },
      execute: async args => {
        const id = String(args['requestId'] ?? '');
        await approvals.load(id);
        const { approval } = approvals.get(id);
        if (approval) {
          await rules.refresh();
          const isDenied = args['effect'] === 'deny';
          const proposal = proposedRule(approval, isDenied ? 'deny' : 'allow');
          if (!proposal) {
            await showErrorMessage(
              language.trans.__('No rule was made'),
              language.trans.__(
                'The arguments of this call are no longer stored, or could not be fetched.'
              )
            );
            return;
          }
          rules.propose(proposal);
          show();
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

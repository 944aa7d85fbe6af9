import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import React from 'react';

import { ICardContext, IQuestionsModel } from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import type { ISectionHandle } from '../../tokens';
import { Section } from '../../ui/components/Section';
import { CardProvider } from '../../ui/context';
import { QuestionList } from '../../ui/question/QuestionList';

/** Adds the questions of servers to the side panel, above the requests, while there are any. */
export const questionsSectionPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:questions-section',
  description: 'Shows the questions of MCP servers in the side panel.',
  autoStart: true,
  requires: [IAgentBoxPanel, IQuestionsModel, ICardContext],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    questions: IQuestionsModel,
    context: ICardContext
  ): void => {
    const content = (): JSX.Element => (
      <CardProvider value={context}>
        <section
          className="jp-AgentBox-questions"
          aria-label={context.trans.__('Questions from servers')}
        >
          <QuestionList questions={questions} />
        </section>
      </CardProvider>
    );
    let section: ISectionHandle | null = null;
    let widget: Section | null = null;
    const follow = (): void => {
      const isWanted = questions.questions.length > 0;
      if (isWanted && !section) {
        widget = new Section(content, () => void questions.refresh());
        section = panel.addSection({
          id: 'questions',
          label: context.trans.__('Questions from servers'),
          rank: 90,
          tab: 'pending',
          widget
        });
      } else if (!isWanted && section) {
        const hadFocus = widget?.node.contains(document.activeElement);
        section.dispose();
        section = null;
        if (hadFocus) {
          panel.takeFocus();
        }
      }
      if (section) {
        section.count = questions.questions.length;
      }
    };
    questions.changed.connect(follow);
    follow();
  }
};

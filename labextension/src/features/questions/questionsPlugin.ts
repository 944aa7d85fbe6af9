import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { QUESTION_EVENT } from '../../api/protocol';
import { onPageReturn } from '../../integrations/pageReturn';
import {
  IAgentBoxClient,
  IEventRouter,
  IQuestionsModel
} from '../../internalTokens';
import { QuestionsModel } from '../../model/questions';

/** Provides the model of servers' questions, and keeps it up to date. */
export const questionsPlugin: JupyterFrontEndPlugin<IQuestionsModel> = {
  id: 'jupyter-agentbox:questions',
  description: 'Provides the model of the questions of MCP servers.',
  autoStart: true,
  provides: IQuestionsModel,
  requires: [IAgentBoxClient, IEventRouter],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter
  ): IQuestionsModel => {
    const model = new QuestionsModel(client);
    const refresh = (): void => {
      void model.refresh();
    };
    events.on(QUESTION_EVENT, refresh);
    onPageReturn(refresh);
    refresh();
    return model;
  }
};

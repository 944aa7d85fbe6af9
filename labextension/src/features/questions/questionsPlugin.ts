import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';

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
  requires: [IAgentBoxClient, IEventRouter, IUserManager],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter,
    user: User.IManager
  ): IQuestionsModel => {
    const model = new QuestionsModel(client);
    const refresh = (): void => {
      void model.refresh();
    };
    events.on(QUESTION_EVENT, refresh);
    onPageReturn(user, refresh);
    refresh();
    return model;
  }
};

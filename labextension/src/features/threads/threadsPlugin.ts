import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';

import { THREAD_EVENT } from '../../api/threads';
import { onPageReturn } from '../../integrations/pageReturn';
import {
  IAgentBoxClient,
  IEventRouter,
  IThreadsModel
} from '../../internalTokens';
import { ThreadsModel } from '../../model/threads';

/** Provides the model of agents' threads, and keeps it up to date once it was shown. */
export const threadsPlugin: JupyterFrontEndPlugin<IThreadsModel> = {
  id: 'jupyter-agentbox:threads',
  description: 'Provides the model of agents’ threads.',
  autoStart: true,
  provides: IThreadsModel,
  requires: [IAgentBoxClient, IEventRouter, IUserManager],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter,
    user: User.IManager
  ): IThreadsModel => {
    const model = new ThreadsModel(client);
    const refresh = (): void => {
      if (model.isUsed) {
        void model.refresh();
      }
    };
    events.on(THREAD_EVENT, refresh);
    onPageReturn(user, refresh);
    return model;
  }
};

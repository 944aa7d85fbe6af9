import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { THREAD_EVENT } from '../../api/threads';
import { onPageReturn } from '../../integrations/pageReturn';
import {
  IAgentBoxClient,
  IEventRouter,
  IThreadsModel
} from '../../internalTokens';
import { ThreadsModel } from '../../model/threads';

/** Provides the model of agents' threads. Once it was shown, it is kept up to date. */
export const threadsPlugin: JupyterFrontEndPlugin<IThreadsModel> = {
  id: 'jupyter-agentbox:threads',
  description: 'Provides the model of agents’ threads.',
  autoStart: true,
  provides: IThreadsModel,
  requires: [IAgentBoxClient, IEventRouter],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter
  ): IThreadsModel => {
    const model = new ThreadsModel(client);
    const refresh = (): void => {
      if (model.isUsed) {
        void model.refresh();
      }
    };
    events.on(THREAD_EVENT, refresh);
    onPageReturn(refresh);
    return model;
  }
};

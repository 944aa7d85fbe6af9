import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';

import { GRANT_EVENT } from '../../api/protocol';
import { onPageReturn } from '../../integrations/pageReturn';
import {
  IAgentBoxClient,
  IEventRouter,
  IGrantsModel
} from '../../internalTokens';
import { GrantsModel } from '../../model/grants';

/** Provides the model of grants, and keeps it up to date. */
export const grantsPlugin: JupyterFrontEndPlugin<IGrantsModel> = {
  id: 'jupyter-agentbox:grants',
  description: 'Provides the model of lasting answers.',
  autoStart: true,
  provides: IGrantsModel,
  requires: [IAgentBoxClient, IEventRouter, IUserManager],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter,
    user: User.IManager
  ): IGrantsModel => {
    const model = new GrantsModel(client);
    const refresh = (): void => {
      void model.refresh();
    };
    events.on(GRANT_EVENT, refresh);
    onPageReturn(user, refresh);
    return model;
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';

import { SERVERS_EVENT } from '../../api/protocol';
import { onPageReturn } from '../../integrations/pageReturn';
import {
  IAgentBoxClient,
  IEventRouter,
  IServersModel
} from '../../internalTokens';
import { ServersModel } from '../../model/servers';

/** Provides the model of the MCP servers, and keeps it up to date. */
export const serversPlugin: JupyterFrontEndPlugin<IServersModel> = {
  id: 'jupyter-agentbox:servers',
  description: 'Provides the model of the MCP servers.',
  autoStart: true,
  provides: IServersModel,
  requires: [IAgentBoxClient, IEventRouter, IUserManager],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter,
    user: User.IManager
  ): IServersModel => {
    const model = new ServersModel(client);
    const refresh = (): void => {
      void model.refresh();
    };
    events.on(SERVERS_EVENT, refresh);
    onPageReturn(user, refresh);
    return model;
  }
};

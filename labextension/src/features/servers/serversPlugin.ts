import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

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
  requires: [IAgentBoxClient, IEventRouter],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter
  ): IServersModel => {
    const model = new ServersModel(client);
    const refresh = (): void => {
      void model.refresh();
    };
    events.on(SERVERS_EVENT, refresh);
    onPageReturn(refresh);
    return model;
  }
};

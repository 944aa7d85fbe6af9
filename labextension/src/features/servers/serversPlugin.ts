import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { AgentBoxClient } from '../../api/client';
import { ServersModel } from '../../model/servers';
import { IServersModel } from '../../tokens';

/** Provides the model of the MCP servers. */
export const serversPlugin: JupyterFrontEndPlugin<IServersModel> = {
  id: 'jupyter-agentbox:servers',
  description: 'Provides the model of the MCP servers.',
  autoStart: true,
  provides: IServersModel,
  activate: (app: JupyterFrontEnd): IServersModel =>
    new ServersModel(new AgentBoxClient(app.serviceManager.serverSettings))
};

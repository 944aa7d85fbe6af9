import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IServerSettings } from '@jupyterlab/services';
import type { ServerConnection } from '@jupyterlab/services';

import { IAgentBoxClient } from '../internalTokens';
import { AgentBoxClient } from './client';

/** Provides the one client of the REST API. */
export const clientPlugin: JupyterFrontEndPlugin<IAgentBoxClient> = {
  id: 'jupyter-agentbox:client',
  description: 'Provides the client of the REST API.',
  autoStart: true,
  provides: IAgentBoxClient,
  requires: [IServerSettings],
  activate: (
    _: JupyterFrontEnd,
    settings: ServerConnection.ISettings
  ): IAgentBoxClient => new AgentBoxClient(settings)
};

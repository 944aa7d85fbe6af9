import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { PageConfig } from '@jupyterlab/coreutils';

import { IAgentBoxClient, IHubRequestsModel } from '../../internalTokens';
import { HubRequestsModel } from '../../model/hubRequests';
import { HubRequestsUpdater } from './updater';

/** Provides what waits at the Hub service, and keeps it up to date; where there is none, nobody is asked. */
export const hubRequestsPlugin: JupyterFrontEndPlugin<IHubRequestsModel> = {
  id: 'jupyter-agentbox:hub-requests',
  description: 'Provides the model of what waits at the Hub service.',
  autoStart: true,
  provides: IHubRequestsModel,
  requires: [IAgentBoxClient],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient
  ): IHubRequestsModel => {
    const model = new HubRequestsModel(client);
    if (PageConfig.getOption('agentboxHubService') === 'true') {
      new HubRequestsUpdater(model);
    }
    return model;
  }
};

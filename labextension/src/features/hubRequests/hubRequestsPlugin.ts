import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { PageConfig } from '@jupyterlab/coreutils';
import { IUserManager } from '@jupyterlab/services';
import type { User } from '@jupyterlab/services';

import { IAgentBoxClient, IHubRequestsModel } from '../../internalTokens';
import { HubRequestsModel } from '../../model/hubRequests';
import { HubRequestsUpdater } from './updater';

/** Provides the requests at the Hub service, and keeps them up to date; without a service, it fetches nothing. */
export const hubRequestsPlugin: JupyterFrontEndPlugin<IHubRequestsModel> = {
  id: 'jupyter-agentbox:hub-requests',
  description: 'Provides the model of what waits at the Hub service.',
  autoStart: true,
  provides: IHubRequestsModel,
  requires: [IAgentBoxClient, IUserManager],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    user: User.IManager
  ): IHubRequestsModel => {
    const model = new HubRequestsModel(client);
    if (PageConfig.getOption('agentboxHubService') === 'true') {
      new HubRequestsUpdater(model, user, client);
    }
    return model;
  }
};

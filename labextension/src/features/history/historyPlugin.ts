import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { IAgentBoxClient } from '../../internalTokens';
import { HistoryModel } from '../../model/history';
import { IApprovalModel, IHistoryModel } from '../../tokens';

/** Provides the model of the requests that are final. */
export const historyPlugin: JupyterFrontEndPlugin<IHistoryModel> = {
  id: 'jupyter-agentbox:history',
  description: 'Provides the model of past approval requests.',
  autoStart: true,
  provides: IHistoryModel,
  requires: [IAgentBoxClient, IApprovalModel],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    approvals: IApprovalModel
  ): IHistoryModel => new HistoryModel(client, approvals)
};

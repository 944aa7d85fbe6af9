import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { AgentBoxClient } from '../../api/client';
import { HistoryModel } from '../../model/history';
import { IApprovalModel, IHistoryModel } from '../../tokens';

/** Provides the model of the requests that are final. */
export const historyPlugin: JupyterFrontEndPlugin<IHistoryModel> = {
  id: 'jupyter-agentbox:history',
  description: 'Provides the model of past approval requests.',
  autoStart: true,
  provides: IHistoryModel,
  requires: [IApprovalModel],
  activate: (app: JupyterFrontEnd, approvals: IApprovalModel): IHistoryModel =>
    new HistoryModel(
      new AgentBoxClient(app.serviceManager.serverSettings),
      approvals
    )
};

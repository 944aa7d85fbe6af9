import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { IApprovalModel } from '../../internalTokens';
import { IApprovals } from '../../tokens';
import { PublicApprovals } from './publicApprovals';

/** Lets other extensions read the requests. */
export const publicApprovalsPlugin: JupyterFrontEndPlugin<IApprovals> = {
  id: 'jupyter-agentbox:public-approvals',
  description: 'Lets other extensions read approval requests.',
  autoStart: true,
  provides: IApprovals,
  requires: [IApprovalModel],
  activate: (_: JupyterFrontEnd, model: IApprovalModel): IApprovals =>
    new PublicApprovals(model)
};

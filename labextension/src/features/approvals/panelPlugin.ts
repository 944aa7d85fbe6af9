import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';

import { onSettings } from '../../integrations/settings';
import { IApprovalPanel, ICardContext } from '../../internalTokens';
import { IAgentBoxPanel } from '../../tokens';
import { ApprovalPanel } from './approvalPanel';
import { PendingSection } from './PendingSection';
import { RejectAllItem } from './RejectAllButton';

/** Adds the pending requests to the side panel. */
export const panelPlugin: JupyterFrontEndPlugin<IApprovalPanel> = {
  id: 'jupyter-agentbox:panel',
  description: 'Shows approval requests in the side panel.',
  autoStart: true,
  provides: IApprovalPanel,
  requires: [IAgentBoxPanel, ICardContext],
  optional: [ISettingRegistry],
  activate: (
    _: JupyterFrontEnd,
    panel: IAgentBoxPanel,
    context: ICardContext,
    registry: ISettingRegistry | null
  ): IApprovalPanel => {
    const { model, trans } = context;
    const section = new PendingSection(context);
    const handle = panel.addSection({
      id: 'pending',
      label: trans.__('Waiting'),
      rank: 100,
      widget: section
    });
    const approvals = new ApprovalPanel({ panel, section, handle, model });
    const rejectAll = new RejectAllItem(context, {
      filter: section.filter,
      onActivate: () => {
        approvals.show();
        section.rejectAll();
      }
    });
    panel.addToolbarItem('reject-all', rejectAll, 'start');
    onSettings(registry, panelPlugin.id, ({ openPanelAutomatically }) => {
      approvals.isAutomatic = openPanelAutomatically === true;
    });
    return approvals;
  }
};

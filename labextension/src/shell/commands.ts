/**
 * Commands that show requests. None decides one: agents can run commands.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { approvalIcon } from '../ui/icons';
import type { IApprovalPanel } from '../internalTokens';

/** The ids of the commands. */
export const COMMANDS = {
  openPanel: 'jupyter-agentbox:open-panel',
  nextRequest: 'jupyter-agentbox:next-request',
  previousRequest: 'jupyter-agentbox:previous-request',
  refresh: 'jupyter-agentbox:refresh'
} as const;

/** What the commands act on. */
export interface ICommandsOptions {
  panel: IApprovalPanel;
  refresh: () => Promise<void>;
  trans: TranslationBundle;
}

/** Add the commands and return their ids. */
export function addCommands(
  registry: CommandRegistry,
  { panel, refresh, trans }: ICommandsOptions
): string[] {
  registry.addCommand(COMMANDS.openPanel, {
    label: trans.__('Show Approval Requests'),
    caption: trans.__('Show tool calls awaiting your approval'),
    icon: approvalIcon,
    execute: () => {
      panel.open();
    }
  });
  registry.addCommand(COMMANDS.nextRequest, {
    label: trans.__('Go to Next Approval Request'),
    execute: () => {
      panel.focus(1);
    }
  });
  registry.addCommand(COMMANDS.previousRequest, {
    label: trans.__('Go to Previous Approval Request'),
    execute: () => {
      panel.focus(-1);
    }
  });
  registry.addCommand(COMMANDS.refresh, {
    label: trans.__('Refresh Approval Requests'),
    execute: refresh
  });
  return Object.values(COMMANDS);
}

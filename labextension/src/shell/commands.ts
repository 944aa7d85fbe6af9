/**
 * Commands that show requests. None decides one: agents can run commands.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

import { NO_ARGUMENTS } from '../ui/commandArguments';
import { withFocusToFollow } from '../ui/guarded/keyGuard';
import { approvalIcon } from '../ui/icons';
import type {
  IApprovalModel,
  IApprovalPanel,
  IOrigins,
  IQuestionsModel
} from '../internalTokens';

/** The ids of the commands. */
export const COMMANDS = {
  openPanel: 'jupyter-agentbox:open-panel',
  nextRequest: 'jupyter-agentbox:next-request',
  previousRequest: 'jupyter-agentbox:previous-request',
  oldestRequest: 'jupyter-agentbox:go-to-oldest',
  refresh: 'jupyter-agentbox:refresh'
} as const;

/** What the commands act on. */
export interface ICommandsOptions {
  panel: IApprovalPanel;
  model: Pick<IApprovalModel, 'pending' | 'get'>;
  questions: Pick<IQuestionsModel, 'questions'>;
  origins: Pick<IOrigins, 'isOpen' | 'reveal'>;
  refresh: () => Promise<void>;
  trans: TranslationBundle;
}

/** Add the commands and return their ids. */
export function addCommands(
  registry: CommandRegistry,
  options: ICommandsOptions
): string[] {
  const { panel, refresh, trans } = options;
  registry.addCommand(COMMANDS.openPanel, {
    ...NO_ARGUMENTS,
    // In the palette, a match in a label comes before those in categories, so that “mcp” finds this one first.
    label: ({ isPalette }) =>
      isPalette
        ? trans.__('Show Approval Requests of MCP Tools')
        : trans.__('Show Approval Requests'),
    caption: trans.__('Show tool calls awaiting your approval'),
    icon: approvalIcon,
    execute: () => {
      panel.open();
    }
  });
  registry.addCommand(COMMANDS.nextRequest, {
    ...NO_ARGUMENTS,
    label: trans.__('Go to Next Approval Request'),
    execute: () => {
      panel.focus(1);
    }
  });
  registry.addCommand(COMMANDS.previousRequest, {
    ...NO_ARGUMENTS,
    label: trans.__('Go to Previous Approval Request'),
    execute: () => {
      panel.focus(-1);
    }
  });
  registry.addCommand(COMMANDS.oldestRequest, {
    ...NO_ARGUMENTS,
    label: trans.__('Go to Oldest Approval Request'),
    caption: trans.__(
      'Move the focus to the request or the server’s question that has waited longest, in its notebook if that is open'
    ),
    execute: () => withFocusToFollow(() => goToOldest(options))
  });
  registry.addCommand(COMMANDS.refresh, {
    ...NO_ARGUMENTS,
    label: trans.__('Refresh Approval Requests'),
    execute: refresh
  });
  return Object.values(COMMANDS);
}

/** Move the focus to a card under its cell; if that is not possible, to the card in the panel. */
async function goToOldest(options: ICommandsOptions): Promise<void> {
  const { model, origins, panel, questions } = options;
  const [oldest] = model.pending;
  const [question] = questions.questions;
  const isEarlier =
    question &&
    (!oldest || Date.parse(question.asked_at) < Date.parse(oldest.created_at));
  const id = isEarlier ? question.id : undefined;
  const approval = isEarlier ? model.get(question.request_id).approval : oldest;
  if (
    approval &&
    origins.isOpen(approval) &&
    (await origins.reveal(approval, id))
  ) {
    return;
  }
  if (id !== undefined) {
    panel.focusQuestion(id);
  } else if (approval) {
    panel.focusRequest(approval.id);
  } else {
    panel.open();
  }
}

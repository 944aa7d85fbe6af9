/**
 * Creates notebooks that begin with a `%%agent` cell.
 */
import type { CommandRegistry } from '@lumino/commands';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { KernelSpec } from '@jupyterlab/services';
import type { NotebookPanel } from '@jupyterlab/notebook';

import { inDirectory } from '../ui/commandArguments';
import { approvalIcon } from '../ui/icons';
import { newNotebook } from './newNotebook';

/** The id of the command. */
export const NEW_AGENT_NOTEBOOK = 'jupyter-agentbox:new-agent-notebook';

const FIRST_CELL = '%%agent\n';

/** What the command needs. */
export interface IAgentNotebookOptions {
  kernelspecs: Pick<KernelSpec.IManager, 'ready' | 'specs'>;
  trans: TranslationBundle;
  /** Why agents are unavailable; empty if they are available. */
  whyOff: () => string;
}

/** Add the command. Its argument `cwd` is the notebook's directory; by default, it is the file browser's. */
export function addAgentNotebookCommand(
  registry: CommandRegistry,
  { kernelspecs, trans, whyOff }: IAgentNotebookOptions
): void {
  registry.addCommand(NEW_AGENT_NOTEBOOK, {
    ...inDirectory(trans),
    label: ({ isLauncher }) =>
      isLauncher ? trans.__('Agent Notebook') : trans.__('New Agent Notebook'),
    caption: () =>
      whyOff() ||
      trans.__(
        'Create a notebook in which an agent works, and asks before it runs anything'
      ),
    isEnabled: () => !whyOff(),
    icon: ({ isPalette }) => (isPalette ? undefined : approvalIcon),
    execute: async ({ cwd }) => {
      const why = whyOff();
      if (why) {
        throw new Error(why); // the launcher shows it, and has no cards that are disabled
      }
      return newNotebook({ registry, kernelspecs, cwd }, begin);
    }
  });
}

/** Write the first cell, and place the cursor where the request belongs. */
function begin({ content }: NotebookPanel): void {
  const [cell] = content.widgets;
  if (cell?.model.sharedModel.getSource() === '') {
    cell.model.sharedModel.setSource(FIRST_CELL);
    content.activeCellIndex = 0;
    content.mode = 'edit';
    cell.editor?.setCursorPosition({ line: 1, column: 0 });
  }
}

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../ui/text/language';
import { addAgentNotebookCommand, NEW_AGENT_NOTEBOOK } from './agentNotebook';

/** Adds a command, and a card in the launcher, for notebooks that begin with a `%%agent` cell. */
export const agentNotebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:agent-notebook',
  description:
    'Adds a command and a launcher card for notebooks with an agent.',
  autoStart: true,
  optional: [ILauncher, ICommandPalette, ITranslator],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    launcher: ILauncher | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const { trans } = languageOf(translator);
    const { kernelspecs } = serviceManager;
    addAgentNotebookCommand(commands, { kernelspecs, trans });
    launcher?.add({
      command: NEW_AGENT_NOTEBOOK,
      args: { isLauncher: true },
      category: 'Notebook',
      rank: 90
    });
    palette?.addItem({
      command: NEW_AGENT_NOTEBOOK,
      args: { isPalette: true },
      category: trans.__('Agent')
    });
  }
};

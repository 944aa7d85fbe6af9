import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator } from '@jupyterlab/translation';

import { IRulesModel } from '../internalTokens';
import { languageOf } from '../ui/text/language';
import { lockText } from '../ui/text/locks';
import { addAgentNotebookCommand, NEW_AGENT_NOTEBOOK } from './agentNotebook';
import { PALETTE_CATEGORY } from '../ui/commandIds';

/** Adds a command, and a card in the launcher, for notebooks that begin with a `%%agent` cell. */
export const agentNotebookPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:agent-notebook',
  description:
    'Adds a command and a launcher card for notebooks with an agent.',
  autoStart: true,
  optional: [ILauncher, ICommandPalette, ITranslator, IRulesModel],
  activate: (
    { commands, serviceManager }: JupyterFrontEnd,
    launcher: ILauncher | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null,
    rules: IRulesModel | null
  ): void => {
    const { trans } = languageOf(translator);
    const { kernelspecs } = serviceManager;
    const whyOff = (): string => {
      const lock = rules?.lockOf('agents');
      return lock ? lockText('agents', lock, trans) : '';
    };
    addAgentNotebookCommand(commands, { kernelspecs, trans, whyOff });
    rules?.changed.connect(() => {
      commands.notifyCommandChanged(NEW_AGENT_NOTEBOOK);
    });
    launcher?.add({
      command: NEW_AGENT_NOTEBOOK,
      args: { isLauncher: true },
      category: 'Notebook',
      rank: 90
    });
    palette?.addItem({
      command: NEW_AGENT_NOTEBOOK,
      args: { isPalette: true },
      category: PALETTE_CATEGORY
    });
  }
};

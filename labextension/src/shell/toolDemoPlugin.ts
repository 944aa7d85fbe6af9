import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator } from '@jupyterlab/translation';

import { PALETTE_CATEGORY } from '../ui/commandIds';
import { languageOf } from '../ui/text/language';
import { addToolDemoCommand, NEW_TOOL_DEMO } from './toolDemo';

/** Adds a command, and a card in the launcher, for a notebook that tries tools. */
export const toolDemoPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:tool-demo',
  description: 'Adds a command and a launcher card for a demo of tools.',
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
    addToolDemoCommand(commands, { kernelspecs, trans });
    launcher?.add({
      command: NEW_TOOL_DEMO,
      args: { isLauncher: true },
      category: 'Other',
      rank: 90
    });
    palette?.addItem({
      command: NEW_TOOL_DEMO,
      category: PALETTE_CATEGORY,
      args: { isPalette: true }
    });
  }
};

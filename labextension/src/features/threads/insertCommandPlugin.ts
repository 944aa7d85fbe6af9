import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette, Notification } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';

import { ICodeInserter } from '../../internalTokens';
import { describeFailure } from './codeInserter';
import { PALETTE_CATEGORY } from '../../ui/commandIds';
import { NO_ARGUMENTS } from '../../ui/commandArguments';
import { languageOf } from '../../ui/text/language';

/** The id of the command. */
const INSERT_COMMAND = 'jupyter-agentbox:insert-agent-code';

/** Adds the command that inserts an agent's code as cells. */
export const insertCommandPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:insert-command',
  description: 'Adds the command that inserts an agent’s code as cells.',
  autoStart: true,
  requires: [ICodeInserter],
  optional: [ICommandPalette, ITranslator],
  activate: (
    { commands }: JupyterFrontEnd,
    inserter: ICodeInserter,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const { trans } = languageOf(translator);
    commands.addCommand(INSERT_COMMAND, {
      ...NO_ARGUMENTS,
      label: trans.__('Insert the Agent’s Code as Cells'),
      caption: trans.__(
        'Insert the code that ran in the active cell’s last turn as cells below'
      ),
      isEnabled: () => inserter.isEnabled,
      execute: async () => {
        try {
          await inserter.insertAtActiveCell();
        } catch (error) {
          Notification.error(describeFailure(error, trans));
        }
      }
    });
    palette?.addItem({ command: INSERT_COMMAND, category: PALETTE_CATEGORY });
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../ui/text/language';
import { addCommands } from './commands';
import { addKeyHelp, SHOW_KEYS } from './keyHelp';
import { PALETTE_CATEGORY } from '../ui/commandIds';
import {
  IApprovalModel,
  IApprovalPanel,
  IHistoryModel,
  IOrigins,
  IQuestionsModel,
  IServersModel,
  IThreadsModel
} from '../internalTokens';

/** Adds commands that show requests. None decides one: agents can run commands. */
export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:commands',
  description: 'Adds commands that show approval requests.',
  autoStart: true,
  requires: [
    IApprovalModel,
    IHistoryModel,
    IServersModel,
    IThreadsModel,
    IApprovalPanel,
    IOrigins,
    IQuestionsModel
  ],
  optional: [ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    model: IApprovalModel,
    history: IHistoryModel,
    servers: IServersModel,
    threads: IThreadsModel,
    panel: IApprovalPanel,
    origins: IOrigins,
    questions: IQuestionsModel,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ): void => {
    const { trans } = languageOf(translator);
    const refresh = async (): Promise<void> => {
      await Promise.all([
        model.refresh(),
        history.load(),
        servers.refresh(),
        // A server whose agents nobody asks anything need not load them.
        threads.threads ? threads.refresh() : undefined
      ]);
    };
    const commands = addCommands(app.commands, {
      panel,
      model,
      origins,
      questions,
      refresh,
      trans
    });
    addKeyHelp(app.commands, trans);
    for (const command of [...commands, SHOW_KEYS]) {
      palette?.addItem({
        command,
        category: PALETTE_CATEGORY,
        args: { isPalette: true }
      });
    }
  }
};

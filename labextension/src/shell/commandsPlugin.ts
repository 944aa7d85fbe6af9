import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../ui/text/language';
import { addCommands } from './commands';
import { PALETTE_CATEGORY } from '../ui/commandIds';
import {
  IApprovalModel,
  IApprovalPanel,
  IHistoryModel,
  IOrigins,
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
    IOrigins
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
      refresh,
      trans
    });
    for (const command of commands) {
      palette?.addItem({ command, category: PALETTE_CATEGORY });
    }
  }
};

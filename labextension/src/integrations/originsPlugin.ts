import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IConsoleTracker } from '@jupyterlab/console';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../ui/text/language';
import { Origins } from './origins';
import { IOrigins } from '../internalTokens';

/** Provides `IOrigins`, which finds a request's cell. */
export const originsPlugin: JupyterFrontEndPlugin<IOrigins> = {
  id: 'jupyter-agentbox:origins',
  description: 'Finds the cell that an approval request came from.',
  autoStart: true,
  provides: IOrigins,
  optional: [IDocumentManager, INotebookTracker, IConsoleTracker, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    docManager: IDocumentManager | null,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    translator: ITranslator | null
  ): IOrigins => {
    const { trans } = languageOf(translator);
    const { shell } = app;
    return new Origins({ shell, docManager, notebooks, consoles, trans });
  }
};

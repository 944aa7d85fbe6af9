import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { IAgentBoxClient, ICodeInserter } from '../../internalTokens';
import { languageOf } from '../../ui/text/language';
import { CodeInserter } from './codeInserter';

/** Provides what puts the code that an agent ran into a notebook. */
export const codeInserterPlugin: JupyterFrontEndPlugin<ICodeInserter> = {
  id: 'jupyter-agentbox:code-inserter',
  description: 'Puts the code that an agent ran into a notebook, as cells.',
  autoStart: true,
  provides: ICodeInserter,
  requires: [IAgentBoxClient, INotebookTracker],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    notebooks: INotebookTracker,
    translator: ITranslator | null
  ): ICodeInserter =>
    new CodeInserter({ client, notebooks, trans: languageOf(translator).trans })
};

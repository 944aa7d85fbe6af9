import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Dialog, showDialog } from '@jupyterlab/apputils';
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
  ): ICodeInserter => {
    const { trans } = languageOf(translator);
    const confirm = async (body: string): Promise<boolean> => {
      const { button } = await showDialog({
        title: trans.__('Insert the agent’s code as cells?'),
        body,
        buttons: [
          Dialog.cancelButton(),
          Dialog.okButton({ label: trans.__('Insert') })
        ]
      });
      return button.accept;
    };
    return new CodeInserter({ client, notebooks, confirm, trans });
  }
};

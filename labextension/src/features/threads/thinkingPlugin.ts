import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator } from '@jupyterlab/translation';

import { watchWidgets } from '../../integrations/sessions';
import { languageOf } from '../../ui/text/language';
import { ThinkingWatch } from './thinking';

/** Says that an agent's model was asked, until it answers. */
export const thinkingPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:thinking',
  description: 'Says under a cell that the model of its agent is thinking.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    notebooks: INotebookTracker,
    translator: ITranslator | null
  ): void => {
    const language = languageOf(translator);
    watchWidgets(notebooks, panel => new ThinkingWatch(panel, language));
  }
};

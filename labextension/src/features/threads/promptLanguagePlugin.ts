import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';

import { watchWidgets } from '../../integrations/sessions';
import { PromptLanguage } from './promptLanguage';

/** Shows requests to an agent as prose. */
export const promptLanguagePlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:prompt-language',
  description: 'Shows what an agent is asked as prose, not as Python.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_: JupyterFrontEnd, notebooks: INotebookTracker): void => {
    watchWidgets(notebooks, panel => new PromptLanguage(panel.content));
  }
};

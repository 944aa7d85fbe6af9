import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';

import { COMM_TARGET } from '../../api/protocol';
import { KernelWatch } from '../../integrations/sessions';

/**
 * Ignores the kernel side's comm. It is for the server; a page without this target would close it and log an error.
 */
export const commPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:comm',
  description: 'Leaves the comm between kernel and server open.',
  autoStart: true,
  optional: [INotebookTracker, IConsoleTracker],
  activate: (
    _: JupyterFrontEnd,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null
  ): void => {
    new KernelWatch({ notebooks, consoles }, kernel => {
      kernel.registerCommTarget(COMM_TARGET, () => undefined);
    });
  }
};

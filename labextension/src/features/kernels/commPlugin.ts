import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import type { ISessionContext } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { Kernel } from '@jupyterlab/services';

import { COMM_TARGET } from '../../api/protocol';

/**
 * Lets the kernel side's comm be. It is for the server; a page without this target would close it and log an error.
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
    notebooks?.widgetAdded.connect((_, panel) => {
      watch(panel.sessionContext);
    });
    consoles?.widgetAdded.connect((_, panel) => {
      watch(panel.sessionContext);
    });
  }
};

function watch(context: ISessionContext): void {
  register(context.session?.kernel ?? null);
  context.kernelChanged.connect((_, { newValue }) => {
    register(newValue);
  });
}

function register(kernel: Kernel.IKernelConnection | null): void {
  kernel?.registerCommTarget(COMM_TARGET, () => undefined);
}

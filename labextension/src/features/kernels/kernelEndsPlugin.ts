import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { AgentBoxClient } from '../../api/client';
import { EndNotifier } from './endNotifier';
import { KernelEndsModel } from '../../model/kernelEnds';
import { IOrigins } from '../../tokens';

/** Says why a sandboxed kernel ended. */
export const kernelEndsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:kernel-ends',
  description: 'Notifies of sandboxed kernels that ended, and says why.',
  autoStart: true,
  requires: [IOrigins],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    origins: IOrigins,
    translator: ITranslator | null
  ): void => {
    const { events, serverSettings } = app.serviceManager;
    const trans = (translator ?? nullTranslator).load('jupyter-agentbox');
    const model = new KernelEndsModel(
      events,
      new AgentBoxClient(serverSettings)
    );
    const notifications = Notification.manager;
    new EndNotifier({ model, origins, notifications, trans });
  }
};

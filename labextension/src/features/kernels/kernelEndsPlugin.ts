import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../../ui/text/language';
import { IAgentBoxClient, IEventRouter, IOrigins } from '../../internalTokens';
import { KernelEndsModel } from '../../model/kernelEnds';
import { EndNotifier } from './endNotifier';

/** Tells why a sandboxed kernel ended. */
export const kernelEndsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:kernel-ends',
  description: 'Notifies of sandboxed kernels that ended, and says why.',
  autoStart: true,
  requires: [IAgentBoxClient, IEventRouter, IOrigins],
  optional: [ITranslator],
  activate: (
    _: JupyterFrontEnd,
    client: IAgentBoxClient,
    events: IEventRouter,
    origins: IOrigins,
    translator: ITranslator | null
  ): void => {
    const { trans } = languageOf(translator);
    const model = new KernelEndsModel(events, client);
    const notifications = Notification.manager;
    new EndNotifier({ model, origins, notifications, trans });
  }
};

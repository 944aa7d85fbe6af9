import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ITranslator } from '@jupyterlab/translation';

import { languageOf } from '../../ui/text/language';
import { IAgentBoxClient, IEventRouter, IOrigins } from '../../internalTokens';
import { KernelExitsModel } from '../../model/kernelExits';
import { ExitNotifier } from './exitNotifier';

/** Tells why a sandboxed kernel ended. */
export const kernelExitsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:kernel-exits',
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
    const model = new KernelExitsModel(events, client);
    const notifications = Notification.manager;
    new ExitNotifier({ model, origins, notifications, trans });
  }
};

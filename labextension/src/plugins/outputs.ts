import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ISanitizer, Sanitizer } from '@jupyterlab/apputils';
import type { ISessionContext } from '@jupyterlab/apputils';
import { IConsoleTracker } from '@jupyterlab/console';
import { INotebookTracker } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { AgentBoxClient } from '../client';
import { SessionGate } from '../outputs/gate';
import type { Gate } from '../outputs/gate';
import { KernelLevels } from '../outputs/levels';
import { gateOf, guardRegistry } from '../outputs/registry';
import { keepUntrusted } from '../outputs/trust';
import { guardManager, hardenErrors } from '../outputs/widgets';

/** Lets outputs of sandboxed kernels run no code in the page that a person did not allow. */
export const outputsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'jupyter-agentbox:outputs',
  description: 'Keeps outputs of sandboxed kernels from running code.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [INotebookTracker, IConsoleTracker, ISanitizer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    rendermime: IRenderMimeRegistry,
    notebooks: INotebookTracker | null,
    consoles: IConsoleTracker | null,
    optionalSanitizer: ISanitizer | null,
    translator: ITranslator | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('jupyter-agentbox');
    const sanitizer = optionalSanitizer ?? new Sanitizer();
    const { kernelspecs, serverSettings } = app.serviceManager;
    const client = new AgentBoxClient(serverSettings);
    const levels = new KernelLevels(client, kernelspecs);
    const sessions = new WeakMap<ISessionContext, SessionGate>();

    const bind = (context: ISessionContext, registry: IRenderMimeRegistry) => {
      const session = sessions.get(context) ?? new SessionGate(context, levels);
      sessions.set(context, session);
      const gate = gateOf(registry) ?? guardRegistry(registry, options);
      gate.bind(session);
      return gate;
    };
    const options = {
      trans,
      onWidgetManager: (manager: object | null, gate: Gate) => {
        if (!guardManager(manager, gate, { sanitizer, trans })) {
          console.error('Unknown widget manager: sandboxed kernels get none.');
          gate.refuseWidgets();
        }
      }
    };

    hardenErrors();
    guardRegistry(rendermime, options);
    notebooks?.widgetAdded.connect((_, { content, sessionContext }) => {
      const gate = bind(sessionContext, content.rendermime);
      const follow = (): void => {
        if (content.model) {
          keepUntrusted(content.model, gate);
        }
      };
      content.modelChanged.connect(follow);
      follow();
    });
    consoles?.widgetAdded.connect((_, { console, sessionContext }) => {
      bind(sessionContext, console.rendermime);
    });
  }
};

import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { IEventManager } from '@jupyterlab/services';
import type { Event } from '@jupyterlab/services';

import { IEventRouter } from '../internalTokens';
import { EventRouter } from './events';

/** Provides the router of the server's events. */
export const eventsPlugin: JupyterFrontEndPlugin<IEventRouter> = {
  id: 'jupyter-agentbox:events',
  description:
    'Gives each event of the server to those who asked for its kind.',
  autoStart: true,
  provides: IEventRouter,
  requires: [IEventManager],
  activate: (_: JupyterFrontEnd, events: Event.IManager): IEventRouter =>
    new EventRouter(events)
};

/**
 * The plugins of the lab extension.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { clientPlugin } from './api/clientPlugin';
import { eventsPlugin } from './api/eventsPlugin';
import { approvalsPlugin } from './features/approvals/approvalsPlugin';
import { cardContextPlugin } from './features/approvals/cardContextPlugin';
import { cardPlugin } from './features/approvals/cardPlugin';
import { commPlugin } from './features/kernels/commPlugin';
import { commandsPlugin } from './shell/commandsPlugin';
import { historyPlugin } from './features/history/historyPlugin';
import { ipywidgetsPlugin } from './integrations/ipywidgetsPlugin';
import { kernelEndsPlugin } from './features/kernels/kernelEndsPlugin';
import { notificationsPlugin } from './features/approvals/notificationsPlugin';
import { outputsPlugin } from './features/outputs/outputsPlugin';
import { originsPlugin } from './integrations/originsPlugin';
import { panelPlugin } from './shell/panelPlugin';
import { serversPlugin } from './features/servers/serversPlugin';
import { statusPlugin } from './shell/statusPlugin';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  clientPlugin,
  eventsPlugin,
  outputsPlugin,
  serversPlugin,
  approvalsPlugin,
  historyPlugin,
  originsPlugin,
  cardContextPlugin,
  cardPlugin,
  ipywidgetsPlugin,
  panelPlugin,
  statusPlugin,
  notificationsPlugin,
  kernelEndsPlugin,
  commandsPlugin,
  commPlugin
];

export default plugins;

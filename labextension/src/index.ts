/**
 * The plugins of the lab extension.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { approvalsPlugin } from './plugins/approvals';
import { cardPlugin } from './plugins/card';
import { commPlugin } from './plugins/comm';
import { commandsPlugin } from './plugins/commands';
import { historyPlugin } from './plugins/history';
import { jupyterWidgetPlugin } from './plugins/jupyterWidget';
import { kernelEndsPlugin } from './plugins/kernelEnds';
import { notificationsPlugin } from './plugins/notifications';
import { outputsPlugin } from './plugins/outputs';
import { originsPlugin } from './plugins/origins';
import { panelPlugin } from './plugins/panel';
import { serversPlugin } from './plugins/servers';
import { statusPlugin } from './plugins/status';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  outputsPlugin,
  serversPlugin,
  approvalsPlugin,
  historyPlugin,
  originsPlugin,
  cardPlugin,
  jupyterWidgetPlugin,
  panelPlugin,
  statusPlugin,
  notificationsPlugin,
  kernelEndsPlugin,
  commandsPlugin,
  commPlugin
];

export default plugins;

/**
 * The plugins of the lab extension, and what other extensions can use.
 */
import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { agentNotebookPlugin } from './shell/agentNotebookPlugin';
import { clientPlugin } from './api/clientPlugin';
import { eventsPlugin } from './api/eventsPlugin';
import { approvalsPlugin } from './features/approvals/approvalsPlugin';
import { cardContextPlugin } from './features/approvals/cardContextPlugin';
import { cardPlugin } from './features/approvals/cardPlugin';
import { commPlugin } from './features/kernels/commPlugin';
import { commandsPlugin } from './shell/commandsPlugin';
import { grantsPlugin } from './features/grants/grantsPlugin';
import { grantsSectionPlugin } from './features/grants/grantsSectionPlugin';
import { hubRequestsPlugin } from './features/hubRequests/hubRequestsPlugin';
import { hubRequestsSectionPlugin } from './features/hubRequests/hubRequestsSectionPlugin';
import { historyPlugin } from './features/history/historyPlugin';
import { ipywidgetsPlugin } from './integrations/ipywidgetsPlugin';
import { kernelExitsPlugin } from './features/kernels/kernelExitsPlugin';
import { notificationsPlugin } from './features/approvals/notificationsPlugin';
import { outputsPlugin } from './features/outputs/outputsPlugin';
import { questionsPlugin } from './features/questions/questionsPlugin';
import { questionsSectionPlugin } from './features/questions/questionsSectionPlugin';
import { originsPlugin } from './integrations/originsPlugin';
import { historyPagePlugin } from './features/history/historyPagePlugin';
import { historySectionPlugin } from './features/history/historySectionPlugin';
import { panelPlugin } from './features/approvals/panelPlugin';
import { publicApprovalsPlugin } from './features/approvals/publicApprovalsPlugin';
import { rulesPlugin } from './features/rules/rulesPlugin';
import { rulesSectionPlugin } from './features/rules/rulesSectionPlugin';
import { serversSectionPlugin } from './features/servers/serversSectionPlugin';
import { sidePanelPlugin } from './shell/sidePanelPlugin';
import { serversPlugin } from './features/servers/serversPlugin';
import { codeInserterPlugin } from './features/threads/codeInserterPlugin';
import { insertCommandPlugin } from './features/threads/insertCommandPlugin';
import { promptLanguagePlugin } from './features/threads/promptLanguagePlugin';
import { thinkingPlugin } from './features/threads/thinkingPlugin';
import { itemsPlugin } from './features/threads/itemsPlugin';
import { threadsPlugin } from './features/threads/threadsPlugin';
import { threadsSectionPlugin } from './features/threads/threadsSectionPlugin';
import { guidePlugin } from './shell/guidePlugin';
import { panelToolbarPlugin } from './shell/panelToolbarPlugin';
import { soundPlugin } from './features/approvals/soundPlugin';
import { statusPlugin } from './shell/statusPlugin';
import { toolDemoPlugin } from './shell/toolDemoPlugin';

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  clientPlugin,
  eventsPlugin,
  outputsPlugin,
  serversPlugin,
  approvalsPlugin,
  historyPlugin,
  grantsPlugin,
  rulesPlugin,
  originsPlugin,
  questionsPlugin,
  hubRequestsPlugin,
  cardContextPlugin,
  cardPlugin,
  ipywidgetsPlugin,
  sidePanelPlugin,
  panelPlugin,
  questionsSectionPlugin,
  hubRequestsSectionPlugin,
  grantsSectionPlugin,
  historySectionPlugin,
  historyPagePlugin,
  serversSectionPlugin,
  rulesSectionPlugin,
  threadsPlugin,
  threadsSectionPlugin,
  codeInserterPlugin,
  insertCommandPlugin,
  itemsPlugin,
  promptLanguagePlugin,
  thinkingPlugin,
  publicApprovalsPlugin,
  statusPlugin,
  notificationsPlugin,
  soundPlugin,
  kernelExitsPlugin,
  commandsPlugin,
  agentNotebookPlugin,
  toolDemoPlugin,
  guidePlugin,
  panelToolbarPlugin,
  commPlugin
];

export * from './tokens';

export default plugins;

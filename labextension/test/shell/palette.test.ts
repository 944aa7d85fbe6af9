import type { JupyterFrontEnd } from '@jupyterlab/application';
import { CommandRegistry } from '@lumino/commands';

import { historyPagePlugin } from '../../src/features/history/historyPagePlugin';
import { insertCommandPlugin } from '../../src/features/threads/insertCommandPlugin';
import { agentNotebookPlugin } from '../../src/shell/agentNotebookPlugin';
import { commandsPlugin } from '../../src/shell/commandsPlugin';
import { guidePlugin } from '../../src/shell/guidePlugin';
import { toolDemoPlugin } from '../../src/shell/toolDemoPlugin';
import { trans } from '../examples';

// Its editor needs a browser.
jest.mock('@jupyterlab/notebook', () => ({ NotebookPanel: null }));

test('all commands are in one category of the palette', () => {
  const found: Record<string, string[]> = {};
  const palette = {
    addItem: (item: { category: string; command: string }) =>
      (found[item.category] ??= []).push(item.command)
  };
  const app = {
    commands: new CommandRegistry(),
    serviceManager: {}
  } as unknown as JupyterFrontEnd;
  commandsPlugin.activate(app, {}, {}, {}, {}, {}, {}, {}, palette, null);
  historyPagePlugin.activate(app, {}, { trans }, palette);
  insertCommandPlugin.activate(app, {}, palette, null);
  agentNotebookPlugin.activate(app, null, palette, null, null);
  guidePlugin.activate(app, {}, palette, null);
  toolDemoPlugin.activate(app, null, palette, null);

  expect(Object.keys(found)).toEqual(['AgentBox (MCP)']);
  expect(found['AgentBox (MCP)'].sort()).toEqual(
    app.commands.listCommands().sort()
  );
});

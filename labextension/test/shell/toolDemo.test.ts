import { CommandRegistry } from '@lumino/commands';

import {
  addToolDemoCommand,
  cellsOf,
  NEW_TOOL_DEMO
} from '../../src/shell/toolDemo';
import { trans } from '../examples';

// What Jest cannot read of JupyterLab, and the command needs only to know a notebook by.
jest.mock('@jupyterlab/notebook', () => ({ NotebookPanel: jest.fn() }));

test('the demo is a new notebook of the default kernel, where the launcher stands', async () => {
  const registry = new CommandRegistry();
  const create = jest.fn();
  registry.addCommand('notebook:create-new', { execute: create });
  addToolDemoCommand(registry, {
    kernelspecs: {
      ready: Promise.resolve(),
      specs: { default: 'python3', kernelspecs: {} }
    },
    trans
  });
  await registry.execute(NEW_TOOL_DEMO, { cwd: 'work' });
  expect(create).toHaveBeenCalledWith({ cwd: 'work', kernelName: 'python3' });
  expect(registry.label(NEW_TOOL_DEMO, { isLauncher: true })).toBe('Tool Demo');
});

test('the demo says what to do if the shop is missing, and calls only tools of the shop', () => {
  const cells = cellsOf(trans);
  expect(cells[0].source).toContain('jupyter_agentbox.demo.shop');
  const calls = cells
    .filter(({ cell_type }) => cell_type === 'code')
    .flatMap(({ source }) => source.match(/tools\.\w+\.\w+/g) ?? []);
  expect(calls).toEqual(['tools.shop.list_products', 'tools.shop.restock']);
});

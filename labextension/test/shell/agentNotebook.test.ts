import { CommandRegistry } from '@lumino/commands';

import {
  addAgentNotebookCommand,
  NEW_AGENT_NOTEBOOK
} from '../../src/shell/agentNotebook';
import { trans } from '../examples';

// What Jest cannot read of JupyterLab, and the command needs only to know a notebook by.
jest.mock('@jupyterlab/notebook', () => ({ NotebookPanel: jest.fn() }));

test('where agents are off the command is disabled, says why, and makes no notebook', async () => {
  const registry = new CommandRegistry();
  const create = jest.fn();
  registry.addCommand('notebook:create-new', { execute: create });
  let why = 'Set by your administrator: Agents are off.';
  addAgentNotebookCommand(registry, {
    kernelspecs: { ready: Promise.resolve(), specs: null },
    trans,
    whyOff: () => why
  });
  expect(registry.isEnabled(NEW_AGENT_NOTEBOOK)).toBe(false);
  expect(registry.caption(NEW_AGENT_NOTEBOOK)).toBe(why);
  await expect(registry.execute(NEW_AGENT_NOTEBOOK)).rejects.toThrow(why);
  expect(create).not.toHaveBeenCalled();
  why = '';
  expect(registry.isEnabled(NEW_AGENT_NOTEBOOK)).toBe(true);
  await registry.execute(NEW_AGENT_NOTEBOOK);
  expect(create).toHaveBeenCalled();
});

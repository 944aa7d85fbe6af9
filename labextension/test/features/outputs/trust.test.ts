import { CodeCellModel } from '@jupyterlab/cells';
import { Signal } from '@lumino/signaling';

import { keepUntrusted } from '../../../src/features/outputs/trust';
import type { ITrustedCells } from '../../../src/features/outputs/trust';
import { Notebook, Server, settle } from '../../sessions';

function oneCell(trusted: boolean): {
  cell: CodeCellModel;
  model: ITrustedCells;
} {
  const cell = new CodeCellModel();
  cell.trusted = trusted;
  if (trusted) {
    cell.setMetadata('trusted', true);
  }
  const cells = Object.assign([cell], {
    changed: new Signal<object, unknown>({})
  });
  return { cell, model: { cells, dirty: false } };
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test('a slow server takes no trust', async () => {
  const server = new Server();
  const notebook = new Notebook(server);
  notebook.connect('k1');
  const { cell, model } = oneCell(true);
  keepUntrusted(model, notebook.gate);

  jest.advanceTimersByTime(6000);
  await settle();
  expect(notebook.gate.verdict).toBe('closed');
  expect(cell.trusted).toBe(true);
  expect(cell.getMetadata('trusted')).toBe(true);
});

test('what is run before the server has said is trusted when the kernel is a plain one', async () => {
  const server = new Server();
  const notebook = new Notebook(server);
  notebook.connect('k1');
  const { cell, model } = oneCell(false);
  keepUntrusted(model, notebook.gate);

  cell.trusted = true;
  expect(cell.trusted).toBe(false);
  server.say('k1', 'none');
  await settle();

  expect(cell.trusted).toBe(true);
});

test.each(['before', 'after'])(
  'no cell of a sandboxed kernel is trusted that was trusted %s the server had said',
  async when => {
    const server = new Server();
    const notebook = new Notebook(server);
    notebook.connect('k1');
    const { cell, model } = oneCell(true);
    keepUntrusted(model, notebook.gate);
    if (when === 'before') {
      cell.trusted = true;
    }
    server.say('k1', 'bubblewrap');
    await settle();
    if (when === 'after') {
      cell.trusted = true;
    }

    expect(cell.trusted).toBe(false);
    expect(cell.getMetadata('trusted')).toBeUndefined();
  }
);

test('a restart changes no trust', async () => {
  const server = new Server();
  server.say('k1', 'none');
  const notebook = new Notebook(server);
  notebook.connect('k1');
  await settle();
  const { cell, model } = oneCell(true);
  keepUntrusted(model, notebook.gate);

  notebook.connect('k1');
  cell.trusted = true;

  expect(cell.trusted).toBe(true);
});

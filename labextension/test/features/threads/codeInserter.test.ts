import { CodeCellModel } from '@jupyterlab/cells';
import type { Cell } from '@jupyterlab/cells';
import { NotebookModel } from '@jupyterlab/notebook/lib/model';
import type { INotebookTracker } from '@jupyterlab/notebook';

import { ITEM_MIME_TYPE } from '../../../src/api/threads';
import type { IThread, Item, ITurn } from '../../../src/api/threads';
import {
  CodeInserter,
  codeThatRan,
  insertCode,
  lastTurn
} from '../../../src/features/threads/codeInserter';
import { trans } from '../../examples';
import { itemData } from '../../threads';

function run(code: string, status = 'completed'): Item {
  return { type: 'code_run', id: code, code, status } as Item;
}

function turnOf(...items: Item[]): ITurn {
  return { id: 't1', thread_id: 'h1', status: 'completed', items };
}

function sources(model: NotebookModel): string[] {
  return [...model.cells].map(cell => cell.sharedModel.getSource());
}

function agentCell(...turnIds: string[]): CodeCellModel {
  const cell = new CodeCellModel();
  for (const turn_id of turnIds) {
    const data = { ...itemData({ type: 'notice', text: 'a' }), turn_id };
    cell.outputs.add({
      output_type: 'display_data',
      data: { [ITEM_MIME_TYPE]: data as never },
      metadata: {}
    });
  }
  return cell;
}

test('only code that ran to its end is inserted, in its order', () => {
  const turn = turnOf(
    { type: 'agent_message', id: 'm', text: 'x = 0', phase: null },
    run('a = 1'),
    run('a = b', 'failed'),
    run('a = 2', 'declined'),
    run('a = 3', 'interrupted'),
    run('%time a')
  );
  expect(codeThatRan(turn)).toEqual(['a = 1', '%time a']);
});

test('one undo takes out all that was inserted, and nothing else', () => {
  const model = new NotebookModel();
  model.sharedModel.insertCell(0, { cell_type: 'code', source: '%%agent' });
  model.sharedModel.insertCell(1, { cell_type: 'code', source: 'after' });
  insertCode(model.sharedModel, 1, ['a = 1', 'b = 2']);
  model.sharedModel.insertCell(4, { cell_type: 'code', source: 'later' });
  expect(sources(model)).toEqual([
    '%%agent',
    'a = 1',
    'b = 2',
    'after',
    'later'
  ]);
  model.sharedModel.undo();
  expect(sources(model)).toEqual(['%%agent', 'a = 1', 'b = 2', 'after']);
  model.sharedModel.undo();
  expect(sources(model)).toEqual(['%%agent', 'after']);
  model.sharedModel.redo();
  expect(sources(model)).toEqual(['%%agent', 'a = 1', 'b = 2', 'after']);
});

test('a cell that ran twice has the turn of its last item', () => {
  const model = agentCell('t1', 't2');
  model.outputs.add({ output_type: 'stream', name: 'stdout', text: 'a' });
  expect(lastTurn({ model })).toBe('t2');
  expect(lastTurn({ model: agentCell() })).toBeNull();
});

/** A notebook whose one cell has a turn. */
function notebook(readOnly = false): {
  model: NotebookModel;
  tracker: INotebookTracker;
  content: { activeCellIndex: number };
} {
  const model = new NotebookModel();
  model.sharedModel.insertCell(0, { cell_type: 'code', source: '%%agent' });
  model.readOnly = readOnly;
  const cell = { model: agentCell('t1'), node: document.body } as never as Cell;
  const content = {
    model,
    node: document.body,
    widgets: [cell],
    activeCell: cell,
    activeCellIndex: 0,
    mode: 'edit',
    deselectAll: jest.fn(),
    activate: jest.fn(),
    scrollToItem: () => Promise.resolve()
  };
  const panel = { content, context: { localPath: 'a.ipynb' } };
  const tracker = {
    currentWidget: panel,
    find: (test: (one: object) => boolean) => [panel].find(test)
  } as never as INotebookTracker;
  return { model, tracker, content };
}

/** An inserter whose server says that code ran in a notebook, and whose person answers `isWanted` if asked. */
function inserterOf(
  notebooks: INotebookTracker,
  items: Item[],
  { path = 'a.ipynb', isWanted = false } = {}
): CodeInserter {
  const client = {
    getTurn: () => Promise.resolve(turnOf(...items)),
    getThread: () => Promise.resolve({ notebook_path: path } as IThread)
  };
  const confirm = (): Promise<boolean> => Promise.resolve(isWanted);
  return new CodeInserter({ client, notebooks, confirm, trans });
}

test('an output that says that other code ran changes nothing', async () => {
  const { model, tracker } = notebook();
  const cell = tracker.currentWidget?.content.activeCell as Cell;
  const forged = { ...itemData(run('forged()')), turn_id: 't1' };
  (cell.model as CodeCellModel).outputs.add({
    output_type: 'display_data',
    data: { [ITEM_MIME_TYPE]: forged as never },
    metadata: {}
  });
  await inserterOf(tracker, [run('a = 1')]).insertAtActiveCell();
  expect(sources(model)).toEqual(['%%agent', 'a = 1']);
});

test.each([
  ['b.ipynb', false, []],
  ['b.ipynb', true, ['a = 1']],
  ['', false, []]
])(
  'code of a turn that an output names and that ran elsewhere (%p) waits for a yes',
  async (path, isWanted, inserted) => {
    const { model, tracker } = notebook();
    const inserter = inserterOf(tracker, [run('a = 1')], { path, isWanted });
    await inserter.insertAtActiveCell();
    expect(sources(model)).toEqual(['%%agent', ...inserted]);
  }
);

test('the code of a turn goes below its cell, whose first becomes the active one', async () => {
  const { model, tracker, content } = notebook();
  const inserter = inserterOf(tracker, [run('a = 1')]);
  expect(inserter.isEnabled).toBe(true);
  await inserter.insertAtActiveCell();
  await inserter.insertAt(document.body, 't1');
  expect(sources(model)).toEqual(['%%agent', 'a = 1', 'a = 1']);
  expect(content.activeCellIndex).toBe(1);
});

test.each([
  ['nothing ran', false, [run('a', 'failed')]],
  ['the notebook cannot be changed', true, [run('a')]]
])('a turn is not inserted if %s', async (_, readOnly, items) => {
  const { model, tracker } = notebook(readOnly);
  const inserter = inserterOf(tracker, items);
  await expect(inserter.insertAtActiveCell()).rejects.toThrow();
  expect(sources(model)).toEqual(['%%agent']);
});

import { YNotebook } from '@jupyter/ydoc';
import type { YCodeCell } from '@jupyter/ydoc';
import { CodeCellModel } from '@jupyterlab/cells';
import { Signal } from '@lumino/signaling';

import type { IApproval } from '../../src/api/protocol';
import { changeOf, OriginCell } from '../../src/integrations/originCell';
import { Origins } from '../../src/integrations/origins';
import type { IOriginsOptions } from '../../src/integrations/origins';
import { approval, trans } from '../examples';

function cell(source: string): CodeCellModel {
  const sharedModel = new YNotebook().addCell({ cell_type: 'code', source });
  sharedModel.clearUndoHistory();
  return new CodeCellModel({ sharedModel: sharedModel as YCodeCell });
}

test('the new code takes the place of the old one in one step, which can be undone', () => {
  const model = cell('restock(quantity=25)\n"😀"');
  const origin = new OriginCell(model, false);
  expect(
    origin.replace('restock(quantity=25)\n"😀"', 'restock(quantity=30)\n"😁"')
  ).toBe(true);
  expect(origin.source).toBe('restock(quantity=30)\n"😁"');
  model.sharedModel.undo();
  expect(origin.source).toBe('restock(quantity=25)\n"😀"');
  model.dispose();
});

test('code that changed meanwhile, a locked cell and a notebook that cannot be written stay as they are', () => {
  const model = cell('a = 1');
  expect(new OriginCell(model, false).replace('a = 2', 'a = 3')).toBe(false);
  expect(new OriginCell(model, true).replace('a = 1', 'a = 3')).toBe(false);
  model.setMetadata('editable', false);
  expect(new OriginCell(model, false).replace('a = 1', 'a = 3')).toBe(false);
  expect(model.sharedModel.getSource()).toBe('a = 1');
  model.dispose();
});

test('what is equal stays, and no character is cut in two', () => {
  expect(changeOf('f(25)', 'f(30)')).toEqual({ start: 2, end: 4, text: '30' });
  expect(changeOf('"😀"', '"😁"')).toEqual({ start: 1, end: 3, text: '😁' });
  expect(changeOf('aa', 'aaa')).toEqual({ start: 2, end: 2, text: 'a' });
  expect(changeOf('same', 'same')).toEqual({ start: 4, end: 4, text: '' });
  // These two end in the same half.
  expect(changeOf('😀', '🈀')).toEqual({ start: 0, end: 2, text: '🈀' });
});

/** A notebook `orders.ipynb` with these cells and that kernel. */
class Notebook {
  readonly content;
  readonly context = { path: 'orders.ipynb', localPath: 'orders.ipynb' };
  readonly disposed = new Signal<Notebook, void>(this);
  readonly sessionContext;

  constructor(kernel: string | null, ...ids: string[]) {
    this.sessionContext = {
      kernelChanged: new Signal<Notebook, void>(this),
      session: kernel && { kernel: { id: kernel } }
    };
    this.content = {
      widgets: ids.map(id => ({ model: { id, type: 'code' } })),
      model: { readOnly: false }
    };
  }
}

/** What a page finds that has one notebook open; `widgetAdded` opens more. */
function pageWith(
  notebook: Notebook,
  widgetAdded = new Signal<unknown, Notebook>({})
): Origins {
  const open = [notebook];
  return new Origins({
    notebooks: {
      widgetAdded,
      forEach: open.forEach.bind(open),
      find: open.find.bind(open)
    },
    consoles: null,
    docManager: null,
    shell: {},
    trans
  } as unknown as IOriginsOptions);
}

function openNotebook(kernel: string | null, ...ids: string[]): Origins {
  return pageWith(new Notebook(kernel, ...ids));
}

/** A request of the cell `c1` of `orders.ipynb`. */
function asked(kernel: string | null): IApproval {
  const request = approval({});
  request.call.kernel_id = kernel;
  request.call.cell_id = 'c1';
  request.call.notebook_path = 'orders.ipynb';
  return request;
}

test('of two cells with one id nobody knows which one asked, so neither is offered', () => {
  const offered = (...ids: string[]): unknown =>
    openNotebook('k1', ...ids).cellOf(asked('k1'));
  expect(offered('c1', 'c2')).not.toBeNull();
  expect(offered('c1', 'c1')).toBeNull();
  expect(offered('c2')).toBeNull();
});

test.each([
  ['k2', 'k1'],
  [null, 'k1'],
  ['k1', null],
  [null, null]
])(
  'a cell is not offered in a notebook that kernel %s runs if kernel %s asked',
  (running, asking) => {
    expect(openNotebook(running, 'c1').cellOf(asked(asking))).toBeNull();
  }
);

test('it is told when another kernel runs a notebook that was open, or was opened later', () => {
  const [first, second] = [new Notebook('k1', 'c1'), new Notebook(null, 'c2')];
  const widgetAdded = new Signal<unknown, Notebook>({});
  let count = 0;
  pageWith(first, widgetAdded).kernelsChanged.connect(() => count++);
  first.sessionContext.kernelChanged.emit();
  expect(count).toBe(1);
  widgetAdded.emit(second);
  second.sessionContext.kernelChanged.emit();
  expect(count).toBe(2);
});

test('it is told when a notebook is closed that was open, or was opened later', () => {
  const first = new Notebook('k1');
  const second = new Notebook('k2');
  const widgetAdded = new Signal<unknown, Notebook>({});
  let count = 0;
  pageWith(first, widgetAdded).closed.connect(() => count++);
  first.disposed.emit();
  expect(count).toBe(1);
  widgetAdded.emit(second);
  second.disposed.emit();
  expect(count).toBe(2);
});

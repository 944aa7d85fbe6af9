import { YNotebook } from '@jupyter/ydoc';
import type { YCodeCell } from '@jupyter/ydoc';
import { CodeCellModel } from '@jupyterlab/cells';

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

/** What a page finds that has `orders.ipynb` open, with these cells and that kernel. */
function openNotebook(kernel: string | null, ...ids: string[]): Origins {
  const panel = {
    sessionContext: { session: kernel && { kernel: { id: kernel } } },
    content: {
      widgets: ids.map(id => ({ model: { id, type: 'code' } })),
      model: { readOnly: false }
    },
    context: { path: 'orders.ipynb', localPath: 'orders.ipynb' }
  };
  return new Origins({
    notebooks: { find: (is: (panel: unknown) => boolean) => [panel].find(is) },
    consoles: null,
    docManager: null,
    shell: {},
    trans
  } as unknown as IOriginsOptions);
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

import { YNotebook } from '@jupyter/ydoc';
import type { YCodeCell } from '@jupyter/ydoc';
import { CodeCellModel } from '@jupyterlab/cells';

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

test('of two cells with one id nobody knows which one asked, so neither is offered', () => {
  const panelWith = (...ids: string[]): Origins =>
    new Origins({
      notebooks: {
        find: (is: (panel: unknown) => boolean) =>
          [
            {
              sessionContext: { session: { kernel: { id: 'k1' } } },
              content: {
                widgets: ids.map(id => ({ model: { id, type: 'code' } })),
                model: { readOnly: false }
              },
              context: { path: 'orders.ipynb', localPath: 'orders.ipynb' }
            }
          ].find(is)
      },
      consoles: null,
      docManager: null,
      shell: {},
      trans
    } as unknown as IOriginsOptions);
  const asked = approval({});
  asked.call.kernel_id = 'k1';
  asked.call.cell_id = 'c1';
  asked.call.notebook_path = 'orders.ipynb';
  expect(panelWith('c1', 'c2').cellOf(asked)).not.toBeNull();
  expect(panelWith('c1', 'c1').cellOf(asked)).toBeNull();
  expect(panelWith('c2').cellOf(asked)).toBeNull();
});

import { CodeCellModel } from '@jupyterlab/cells';
import { NotebookModel } from '@jupyterlab/notebook/lib/model';
import { Signal } from '@lumino/signaling';

import { PromptLanguage } from '../../../src/features/threads/promptLanguage';
import type { PromptNotebook } from '../../../src/features/threads/promptLanguage';

const PROSE = 'text/x-ipythongfm';

/** A notebook, which gives new cells its language as JupyterLab's does. */
class Notebook {
  readonly model = new NotebookModel();
  readonly modelChanged = new Signal<this, void>(this);
  readonly disposed = new Signal<this, void>(this);
  codeMimetype = 'text/x-ipython';

  constructor() {
    this.model.cells.changed.connect(() => {
      this.setLanguage(this.codeMimetype);
    });
  }

  add(source: string, cell_type = 'code'): CodeCellModel {
    const { sharedModel, cells } = this.model;
    sharedModel.insertCell(cells.length, { cell_type, source });
    return cells.get(cells.length - 1) as CodeCellModel;
  }

  setLanguage(mimeType: string): void {
    this.codeMimetype = mimeType;
    for (const cell of this.model.cells) {
      if (cell.type === 'code') {
        cell.mimeType = mimeType;
      }
    }
  }
}

function watch(notebook: Notebook): PromptLanguage {
  return new PromptLanguage(notebook as unknown as PromptNotebook);
}

test.each([
  ['%%agent\nWhich sold best?', PROSE],
  ['\n%%agent --new\nDon’t stop.', PROSE],
  ['%%agents\nx', 'text/x-ipython'],
  ['%agent threads', 'text/x-ipython'],
  ['x = 1\n%%agent', 'text/x-ipython'],
  ['%%html\n<b>', 'text/x-ipython']
])('of cells, only those that ask an agent are prose: %j', (source, mime) => {
  const notebook = new Notebook();
  watch(notebook);
  expect(notebook.add(source).mimeType).toBe(mime);
});

test('a cell changes with its first line, and keeps its language when the kernel names its own', () => {
  const notebook = new Notebook();
  const cell = notebook.add('%%agen');
  const markdown = notebook.add('%%agent', 'markdown');
  const before = markdown.mimeType;
  const watching = watch(notebook);
  cell.sharedModel.setSource('%%agent\nfor me');
  expect(cell.mimeType).toBe(PROSE);
  notebook.setLanguage('text/x-python');
  expect(cell.mimeType).toBe(PROSE);
  cell.sharedModel.setSource('%%time\nfor me');
  expect([cell.mimeType, markdown.mimeType]).toEqual(['text/x-python', before]);
  watching.dispose();
  cell.sharedModel.setSource('%%agent');
  expect(cell.mimeType).toBe('text/x-python');
});

test('other languages have no such magic', () => {
  const notebook = new Notebook();
  const cell = notebook.add('%%agent');
  watch(notebook);
  notebook.setLanguage('text/x-rsrc');
  expect(cell.mimeType).toBe('text/x-rsrc');
});

import { nullTranslator } from '@jupyterlab/translation';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { Origins } from '../../src/integrations/origins';
import { approval } from '../examples';
import { noteCard } from '../../src/ui/guarded/renderedCards';

test.each([
  ['orders.ipynb', true],
  ['reports/console-1.ipynb', true],
  ['console-1-3823d80f-0c0e-4d0a-8d0a-0123456789ab', false],
  ['reports/console-12-3823d80f-0c0e-4d0a-8d0a-0123456789ab', false],
  [null, false]
])(
  'a request from %s has a place to go to, though nothing is open: %s',
  (path, hasPlace) => {
    const origins = new Origins({
      shell: {} as JupyterFrontEnd.IShell,
      docManager: null,
      notebooks: null,
      consoles: null,
      trans: nullTranslator.load('')
    });
    const { call } = approval();
    const request = approval({ call: { ...call, notebook_path: path } });
    expect(origins.hasPlace(request)).toBe(hasPlace);
  }
);

/** A node that lies between two heights of the window. */
function lying(top: number, bottom: number, ...inner: Element[]): HTMLElement {
  const node = document.createElement('div');
  const box = { top, bottom, height: bottom - top } as DOMRect;
  jest.spyOn(node, 'getBoundingClientRect').mockReturnValue(box);
  node.append(...inner);
  return node;
}

/** The card of a request, with its buttons at these heights. */
function card(top: number, bottom: number, buttons: [number, number]): Element {
  const row = lying(...buttons);
  row.className = 'jp-AgentBox-buttons';
  const node = lying(top, bottom, row, document.createElement('textarea'));
  node.className = 'jp-AgentBox-card';
  node.dataset.requestId = 'a1';
  noteCard(node);
  return node;
}

/** A tracker of one open document. */
function tracker(panel: object): object {
  const panels = [panel];
  return {
    find: panels.find.bind(panels),
    forEach: panels.forEach.bind(panels),
    widgetAdded: new Signal<object, object>({})
  };
}

const session = {
  kernelChanged: new Signal<object, void>({}),
  session: { kernel: { id: 'k1' } }
};

/** The places of a page with a notebook, or a console, that is 100 pixels high, and whose request has such a card. */
function placesWith(kind: 'notebook' | 'console', shown: Element): Origins {
  const cell = { node: lying(-50, 300, shown), model: { id: 'c1' } };
  const node = lying(0, 100, cell.node);
  node.style.overflowY = 'auto';
  document.body.replaceChildren(node);
  const common = {
    node,
    isVisible: true,
    disposed: new Signal<object, void>({}),
    sessionContext: session
  };
  const notebook = {
    ...common,
    content: { node, widgets: [cell] },
    context: { path: 'orders.ipynb' }
  };
  const isNotebook = kind === 'notebook';
  return new Origins({
    shell: {} as JupyterFrontEnd.IShell,
    docManager: null,
    notebooks: isNotebook ? (tracker(notebook) as INotebookTracker) : null,
    consoles: isNotebook ? null : (tracker(common) as IConsoleTracker),
    trans: nullTranslator.load('')
  });
}

describe.each(['notebook', 'console'] as const)('in a %s', kind => {
  test.each([
    ['all of it', card(10, 90, [60, 80]), true],
    ['its head only', card(10, 190, [160, 180]), false],
    ['half of its buttons', card(10, 190, [90, 110]), false],
    ['its buttons and not its head', card(-50, 60, [30, 50]), true],
    ['nothing of it', card(110, 190, [160, 180]), false]
  ])('a request is in view if its buttons are: %s', (_, shown, isInView) => {
    expect(placesWith(kind, shown).isInView(approval())).toBe(isInView);
  });

  test('so is one that somebody fills in, wherever its buttons are', () => {
    const shown = card(10, 190, [160, 180]);
    const places = placesWith(kind, shown);
    shown.querySelector('textarea')?.focus();
    expect(places.isInView(approval())).toBe(true);
  });
});

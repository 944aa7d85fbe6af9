import { nullTranslator } from '@jupyterlab/translation';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker } from '@jupyterlab/notebook';
import { Signal } from '@lumino/signaling';

import { Origins } from '../../src/integrations/origins';
import { CARD_MIME_TYPE } from '../../src/api/protocol';
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

describe('on the way to a card', () => {
  /** A page with a notebook whose cell has the output of this request, and nothing in it. */
  function page(requestId: string): { cell: HTMLElement; places: Origins } {
    const cell = document.createElement('div');
    document.body.replaceChildren(cell);
    const outputs = {
      toJSON: () => [
        { data: { [CARD_MIME_TYPE]: { request_ids: [requestId] } } }
      ]
    };
    const notebook = {
      id: 'n1',
      node: document.body,
      revealed: Promise.resolve(),
      disposed: new Signal<object, void>({}),
      sessionContext: session,
      context: { path: 'orders.ipynb' },
      content: {
        widgets: [{ node: cell, model: { id: 'c1', outputs } }],
        deselectAll: () => undefined,
        scrollToItem: () => Promise.resolve(),
        activate: () => undefined
      }
    };
    const shell = { activateById: () => undefined };
    return {
      cell,
      places: new Origins({
        shell: shell as unknown as JupyterFrontEnd.IShell,
        docManager: null,
        notebooks: tracker(notebook) as INotebookTracker,
        consoles: null,
        trans: nullTranslator.load('')
      })
    };
  }

  /** A card with nothing in it, which can be scrolled to. */
  function emptyCard(requestId: string): HTMLElement {
    const node = document.createElement('div');
    node.className = 'jp-AgentBox-card';
    node.dataset.requestId = requestId;
    node.tabIndex = -1;
    node.scrollIntoView = jest.fn();
    noteCard(node);
    return node;
  }

  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.runAllTimers();
    jest.useRealTimers();
  });

  test('one that is rendered late is waited for, and scrolled to', async () => {
    const request = approval();
    const { cell, places } = page(request.id);
    const going = places.reveal(request);
    await jest.advanceTimersByTimeAsync(500);
    const late = emptyCard(request.id);
    cell.append(late);
    await jest.advanceTimersByTimeAsync(500);
    expect(await going).toBe(true);
    expect(document.activeElement).toBe(late);
    expect(late.scrollIntoView).toHaveBeenCalled();
  });

  test.each([
    ['the output of another request', 'another', false],
    ['a card of another request', undefined, true]
  ])('nothing is waited for where there is %s', async (_, id, hasCard) => {
    const request = approval();
    const { cell, places } = page(id ?? request.id);
    if (hasCard) {
      cell.append(emptyCard('another'));
    }
    const going = places.reveal(request);
    await jest.advanceTimersByTimeAsync(0);
    expect(await going).toBe(false);
  });
});

import { keepInView } from '../../../src/features/approvals/keepInView';

/** A node at this place, which notes that it was scrolled to. */
function nodeAt(top: number, bottom: number): HTMLElement {
  const node = document.createElement('div');
  node.getBoundingClientRect = () => ({ top, bottom }) as DOMRect;
  node.scrollIntoView = jest.fn();
  return node;
}

/** Observe a cell at this place, and return what changes its size. */
function keep(cell: HTMLElement): () => void {
  let isObserved = true;
  let changed = (): void => undefined;
  window.ResizeObserver = class {
    constructor(callback: ResizeObserverCallback) {
      changed = () => {
        callback([], this);
      };
    }
    observe(): void {}
    unobserve(): void {}
    disconnect(): void {
      isObserved = false;
    }
  };
  keepInView(cell, nodeAt(0, 600));
  return () => {
    if (isObserved) {
      changed();
    }
  };
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test.each([
  [-300, -10, 1],
  [700, 900, 1],
  [-300, 20, 0],
  [500, 900, 0]
])(
  'a cell from %i to %i is scrolled to if none of it is in view',
  (top, bottom, times) => {
    const cell = nodeAt(top, bottom);
    keep(cell)();
    expect(cell.scrollIntoView).toHaveBeenCalledTimes(times);
  }
);

test.each(['pointerdown', 'wheel', 'keydown'])(
  'it stays where a person scrolls: %s',
  gesture => {
    const cell = nodeAt(-300, -10);
    const change = keep(cell);
    window.dispatchEvent(new Event(gesture));
    change();
    expect(cell.scrollIntoView).not.toHaveBeenCalled();
  }
);

test('after some seconds nothing scrolls', () => {
  const cell = nodeAt(-300, -10);
  const change = keep(cell);
  jest.runAllTimers();
  change();
  expect(cell.scrollIntoView).not.toHaveBeenCalled();
});

import {
  exposureOf,
  isInKernelLayout,
  OcclusionWatch
} from '../../../src/ui/guarded/occlusion';
import type { Exposure } from '../../../src/ui/guarded/occlusion';
import { noteCard } from '../../../src/ui/guarded/renderedCards';

/** What lies on top at a point; jsdom has no layout. */
let onTop: (x: number, y: number) => Element | null;
const { documentElement } = document;

function place(node: Element, box: Partial<DOMRect>): void {
  jest.spyOn(node, 'getBoundingClientRect').mockReturnValue(box as DOMRect);
}

function div(parent: Element, className = ''): HTMLElement {
  const node = document.createElement('div');
  node.className = className;
  parent.append(node);
  return node;
}

/** A card of 400 by 200 pixels in a window of 1000 by 800, on top wherever it is. */
function showCard(parent: Element = document.body): HTMLElement {
  const card = div(parent);
  place(card, { left: 100, top: 100, right: 500, bottom: 300 });
  onTop = () => card;
  return card;
}

beforeEach(() => {
  document.body.replaceChildren();
  window.dispatchEvent(new MouseEvent('pointermove')); // somebody is there
  document.elementFromPoint = (x, y) => onTop(x, y);
  for (const [side, size] of [
    ['clientWidth', 1000],
    ['clientHeight', 800]
  ] as const) {
    Object.defineProperty(documentElement, side, {
      value: size,
      configurable: true
    });
  }
});

test('a card with nothing over it is exposed, and so are its own parts', () => {
  const card = showCard();
  const part = div(card);
  expect(exposureOf(card)).toBe('exposed');
  onTop = () => part;
  expect(exposureOf(card)).toBe('exposed');
});

test('something small over any part of it covers it, also what lets a pointer through', () => {
  const card = showCard();
  const patch = div(document.body);
  const classes: string[] = [];
  onTop = (x, y) => {
    classes.push(documentElement.className);
    return x > 300 && x < 309 && y > 200 && y < 212 ? patch : card;
  };
  expect(exposureOf(card)).toBe('covered');
  // Under this class, the style sheet has `pointer-events: auto` for everything.
  expect(new Set(classes)).toEqual(new Set(['jp-AgentBox-hitTest']));
  expect(documentElement.className).toBe('');
});

test.each([
  ['a letter', 7, 12],
  ['a line through a text', 24, 3],
  ['a line down', 3, 24]
])('%s of %i by %i pixels covers a card wherever it is', (_, width, height) => {
  const card = showCard();
  const patch = div(document.body);
  for (let left = 105; left < 145; left++) {
    for (let top = 105; top < 145; top++) {
      onTop = (x, y) =>
        x >= left && x < left + width && y >= top && y < top + height
          ? patch
          : card;
      expect([left, top, exposureOf(card)]).toEqual([left, top, 'covered']);
    }
  }
});

test('what is thin is found while the card is looked at, and is not forgotten', () => {
  jest.useFakeTimers();
  const card = showCard();
  const heard: Exposure[] = [];
  const watch = new OcclusionWatch(card, exposure => heard.push(exposure));
  const line = div(document.body);
  jest.advanceTimersByTime(10);
  expect(watch.exposure).toBe('exposed');
  onTop = (x, y) => (y >= 200 && y < 203 && x >= 200 ? line : card);
  jest.advanceTimersByTime(500);
  expect(watch.exposure).toBe('covered');
  jest.advanceTimersByTime(5000);
  expect(watch.look()).toBe('covered');
  expect(heard).toEqual(['exposed', 'covered']);
  watch.dispose();
  jest.useRealTimers();
});

test('a look at a card that fills a large screen has an end', () => {
  const card = div(document.body);
  const [width, height] = [3840, 2160];
  for (const [side, size] of [
    ['clientWidth', width],
    ['clientHeight', height]
  ] as const) {
    Object.defineProperty(documentElement, side, {
      value: size,
      configurable: true
    });
  }
  place(card, { left: 0, top: 0, right: width, bottom: height });
  let points = 0;
  onTop = () => {
    points++;
    return card;
  };
  expect(exposureOf(card, [0])).toBe('exposed');
  expect(points).toBeLessThan(7000);
});

test.each([
  ['a table', true, 'exposed'],
  ['something that only looks like a table', false, 'covered']
])('a part of a card that lies under the bar of %s', (_, isTable, expected) => {
  const table = div(document.body, 'jp-AgentBox-card jp-AgentBox-batch');
  if (isTable) {
    noteCard(table);
  }
  place(table, { left: 0, top: 0, right: 600, bottom: 800 });
  const card = showCard(table);
  const bar = div(table, 'jp-AgentBox-batchBar');
  place(bar, { left: 0, top: 250, right: 600, bottom: 310 });
  onTop = (_, y) => (y < 250 ? card : bar);
  expect(exposureOf(card)).toBe(expected);
  const patch = div(document.body);
  onTop = (_, y) => (y < 200 ? card : y < 250 ? patch : bar);
  expect(exposureOf(card)).toBe('covered');
  if (isTable) {
    place(bar, { left: 0, top: 90, right: 600, bottom: 310 });
    expect(exposureOf(card)).toBe('hidden');
    onTop = () => table;
    expect(exposureOf(table)).toBe('exposed');
  }
});

test.each([
  ['ends above the end of the card', { bottom: 290 }, ''],
  ['leaves a part of the card beside it', { left: 300 }, ''],
  ['lets a pointer through', {}, 'none']
])(
  'a bar of a table that %s is no edge of the view',
  (_, changed, pointerEvents) => {
    const table = div(document.body, 'jp-AgentBox-card jp-AgentBox-batch');
    noteCard(table);
    place(table, { left: 0, top: 0, right: 600, bottom: 800 });
    const card = showCard(table);
    const bar = div(table, 'jp-AgentBox-batchBar');
    place(bar, { left: 0, top: 250, right: 600, bottom: 310, ...changed });
    bar.style.pointerEvents = pointerEvents;
    onTop = (_, y) => (y < 250 ? card : bar);
    expect(exposureOf(card)).toBe('covered');
  }
);

test('what lies over a bar, or over what a bar does not cover, covers the card under it', () => {
  const table = div(document.body, 'jp-AgentBox-card jp-AgentBox-batch');
  noteCard(table);
  place(table, { left: 0, top: 0, right: 600, bottom: 800 });
  const card = showCard(table);
  const bar = div(table, 'jp-AgentBox-batchBar');
  place(bar, { left: 0, top: 250, right: 600, bottom: 310 });
  const patch = div(document.body);
  onTop = (x, y) => (y < 250 ? card : x < 400 ? bar : patch);
  expect(exposureOf(card)).toBe('covered');
  onTop = (_, y) => (y < 280 ? card : bar);
  expect(exposureOf(card)).toBe('covered');
});

test('a part that is scrolled away may be covered, and a card of which nothing is in view is hidden', () => {
  const scroller = div(document.body);
  scroller.style.overflowY = 'auto';
  place(scroller, { left: 0, top: 0, right: 1000, bottom: 200 });
  Object.defineProperty(scroller, 'clientWidth', { value: 1000 });
  Object.defineProperty(scroller, 'clientHeight', { value: 200 });
  const card = showCard(scroller);
  const bar = div(document.body);
  onTop = (_, y) => (y < 200 ? card : bar);
  expect(exposureOf(card)).toBe('exposed');
  place(card, { left: 100, top: 300, right: 500, bottom: 500 });
  expect(exposureOf(card)).toBe('hidden');
});

test.each([
  ['opacity', '0.5'],
  ['filter', 'blur(3px)'],
  ['clip-path', 'inset(10px)'],
  ['mix-blend-mode', 'difference'],
  ['visibility', 'hidden'],
  ['transform', 'matrix(0.1, 0, 0, 0.1, 0, 0)']
])('a card in something with %s: %s is covered', (property, value) => {
  const box = div(document.body);
  const card = showCard(box);
  expect(exposureOf(card)).toBe('exposed');
  box.style.setProperty(property, value);
  // jsdom does not compute all of them.
  const computed = getComputedStyle(box).getPropertyValue(property) === value;
  expect(exposureOf(card)).toBe(computed ? 'covered' : 'exposed');
});

test('an output of a cell is not laid out by a kernel; a widget, and an output in a widget, are', () => {
  const cell = div(document.body, 'jp-Cell');
  const area = div(cell, 'jp-OutputArea');
  expect(isInKernelLayout(div(area, 'jp-OutputArea-output'))).toBe(false);
  const widget = div(area, 'jupyter-widgets widget-box');
  expect(isInKernelLayout(widget)).toBe(true);
  // A kernel can take classes away from its widget, but not from the output area in it.
  widget.className = 'jp-Cell';
  expect(isInKernelLayout(div(div(widget, 'jp-OutputArea')))).toBe(true);
  expect(isInKernelLayout(div(document.body, 'jp-AgentBox-panel'))).toBe(false);
});

test('a watch looks again and again, and says what changed', () => {
  jest.useFakeTimers();
  const card = showCard();
  const heard: Exposure[] = [];
  const watch = new OcclusionWatch(card, exposure => heard.push(exposure));
  const cover = div(document.body);
  jest.advanceTimersByTime(10);
  onTop = () => cover;
  jest.advanceTimersByTime(300);
  onTop = () => card;
  expect(watch.look()).toBe('exposed');
  watch.dispose();
  onTop = () => cover;
  jest.advanceTimersByTime(300);
  expect(heard).toEqual(['exposed', 'covered', 'exposed']);
  jest.useRealTimers();
});

/** A browser that watches by itself, and says what it is told to say. */
function watchfulBrowser(): {
  options: unknown[];
  /** How often it was asked to begin anew. */
  asked: jest.Mock;
  /** Say whether a node is visible, and how many of its 200 pixels are in view. */
  say: (isVisible: boolean, height?: number) => void;
} {
  let report: IntersectionObserverCallback = jest.fn();
  const Entry = jest.fn();
  Entry.prototype.isVisible = false;
  const asked = jest.fn();
  const observer = {
    observe: jest.fn(),
    unobserve: asked,
    disconnect: jest.fn()
  };
  const options: unknown[] = [];
  Object.assign(globalThis, {
    IntersectionObserverEntry: Entry,
    IntersectionObserver: function (
      callback: IntersectionObserverCallback,
      init: unknown
    ) {
      report = callback;
      options.push(init);
      return { ...observer, takeRecords: () => [] };
    }
  });
  const say = (isVisible: boolean, height = 200): void => {
    const boundingClientRect = { width: 400, height: 200 };
    const intersectionRect = { width: 400, height };
    const rects = { boundingClientRect, intersectionRect };
    const entry = { isIntersecting: true, isVisible, ...rects };
    report([entry as never], observer as never);
  };
  return { options, asked, say };
}

afterEach(() => {
  Reflect.deleteProperty(globalThis, 'IntersectionObserver');
  Reflect.deleteProperty(globalThis, 'IntersectionObserverEntry');
});

test('a browser that watches by itself is believed when it sees more than a hit test', () => {
  const { options, say } = watchfulBrowser();
  const card = showCard();
  const watch = new OcclusionWatch(card, jest.fn());
  expect(watch.exposure).toBe('hidden');
  say(true);
  expect(watch.exposure).toBe('exposed');
  say(false);
  expect([watch.exposure, watch.look()]).toEqual(['covered', 'covered']);
  // It also counts what lies over a part that is out of view, here below the window's edge; hit tests do not.
  place(card, { left: 100, top: 700, right: 500, bottom: 1000 });
  expect(watch.look()).toBe('exposed');
  const cover = div(document.body);
  onTop = () => cover;
  expect(watch.look()).toBe('covered');
  expect(options).toEqual([{ trackVisibility: true, delay: 100 }]);
  watch.dispose();
});

test('a card that comes into view in steps is exposed, also if the browser says nothing more', () => {
  jest.useFakeTimers();
  const { say } = watchfulBrowser();
  const card = showCard();
  const watch = new OcclusionWatch(card, jest.fn());
  place(card, { left: 100, top: 796, right: 500, bottom: 996 });
  say(false);
  expect(watch.exposure).toBe('hidden');
  place(card, { left: 100, top: 700, right: 500, bottom: 900 });
  jest.advanceTimersByTime(300);
  expect(watch.exposure).toBe('exposed');
  watch.dispose();
  jest.useRealTimers();
});

test('a card that was partly out of view and is wholly in view counts at once, until the browser has looked anew', () => {
  jest.useFakeTimers();
  const { asked, say } = watchfulBrowser();
  const card = showCard();
  const watch = new OcclusionWatch(card, jest.fn());
  place(card, { left: 100, top: 700, right: 500, bottom: 900 });
  say(false, 100);
  jest.advanceTimersByTime(10);
  expect(watch.exposure).toBe('exposed');
  place(card, { left: 100, top: 100, right: 500, bottom: 300 });
  expect([watch.look(), watch.look()]).toEqual(['exposed', 'exposed']);
  expect(asked).toHaveBeenCalledTimes(1);
  // What only the browser sees, it says of the whole card.
  say(false);
  expect([watch.exposure, watch.look()]).toEqual(['covered', 'covered']);
  say(true);
  expect(watch.look()).toBe('exposed');
  watch.dispose();
  jest.useRealTimers();
});

test('a card next to the edge of what it scrolls in is in the shadow of a toolbar, and only hit tests tell', () => {
  const { say } = watchfulBrowser();
  const scroller = div(document.body);
  scroller.style.overflowY = 'auto';
  place(scroller, { left: 0, top: 98, right: 1000, bottom: 800 });
  Object.defineProperty(scroller, 'clientWidth', { value: 1000 });
  Object.defineProperty(scroller, 'clientHeight', { value: 702 });
  const card = showCard(scroller);
  const watch = new OcclusionWatch(card, jest.fn());
  say(false);
  expect(watch.exposure).toBe('covered');
  // Now there is more than fits, and the card is scrolled to the edge.
  Object.defineProperty(scroller, 'scrollHeight', { value: 2000 });
  expect(watch.look()).toBe('exposed');
  const cover = div(document.body);
  onTop = () => cover;
  expect(watch.look()).toBe('covered');
  onTop = () => card;
  place(card, { left: 100, top: 110, right: 500, bottom: 310 });
  expect(watch.look()).toBe('covered');
  watch.dispose();
});

test('while nobody is near, what the browser says of a node that is partly out of view costs no hit test', () => {
  jest.useFakeTimers();
  window.dispatchEvent(new MouseEvent('pointermove'));
  const { say } = watchfulBrowser();
  const card = showCard();
  place(card, { left: 100, top: 700, right: 500, bottom: 900 });
  const watch = new OcclusionWatch(card, jest.fn());
  say(false, 100);
  jest.advanceTimersByTime(4000);
  expect(watch.exposure).toBe('exposed');
  const looks = jest.fn(() => div(document.body));
  onTop = looks;
  say(false, 50);
  say(false, 100);
  expect(looks).not.toHaveBeenCalled();
  window.dispatchEvent(new MouseEvent('pointermove'));
  expect(watch.exposure).toBe('hidden');
  jest.advanceTimersByTime(100);
  expect(watch.exposure).toBe('covered');
  watch.dispose();
  jest.useRealTimers();
});

test('a node that comes into view in part while nobody is near is looked at when it has come to rest', () => {
  jest.useFakeTimers();
  window.dispatchEvent(new MouseEvent('pointermove'));
  jest.advanceTimersByTime(4000);
  const { say } = watchfulBrowser();
  const card = showCard();
  place(card, { left: 100, top: 700, right: 500, bottom: 900 });
  const looks = jest.fn(() => card);
  onTop = looks;
  const watch = new OcclusionWatch(card, jest.fn());
  for (let round = 0; round < 20; round++) {
    say(false, 50 + round);
    jest.advanceTimersByTime(500);
  }
  expect(looks).not.toHaveBeenCalled();
  expect([watch.exposure, watch.look()]).toEqual(['hidden', 'hidden']);
  jest.advanceTimersByTime(2000);
  expect(watch.exposure).toBe('exposed');
  watch.dispose();
  jest.useRealTimers();
});

test('a node is exposed when all of its points were tested, in steps that begin anew when the browser reports', () => {
  jest.useFakeTimers();
  const { say } = watchfulBrowser();
  const card = showCard();
  place(card, { left: 100, top: 700, right: 500, bottom: 900 });
  const watch = new OcclusionWatch(card, jest.fn());
  // A line that only the points of the first step meet comes after it.
  const line = div(document.body);
  const first = new Set<string>();
  onTop = (x, y) => {
    first.add(`${x} ${y}`);
    return card;
  };
  say(false, 100);
  expect(watch.exposure).toBe('hidden');
  onTop = (x, y) => (first.has(`${x} ${y}`) ? line : card);
  jest.advanceTimersByTime(0);
  say(false, 99);
  expect(watch.exposure).toBe('covered');
  watch.dispose();
  jest.useRealTimers();
});

describe('while nobody is near a node', () => {
  let looks: number;
  let isCovered: boolean;
  let found: Exposure[];
  let watch: OcclusionWatch;

  beforeEach(() => {
    jest.useFakeTimers();
    window.dispatchEvent(new MouseEvent('pointermove'));
    const card = showCard();
    const patch = div(document.body);
    [looks, isCovered, found] = [0, false, []];
    onTop = () => {
      looks += 1;
      return isCovered ? patch : card;
    };
    watch = new OcclusionWatch(card, exposure => found.push(exposure));
    jest.advanceTimersByTime(4000);
    looks = 0;
  });

  afterEach(() => {
    watch.dispose();
    jest.useRealTimers();
  });

  test('nothing looks what lies over it', () => {
    jest.advanceTimersByTime(60_000);
    expect([looks, found]).toEqual([0, ['exposed']]);
  });

  test('it is not known what does, until somebody comes', () => {
    isCovered = true;
    jest.advanceTimersByTime(5000);
    isCovered = false;
    window.dispatchEvent(new MouseEvent('pointermove'));
    expect(found).toEqual(['exposed', 'hidden']);
    jest.advanceTimersByTime(100);
    expect(found).toEqual(['exposed', 'hidden', 'exposed']);
    isCovered = true;
    jest.advanceTimersByTime(500);
    expect(found[found.length - 1]).toBe('covered');
  });

  test('a press that nothing led to does not find it exposed', () => {
    expect(watch.look()).toBe('hidden');
    window.dispatchEvent(new MouseEvent('pointerdown'));
    jest.advanceTimersByTime(100);
    expect(watch.look()).toBe('exposed');
  });
});

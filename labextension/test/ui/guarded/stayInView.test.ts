import { stayInView } from '../../../src/ui/guarded/stayInView';

/** Milliseconds in which a card is looked at. */
const LONG = 1000;

let top: number;
let card: HTMLElement;

beforeEach(() => {
  jest.useFakeTimers();
  document.body.innerHTML = `
    <div class="jp-Notebook"><div class="jp-Cell" tabindex="-1"></div><div id="card" tabindex="-1"></div></div>
    <input />`;
  card = document.getElementById('card') as HTMLElement;
  top = 0;
  card.getBoundingClientRect = () => ({ top, height: 100 }) as DOMRect;
  card.scrollIntoView = jest.fn();
});

afterEach(() => {
  jest.runAllTimers();
  jest.useRealTimers();
});

function move(): void {
  top += 10;
  jest.advanceTimersByTime(LONG);
}

function focus(selector: string): void {
  document.querySelector<HTMLElement>(selector)?.focus();
  jest.advanceTimersByTime(LONG);
}

test('a card is scrolled to at once, and again as often as it moves', () => {
  stayInView(card);
  expect(card.scrollIntoView).toHaveBeenCalledTimes(1);
  jest.advanceTimersByTime(LONG);
  expect(card.scrollIntoView).toHaveBeenCalledTimes(1);
  move();
  move();
  expect(card.scrollIntoView).toHaveBeenCalledTimes(3);
});

test('not once it has stayed in its place for a while', () => {
  stayInView(card);
  jest.advanceTimersByTime(4 * LONG);
  move();
  expect(card.scrollIntoView).toHaveBeenCalledTimes(1);
});

test('nor for long in any case', () => {
  stayInView(card);
  for (let second = 0; second < 60; second++) {
    move();
  }
  expect(jest.mocked(card.scrollIntoView).mock.calls.length).toBeLessThan(12);
});

test.each(['pointerdown', 'wheel', 'keydown', 'touchstart'])(
  'nor after a person did something: %s',
  deed => {
    stayInView(card, true);
    window.dispatchEvent(new Event(deed));
    move();
    focus('.jp-Cell');
    expect(card.scrollIntoView).toHaveBeenCalledTimes(1);
    expect(document.activeElement).not.toBe(card);
  }
);

test('a card gets the focus back that its notebook takes, and no other', () => {
  card.focus();
  stayInView(card, true);
  focus('.jp-Cell');
  expect(document.activeElement).toBe(card);
  focus('input');
  expect(document.activeElement).toBe(document.querySelector('input'));
});

test('a card that is only scrolled to does not', () => {
  stayInView(card);
  focus('.jp-Cell');
  expect(document.activeElement).not.toBe(card);
});

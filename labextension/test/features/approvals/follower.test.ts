import { Follower } from '../../../src/features/approvals/follower';
import { GUARD_TIME } from '../../../src/ui/guarded/guardTime';
import { KeyGuard, acceptEarlyLetter } from '../../../src/ui/guarded/keyGuard';
import { byPerson } from '../../person';
import { addSizes, removeSizes, tellSizes } from '../../sizes';

/** Milliseconds in which a letter too many is kept from a notebook. */
const LATE = 1000;

let follower: Follower;
let heard: string[];

const onKeyDown = (event: Event): void => {
  heard.push((event as KeyboardEvent).key);
};

beforeAll(() => {
  follower = new Follower();
  document.addEventListener('keydown', onKeyDown);
});

beforeEach(() => {
  jest.useFakeTimers();
  window.dispatchEvent(new Event('pointerdown'));
  heard = [];
  document.body.innerHTML = `
    <div class="jp-Notebook">
      <div class="jp-Cell" tabindex="-1"><div class="jp-AgentBox-card" tabindex="-1"></div></div>
      <div class="jp-Cell" tabindex="-1"><div class="cm-content" tabindex="-1"></div></div>
      <input />
    </div>`;
});

afterEach(() => {
  jest.useRealTimers();
});

function find(selector: string): HTMLElement {
  return document.querySelector(selector) as HTMLElement;
}

function type(key: string, init: KeyboardEventInit = {}): void {
  byPerson(document.activeElement as Element, keydown(key, init));
}

function keydown(key: string, init: KeyboardEventInit = {}): KeyboardEvent {
  const options = { key, bubbles: true, cancelable: true, ...init };
  return new KeyboardEvent('keydown', options);
}

/** Answer on the card by a key, after which the notebook has the focus, in this mode. */
function answer(key: string, mode: 'command' | 'edit', from?: string): void {
  find('.jp-AgentBox-card').focus();
  type(key);
  find('.jp-Notebook').classList.add(`jp-mod-${mode}Mode`);
  find(mode === 'edit' ? '.cm-content' : '.jp-Cell').focus();
  follower.follow(find(from ?? '.jp-AgentBox-card'));
  heard = [];
}

test.each(['.jp-AgentBox-card', 'body'])(
  'no letter of a card is a command of the notebook just after an answer by letter (%s)',
  from => {
    answer('a', 'command', from);
    for (const key of ['a', 'r', 'j']) {
      type(key);
    }
    expect(heard).toEqual([]);
    jest.advanceTimersByTime(LATE);
    type('a');
    expect(heard).toEqual(['a']);
  }
);

test('nor is one on the card that was answered', () => {
  answer('a', 'command');
  find('.jp-AgentBox-card').focus();
  type('a');
  expect(heard).toEqual([]);
});

test('only the same letter is kept from an editor', () => {
  answer('a', 'edit');
  type('a');
  type('e');
  type('a');
  expect(heard).toEqual(['e', 'a']);
});

test.each([
  ['another key', () => type('Escape')],
  [
    'a press of the pointer',
    () => window.dispatchEvent(new Event('pointerdown'))
  ]
])('after %s, letters mean what they say', (_, act) => {
  answer('a', 'command');
  act();
  type('a');
  expect(heard).toContain('a');
});

test('after an answer by another key, and in a field, letters mean what they say', () => {
  answer('Enter', 'command');
  type('a');
  expect(heard).toEqual(['a']);
  answer('a', 'command');
  find('input').focus();
  type('a');
  expect(heard).toEqual(['a']);
});

test('the key of a script makes no answer by the pointer one by letter', () => {
  find('.jp-Notebook').classList.add('jp-mod-commandMode');
  find('.jp-Cell').focus();
  document.body.dispatchEvent(keydown('a'));
  follower.follow(find('.jp-AgentBox-card'));
  heard = [];
  type('a');
  expect(heard).toEqual(['a']);
});

test.each([
  ['answer', true],
  ['letter that was typed elsewhere', false]
])('letters count on the next card after a slow %s: %s', (_, isForCard) => {
  addSizes();
  answer('a', 'command');
  if (isForCard) {
    acceptEarlyLetter(); // as the card does
  }
  jest.advanceTimersByTime(3000);
  follower.follow(find('.jp-AgentBox-card'));
  find('.jp-Cell').insertAdjacentHTML(
    'beforeend',
    `<div class="jp-AgentBox-output">
         <div class="jp-AgentBox-card" data-status="pending" id="next" tabindex="-1"></div>
       </div>`
  );
  const next = find('#next');
  const guard = new KeyGuard();
  const watch = guard.watch(next, () => undefined);
  tellSizes();
  expect(document.activeElement).toBe(next);
  jest.advanceTimersByTime(GUARD_TIME);
  expect(guard.isReady).toBe(isForCard);
  watch.dispose();
  removeSizes();
});

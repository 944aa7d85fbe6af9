import { RunFollower } from '../../../src/features/approvals/runFollower';
import { byPerson } from '../../person';
import { addSizes, removeSizes, tellSizes } from '../../sizes';

let scrolled: string[];
let follower: RunFollower;

beforeEach(() => {
  addSizes();
  scrolled = [];
  Element.prototype.scrollIntoView = function (this: Element): void {
    scrolled.push(this.id);
  };
  document.body.innerHTML = `
    <div class="jp-Cell"><div class="jp-AgentBox-output"></div></div>
    <div class="jp-Cell"><div class="jp-AgentBox-output"></div></div>`;
  follower = new RunFollower();
});

afterEach(() => {
  removeSizes();
});

const cells = (): HTMLElement[] => [
  ...document.querySelectorAll<HTMLElement>('.jp-Cell')
];

function act(): void {
  byPerson(document.body, new Event('wheel', { bubbles: true }));
}

/** Requests appear under a cell. */
function ask(cell: HTMLElement, ...ids: string[]): void {
  const output = cell.querySelector('.jp-AgentBox-output') as HTMLElement;
  output.innerHTML = ids
    .map(
      id => `<div class="jp-AgentBox-card" data-status="pending" id="${id}">`
    )
    .join('');
  tellSizes();
}

test('the first request of a cell that a person has just run is scrolled to', () => {
  act();
  follower.follow(cells()[0]);
  ask(cells()[0], 'first', 'second');
  expect(scrolled).toEqual(['first']);
});

test('of several cells that were run at once, the one that asks is scrolled to', () => {
  act();
  cells().forEach(cell => {
    follower.follow(cell);
  });
  ask(cells()[1], 'later');
  expect(scrolled).toEqual(['later']);
});

test('nothing moves after the person did something else', () => {
  act();
  follower.follow(cells()[0]);
  act();
  ask(cells()[0], 'first');
  expect(scrolled).toEqual([]);
});

test('nothing moves for a cell that a program runs', () => {
  jest.useFakeTimers();
  act();
  jest.advanceTimersByTime(1001);
  follower.follow(cells()[0]);
  jest.useRealTimers();
  ask(cells()[0], 'first');
  expect(scrolled).toEqual([]);
});

test('nothing moves for a cell that a program runs while the person types', () => {
  const key = new KeyboardEvent('keydown', { key: 'x', bubbles: true });
  byPerson(document.body, key);
  follower.follow(cells()[0]);
  ask(cells()[0], 'first');
  expect(scrolled).toEqual([]);
});

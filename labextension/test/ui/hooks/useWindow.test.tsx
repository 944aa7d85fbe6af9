import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { ITEM_KEY, useWindow } from '../../../src/ui/hooks/useWindow';
import { addSizes, removeSizes, tellSizes } from '../../sizes';

/** What a browser would measure: a box of 500 pixels that scrolls, and items of 20. */
const VIEW = 500;
const ITEM = 20;

beforeEach(() => {
  addSizes();
  jest.spyOn(window, 'requestAnimationFrame').mockImplementation(callback => {
    callback(0);
    return 0;
  });
  jest.spyOn(Element.prototype, 'clientHeight', 'get').mockReturnValue(VIEW);
  jest
    .spyOn(Element.prototype, 'getBoundingClientRect')
    .mockImplementation(function (this: Element) {
      const isList = this.getAttribute('role') === 'list';
      const top = isList ? -(this.parentElement?.scrollTop ?? 0) : 0;
      return { top, height: ITEM } as DOMRect;
    });
});

afterEach(() => {
  jest.restoreAllMocks();
  removeSizes();
});

interface IListProps {
  keys: readonly string[];
  pinned?: readonly string[];
}

function List({ keys, pinned = [] }: IListProps): JSX.Element {
  const list = React.useRef<HTMLDivElement>(null);
  const parts = useWindow(list, keys, new Set(pinned));
  return (
    <div data-testid="box" style={{ overflowY: 'auto' }}>
      <div ref={list} role="list">
        {parts.map(part =>
          'height' in part ? (
            <div
              key={`gap ${part.gapBefore}`}
              role="presentation"
              style={{ height: part.height }}
            />
          ) : (
            <div
              key={keys[part.index]}
              role="listitem"
              tabIndex={-1}
              {...{ [ITEM_KEY]: keys[part.index] }}
            >
              {keys[part.index]}
            </div>
          )
        )}
      </div>
    </div>
  );
}

function names(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, index) => `n${from + index}`);
}

function shown(): string[] {
  return [...document.querySelectorAll(`[${ITEM_KEY}]`)].map(
    item => item.textContent ?? ''
  );
}

function scrollTo(top: number): void {
  const box = screen.getByTestId('box');
  box.scrollTop = top;
  fireEvent.scroll(box);
  tellSizes();
}

/** How high everything in the list is together. */
function height(): number {
  const gaps = [
    ...document.querySelectorAll<HTMLElement>("[role='presentation']")
  ].map(gap => Number.parseFloat(gap.style.height));
  return shown().length * ITEM + gaps.reduce((sum, each) => sum + each, 0);
}

test('a list of a hundred is there as a whole', () => {
  render(<List keys={names(100)} />);
  scrollTo(1000);
  expect(shown()).toEqual(names(100));
});

test('of a longer list there is what is in view or near it, and room for the rest', () => {
  render(<List keys={names(1000)} />);
  tellSizes();
  expect(shown().slice(0, 40)).toEqual(names(40));
  scrollTo(500 * ITEM);
  expect(shown()).toEqual(expect.arrayContaining(names(40, 493)));
  expect(shown().length).toBeLessThan(120);
  expect(height()).toBe(1000 * ITEM);
  scrollTo(1000 * ITEM - VIEW);
  expect(shown()).toEqual(expect.arrayContaining(names(40, 960)));
});

test('what a key leads to is there wherever it is, and so is what has the focus', () => {
  render(<List keys={names(1000)} pinned={['n0', 'n700']} />);
  screen.getByText('n10').focus();
  scrollTo(300 * ITEM);
  expect(shown().slice(0, 3)).toEqual(['n0', 'n10', 'n260']);
  expect(shown().at(-1)).toBe('n700');
  expect(document.activeElement).toBe(screen.getByText('n10'));
  expect(height()).toBe(1000 * ITEM);
});

test('an item keeps its node when those before it go', () => {
  const keys = names(1000);
  const { rerender } = render(<List keys={keys} />);
  scrollTo(500 * ITEM);
  const node = screen.getByText('n510');
  rerender(<List keys={keys.slice(5)} />);
  expect(screen.getByText('n510')).toBe(node);
});

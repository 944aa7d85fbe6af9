import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { useSeenPart } from '../../../src/ui/hooks/useSeenPart';
import { addSizes, removeSizes, tellSizes } from '../../sizes';

/** What a browser would measure of the box: it shows 100 of 400 pixels. */
let view = 100;
const CONTENT = 400;

beforeEach(() => {
  view = 100;
  addSizes();
  const { prototype } = Element;
  jest.spyOn(prototype, 'clientHeight', 'get').mockImplementation(() => view);
  jest
    .spyOn(prototype, 'scrollHeight', 'get')
    .mockImplementation(() => (view === 0 ? 0 : CONTENT));
});

afterEach(() => {
  jest.restoreAllMocks();
  removeSizes();
});

interface IBoxProps {
  text?: string;
  isFilled?: boolean;
  isOpen?: boolean;
}

function Box({ text = 'a', isFilled = true, isOpen = false }: IBoxProps) {
  const box = React.useRef<HTMLDivElement>(null);
  const [part, onScroll] = useSeenPart(box, { text, isFilled, isOpen });
  return (
    <div ref={box} data-testid="box" onScroll={onScroll}>
      {part}
    </div>
  );
}

const part = (): string | null => screen.getByTestId('box').textContent;

function scrollTo(top: number): void {
  screen.getByTestId('box').scrollTop = top;
  fireEvent.scroll(screen.getByTestId('box'));
}

test('what was scrolled into view stays seen', () => {
  render(<Box />);
  expect(part()).toBe('0.25');
  scrollTo(100);
  expect(part()).toBe('0.5');
  scrollTo(0);
  expect(part()).toBe('0.5');
  scrollTo(299);
  expect(part()).toBe('1');
});

test('nothing of a hidden box is in view, until it is shown', () => {
  view = 0;
  render(<Box />);
  expect(part()).toBe('0');
  view = 100;
  tellSizes();
  expect(part()).toBe('0.25');
});

test('a box that is open in a hidden tab is not in view either', () => {
  view = 0;
  render(<Box isOpen />);
  expect(part()).toBe('0');
  view = 100;
  tellSizes();
  expect(part()).toBe('1');
});

test('nothing is in view before the box is filled', () => {
  view = CONTENT;
  const { rerender } = render(<Box isFilled={false} />);
  expect(part()).toBe('0');
  rerender(<Box />);
  expect(part()).toBe('1');
});

test('of another text nothing was in view', () => {
  const { rerender } = render(<Box />);
  scrollTo(300);
  expect(part()).toBe('1');
  scrollTo(0);
  rerender(<Box text="b" />);
  expect(part()).toBe('0.25');
});

test('a box that is wider than its view is seen when it was scrolled to its end in both directions', () => {
  const width = (name: 'clientWidth' | 'scrollWidth', value: number): void => {
    jest.spyOn(Element.prototype, name, 'get').mockReturnValue(value);
  };
  width('clientWidth', 100);
  width('scrollWidth', 200);
  render(<Box />);
  expect(part()).toBe('0.125');
  scrollTo(300);
  expect(part()).toBe('0.5');
  screen.getByTestId('box').scrollLeft = 100;
  scrollTo(0);
  expect(part()).toBe('0.625');
  scrollTo(300);
  expect(part()).toBe('1');
});

import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { useKeptWaiting } from '../../../src/ui/card/useKeptWaiting';
import { approval } from '../../examples';

const EXPIRES = Date.parse('2026-01-01T00:10:00Z');

/** The form of a request, and the calls that extend its time. */
function form(secondsLeft: number): jest.Mock {
  const onExtend = jest.fn(() => Promise.resolve(true));
  const options = {
    approval: approval({ expires_at: new Date(EXPIRES).toISOString() }),
    now: () => EXPIRES - 1000 * secondsLeft,
    onExtend
  };
  const Form = (): JSX.Element => {
    const node = React.useRef<HTMLDivElement>(null);
    useKeptWaiting(node, options);
    return (
      <div ref={node}>
        <input />
      </div>
    );
  };
  render(<Form />);
  return onExtend;
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test('a form that nobody is in has no timer', () => {
  const onExtend = form(100);
  expect(jest.getTimerCount()).toBe(0);
  fireEvent.input(screen.getByRole('textbox'));
  fireEvent.pointerDown(screen.getByRole('textbox'));
  expect(jest.getTimerCount()).toBe(1);
  jest.advanceTimersByTime(30_000);
  expect(onExtend).toHaveBeenCalled();
  onExtend.mockClear();
  jest.advanceTimersByTime(600_000);
  expect(jest.getTimerCount()).toBe(0);
  const calls = onExtend.mock.calls.length;
  jest.advanceTimersByTime(600_000);
  expect(onExtend).toHaveBeenCalledTimes(calls);
});

test('who begins to fill in a form in the last seconds gets more time at once', () => {
  const onExtend = form(3);
  fireEvent.input(screen.getByRole('textbox'));
  expect(onExtend).toHaveBeenCalledTimes(1);
});

test('the time of a form that somebody is in is not extended early', () => {
  const onExtend = form(121);
  fireEvent.keyDown(screen.getByRole('textbox'));
  jest.advanceTimersByTime(30_000);
  expect(onExtend).not.toHaveBeenCalled();
});

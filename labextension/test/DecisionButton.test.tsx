import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { DecisionButton, GUARD_TIME } from '../src/components/DecisionButton';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

function isReady(): boolean {
  return screen.getByRole('button').getAttribute('aria-disabled') === 'false';
}

/** The place of a button, this far from the top. */
function placeAt(top: number): DOMRect {
  return { left: 0, right: 80, top, bottom: top + 20 } as DOMRect;
}

test('a new button is not ready before a person could have seen it', () => {
  render(
    <DecisionButton kind="allow" label="Allow once" onActivate={jest.fn()} />
  );
  expect(isReady()).toBe(false);
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME);
  });
  expect(isReady()).toBe(true);
});

test('a script cannot press it', () => {
  const onActivate = jest.fn();
  render(
    <DecisionButton kind="allow" label="Allow once" onActivate={onActivate} />
  );
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME);
  });
  fireEvent.click(screen.getByRole('button', { name: 'Allow once' }));
  expect(onActivate).not.toHaveBeenCalled();
});

test('a button that comes under a resting pointer is not ready for a while', () => {
  render(
    <DecisionButton kind="allow" label="Allow once" onActivate={jest.fn()} />
  );
  const button = screen.getByRole('button');
  const place = jest.spyOn(button, 'getBoundingClientRect');
  place.mockReturnValue(placeAt(100));
  fireEvent(
    document.body,
    new MouseEvent('pointermove', { clientX: 10, clientY: 10, bubbles: true })
  );
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME + 200);
  });
  expect(isReady()).toBe(true);
  place.mockReturnValue(placeAt(0));
  act(() => {
    jest.advanceTimersByTime(150);
  });
  expect(isReady()).toBe(false);
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME + 100);
  });
  expect(isReady()).toBe(true);
});

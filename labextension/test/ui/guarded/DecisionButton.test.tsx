import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { byPerson } from '../../person';
import {
  DecisionButton,
  GUARD_TIME
} from '../../../src/ui/guarded/DecisionButton';
import { CardGuard } from '../../../src/ui/guarded/GuardedCard';
import type { ICardGuard } from '../../../src/ui/guarded/GuardedCard';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

/** A button on a card that can be seen as it is, unless the guard says otherwise. */
function button(
  onActivate: () => void = jest.fn(),
  guard: Partial<ICardGuard> = {}
): JSX.Element {
  const seen: ICardGuard = {
    exposure: 'exposed',
    refusal: null,
    confirm: () => true,
    refuse: jest.fn()
  };
  return (
    <CardGuard.Provider value={{ ...seen, ...guard }}>
      <DecisionButton kind="allow" label="Allow once" onActivate={onActivate} />
    </CardGuard.Provider>
  );
}

function wait(time: number): void {
  act(() => {
    jest.advanceTimersByTime(time);
  });
}

function isReady(): boolean {
  return screen.getByRole('button').getAttribute('aria-disabled') === 'false';
}

/** The place of a button, this far from the top. */
function placeAt(top: number): DOMRect {
  return { left: 0, right: 80, top, bottom: top + 20 } as DOMRect;
}

test('a new button is not ready before a person could have seen it', () => {
  render(button());
  expect(isReady()).toBe(false);
  wait(GUARD_TIME);
  expect(isReady()).toBe(true);
});

test('a script cannot press it', () => {
  const onActivate = jest.fn();
  render(button(onActivate));
  wait(GUARD_TIME);
  fireEvent.click(screen.getByRole('button', { name: 'Allow once' }));
  expect(onActivate).not.toHaveBeenCalled();
});

test.each([
  ['hidden', 0],
  ['exposed', 2]
] as const)(
  'a button is looked for under the pointer while it can be seen: %s',
  (exposure, count) => {
    render(button(jest.fn(), { exposure }));
    fireEvent(
      document.body,
      new MouseEvent('pointermove', { clientX: 10, clientY: 10, bubbles: true })
    );
    const place = jest.spyOn(
      screen.getByRole('button'),
      'getBoundingClientRect'
    );
    wait(250);
    expect(place).toHaveBeenCalledTimes(count);
  }
);

test('a button that comes under a resting pointer is not ready for a while', () => {
  render(button());
  const node = screen.getByRole('button');
  const place = jest.spyOn(node, 'getBoundingClientRect');
  place.mockReturnValue(placeAt(100));
  fireEvent(
    document.body,
    new MouseEvent('pointermove', { clientX: 10, clientY: 10, bubbles: true })
  );
  wait(GUARD_TIME + 200);
  expect(isReady()).toBe(true);
  place.mockReturnValue(placeAt(0));
  wait(150);
  expect(isReady()).toBe(false);
  wait(GUARD_TIME + 100);
  expect(isReady()).toBe(true);
});

test('on a card that is not exposed it is not ready, and on no card at all', () => {
  for (const exposure of ['covered', 'hidden', 'embedded'] as const) {
    const { unmount } = render(button(jest.fn(), { exposure }));
    wait(GUARD_TIME);
    expect(isReady()).toBe(false);
    unmount();
  }
  render(
    <DecisionButton kind="allow" label="Allow once" onActivate={jest.fn()} />
  );
  wait(GUARD_TIME);
  expect(isReady()).toBe(false);
});

test('what covered the card is gone for the whole guard time before the button is ready', () => {
  const { rerender } = render(button());
  wait(GUARD_TIME);
  rerender(button(jest.fn(), { exposure: 'covered' }));
  wait(GUARD_TIME);
  rerender(button());
  expect(isReady()).toBe(false);
  wait(GUARD_TIME - 1);
  expect(isReady()).toBe(false);
  wait(1);
  expect(isReady()).toBe(true);
});

test('the delay is visible, and begins anew with the wait', () => {
  const { rerender } = render(button());
  const node = screen.getByRole('button');
  expect(node.dataset['arming']).toBeDefined();
  wait(GUARD_TIME);
  expect(node.dataset['arming']).toBeUndefined();
  rerender(button(jest.fn(), { exposure: 'covered' }));
  expect(node.dataset['arming']).toBeUndefined();
  rerender(button());
  const first = node.dataset['arming'];
  rerender(button(jest.fn(), { exposure: 'hidden' }));
  rerender(button());
  expect(node.dataset['arming']).toBeDefined();
  expect(first).toBeDefined();
});

test('a click that comes too early is said not to count', () => {
  const refuse = jest.fn();
  const onActivate = jest.fn();
  render(button(onActivate, { refuse }));
  byPerson(
    screen.getByRole('button'),
    new MouseEvent('click', { bubbles: true })
  );
  expect(onActivate).not.toHaveBeenCalled();
  expect(refuse).toHaveBeenCalledWith('moved');
});

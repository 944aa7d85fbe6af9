import { act, render, screen } from '@testing-library/react';
import React from 'react';

import { Countdown } from '../../../src/ui/card/Countdown';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

/** The times that are shown during some seconds, with so many left at first. */
function shown(left: number, seconds: number): string[] {
  const end = Date.now() + 1000 * left;
  render(
    <Countdown expiresAt={new Date(end).toISOString()} now={() => Date.now()} />
  );
  const texts = new Set<string>();
  for (let passed = 0; passed < seconds; passed += 1) {
    texts.add(screen.getByRole('timer').textContent ?? '');
    act(() => {
      jest.advanceTimersByTime(1000);
    });
  }
  return [...texts];
}

test('while much time is left, it is shown anew only every few seconds', () => {
  const texts = shown(600, 20);
  expect(texts[0]).toBe('10:00 left');
  expect([4, 5]).toContain(texts.length);
});

test('in the last two minutes every second counts', () => {
  const texts = shown(126, 16);
  expect(texts.slice(-9)).toEqual([
    ...['1:59', '1:58', '1:57', '1:56', '1:55'].map(time => `${time} left`),
    ...['1:54', '1:53', '1:52', '1:51'].map(time => `${time} left`)
  ]);
});

import { act, render } from '@testing-library/react';
import React from 'react';

import { useTick } from '../../../src/ui/hooks/useTick';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test('clocks that began at different times go on at the same one, and none is left', () => {
  const times: [string, number][] = [];
  const start = Date.now();
  const Clock = ({ name }: { name: string }): JSX.Element => {
    useTick(true);
    times.push([name, Date.now() - start]);
    return <span />;
  };
  const first = render(<Clock name="a" />);
  jest.advanceTimersByTime(400);
  const second = render(<Clock name="b" />);
  times.length = 0;
  act(() => {
    jest.advanceTimersByTime(1000);
  });
  expect(times).toEqual([
    ['a', expect.any(Number)],
    ['b', expect.any(Number)]
  ]);
  expect(jest.getTimerCount()).toBe(1);
  first.unmount();
  second.unmount();
  expect(jest.getTimerCount()).toBe(0);
});

test('clocks stand still while the page is hidden, and are right when it is seen again', () => {
  const hidden = jest.spyOn(document, 'hidden', 'get');
  const seen = (isSeen: boolean): void => {
    hidden.mockReturnValue(!isSeen);
    act(() => {
      document.dispatchEvent(new Event('visibilitychange'));
    });
  };
  let count = 0;
  const Clock = (): JSX.Element => {
    useTick(true);
    count += 1;
    return <span />;
  };
  const clock = render(<Clock />);
  seen(false);
  expect(jest.getTimerCount()).toBe(0);
  count = 0;
  seen(true);
  expect([count, jest.getTimerCount()]).toEqual([1, 1]);
  clock.unmount();
  expect(jest.getTimerCount()).toBe(0);
  hidden.mockRestore();
});

test('clocks with a longer period go on together, once in so many seconds', () => {
  const times = new Map<string, number[]>();
  const Clock = ({ name }: { name: string }): JSX.Element => {
    useTick(true, 5);
    times.set(name, [...(times.get(name) ?? []), Date.now()]);
    return <span />;
  };
  const first = render(<Clock name="a" />);
  jest.advanceTimersByTime(2400);
  const second = render(<Clock name="b" />);
  times.clear();
  for (let passed = 0; passed < 5; passed += 1) {
    act(() => {
      jest.advanceTimersByTime(1000);
    });
  }
  expect(times.get('a')).toHaveLength(1);
  expect(times.get('b')).toEqual(times.get('a'));
  first.unmount();
  second.unmount();
});

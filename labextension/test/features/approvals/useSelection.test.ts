import { act, renderHook } from '@testing-library/react';

import { useSelection } from '../../../src/features/approvals/useSelection';

const ROWS = ['a', 'b', 'c', 'd', 'e'];

function selectionOf(rows = ROWS): {
  do: (change: (now: ReturnType<typeof useSelection>) => void) => string;
} {
  const { result } = renderHook(() => useSelection(rows));
  return {
    do: change => {
      act(() => {
        change(result.current);
      });
      return [...result.current.selected].sort().join('');
    }
  };
}

test('an extension goes from the last row that was toggled, and shrinks again', () => {
  const selection = selectionOf();
  expect(selection.do(({ toggle }) => toggle('b'))).toBe('b');
  expect(selection.do(({ extendTo }) => extendTo('e'))).toBe('bcde');
  expect(selection.do(({ extendTo }) => extendTo('c'))).toBe('bc');
  expect(selection.do(({ extendTo }) => extendTo('a'))).toBe('ab');
});

test('an extension from a row that was only moved to has it, too', () => {
  const selection = selectionOf();
  selection.do(({ moveTo }) => moveTo('c'));
  expect(selection.do(({ extendTo }) => extendTo('d'))).toBe('cd');
});

test('what cannot be selected never is', () => {
  const selection = selectionOf();
  expect(selection.do(({ toggle }) => toggle('x'))).toBe('');
  expect(selection.do(({ setAll }) => setAll(['x', 'a'], true))).toBe('a');
  expect(selection.do(({ setAll }) => setAll(['a'], false))).toBe('');
});

test('what leaves the table is not selected when it comes back, also by an extension that began before', () => {
  const { result, rerender } = renderHook(rows => useSelection(rows), {
    initialProps: ROWS
  });
  const selected = (): string => [...result.current.selected].sort().join('');
  act(() => {
    result.current.setAll(['a', 'b', 'd'], true);
    result.current.toggle('e');
  });
  expect(selected()).toBe('abde');
  rerender(['b', 'c', 'e']);
  expect(selected()).toBe('be');
  rerender(ROWS);
  expect(selected()).toBe('be');
  act(() => {
    result.current.extendTo('c');
  });
  expect(selected()).toBe('bcde');
});

import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { BlockedOutput } from '../../../src/features/outputs/BlockedOutput';
import { GUARD_TIME } from '../../../src/ui/guarded/DecisionButton';

function show(
  props: Partial<React.ComponentProps<typeof BlockedOutput>> = {}
): jest.Mock {
  const onAllow = jest.fn(() => Promise.resolve());
  render(
    <BlockedOutput
      kind="JavaScript"
      isSandboxed={true}
      onAllow={onAllow}
      {...props}
    />
  );
  return onAllow;
}

test('it has a name, says what it could do, and has one button', () => {
  show();
  const card = screen.getByRole('group', {
    name: 'Blocked output: JavaScript'
  });
  expect(card.textContent).toContain(
    'It came from a sandboxed or remote kernel.'
  );
  expect(card.textContent).toContain('approve requests');
  const button = screen.getByRole('button', { name: 'Run this output' });
  expect(
    document.getElementById(button.getAttribute('aria-describedby') ?? '')
  ).not.toBeNull();
});

test('a script cannot allow it', () => {
  jest.useFakeTimers();
  const onAllow = show();
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME);
  });
  const button = screen.getByRole('button');
  fireEvent.click(button);
  fireEvent.keyDown(button, { key: 'Enter' });
  expect(onAllow).not.toHaveBeenCalled();
  jest.useRealTimers();
});

test('it does not claim what the server did not say', () => {
  show({ isSandboxed: false });
  expect(screen.getByRole('group').textContent).toContain('It is not known');
});

test('in a frame of its own, where no button works, it has none', () => {
  show({ isIsolated: true });
  expect(screen.queryByRole('button')).toBeNull();
});

test('in a widget it has no button that runs it, but one that shows it in a dialog', () => {
  const onReview = jest.fn();
  const onAllow = show({ isInWidget: true, onReview });
  const [button, ...others] = screen.getAllByRole('button');
  expect(others).toEqual([]);
  expect(button.textContent).toBe('Review in a dialog');
  button.click();
  expect(onReview).toHaveBeenCalledTimes(1);
  expect(onAllow).not.toHaveBeenCalled();
});

import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { Card } from '../../../src/ui/card/Card';
import type { IApproval, IGrantUse } from '../../../src/api/protocol';
import type { PersonalAnswer } from '../../../src/internalTokens';
import { allowed, approval } from '../../examples';

const USE: IGrantUse = {
  id: 'g1',
  scope: 'kernel',
  granted_at: '2026-01-01T00:00:00Z',
  reviewer: 'ada',
  reviewer_kind: 'user',
  reviewer_name: null,
  via: 'browser'
};

function show(item: IApproval): { node: HTMLElement; sent: PersonalAnswer[] } {
  const sent: PersonalAnswer[] = [];
  const { container } = render(
    <Card
      approval={item}
      origin="orders.ipynb, cell 3"
      now={() => Date.parse('2026-01-01T00:00:00Z')}
      onDecide={async (_, answer) => {
        sent.push(answer);
      }}
    />
  );
  return { node: container, sent };
}

function open(name: 'Let it run more often…' | 'Keep it from running…'): void {
  fireEvent.click(screen.getByRole('button', { name }));
}

test('an arrow opens the lasting answers within the card, and Escape closes them', () => {
  const { node } = show(approval());
  expect(screen.queryByText(/in this notebook/)).toBeNull();
  open('Let it run more often…');
  const answer = screen.getByText(
    'Allow shop.delete_order in this notebook until its kernel ends'
  );
  expect(node.querySelector('.jp-AgentBox-card')?.contains(answer)).toBe(true);
  expect(document.activeElement?.textContent).toContain('this exact call');
  fireEvent.keyDown(answer, { key: 'Escape' });
  expect(screen.queryByText(/in this notebook/)).toBeNull();
});

test('arrow keys go from one lasting answer to the next', () => {
  show(approval());
  open('Keep it from running…');
  const first = document.activeElement as HTMLElement;
  fireEvent.keyDown(first, { key: 'ArrowDown' });
  expect(document.activeElement?.textContent).toBe(
    'Reject shop.delete_order in this notebook until its kernel ends'
  );
  fireEvent.keyDown(document.activeElement as HTMLElement, { key: 'ArrowUp' });
  expect(document.activeElement).toBe(first);
});

test('a script that presses a lasting answer gives none', () => {
  jest.useFakeTimers();
  const { sent } = show(approval());
  open('Let it run more often…');
  act(() => {
    jest.advanceTimersByTime(2000);
  });
  fireEvent.click(screen.getByText(/in this notebook/));
  expect(sent).toEqual([]);
  jest.useRealTimers();
});

test('there is none for arguments of which a part was never shown', () => {
  const item = approval();
  item.call.arguments = { sql: '-'.repeat(60_000) };
  const { node } = show(item);
  open('Let it run more often…');
  expect(node.textContent).toContain('You have not seen all of the arguments');
  expect(screen.queryByText(/in this notebook/)).toBeNull();
});

test('a final card names the grant that answered', () => {
  const item = allowed();
  item.decision = item.decision && { ...item.decision, grant: USE };
  const { node } = show(item);
  expect(node.textContent).toMatch(/Allowed by the grant of .* by ada\./);
});

test('a request that asks again says why, and shows what the server changed', () => {
  const item = approval();
  item.evaluation.voided = {
    grant: USE,
    void: 'definition',
    before: { ...item.tool, description: 'Deletes one order.' }
  };
  item.tool.description = 'Deletes all orders.';
  const { node } = show(item);
  expect(node.textContent).toContain('This asks again, in spite of');
  const lines = [...node.querySelectorAll('.jp-AgentBox-diffLines > div')];
  const changed = lines.map(line => line.textContent ?? '');
  expect(changed.join()).toContain('Removed:Deletes one order.');
  expect(changed.join()).toContain('Added:Deletes all orders.');
});

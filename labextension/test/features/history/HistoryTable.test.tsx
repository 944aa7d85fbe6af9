import { act, render, screen } from '@testing-library/react';
import React from 'react';

import type {
  IAuditRecord,
  IHubReview,
  IQuestionRecord,
  OutcomeState
} from '../../../src/api/protocol';
import { HistoryTable } from '../../../src/features/history/HistoryTable';
import { ApprovalModel } from '../../../src/model/approvals';
import { SIGNS } from '../../../src/ui/card/Outcome';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { allowed, language, origins, source } from '../../examples';
import { addSizes, removeSizes } from '../../sizes';

const QUESTION: IQuestionRecord = {
  mode: 'form',
  message: 'Which shop?',
  url: null,
  action: 'accept',
  reviewer: 'ada'
};

/** The outcome of a call that ran. */
function ended(state: OutcomeState): NonNullable<IAuditRecord['outcome']> {
  return { state, error: '', started_at: '2026-01-01T00:01:00Z' };
}

/** A record of a call that ran. */
function recordOf(id: string): IAuditRecord {
  const { call, evaluation, decision, created_at } = allowed();
  return {
    id,
    status: 'approved',
    signature: 'delete_order(order_id=1042)',
    ended_at: created_at,
    outcome: ended('succeeded'),
    seconds: 1,
    ...{ call, evaluation, decision, created_at }
  };
}

/** The line of a record. */
function lineOf(change: (record: IAuditRecord) => void): HTMLElement {
  const record = recordOf('r1');
  change(record);
  return show([record]);
}

function show(records: readonly IAuditRecord[]): HTMLElement {
  const model = new ApprovalModel(source());
  for (const { id } of records) {
    model.track(id);
  }
  model.remember(records.map(({ id }) => allowed({ id })));
  const context: ICardContext = {
    model,
    origins,
    nameOf: () => 'ada',
    ...language
  };
  return render(
    <CardProvider value={context}>
      <HistoryTable records={records} />
    </CardProvider>
  ).container;
}

/** The marks in the line of a record. */
function marksOf(change: (record: IAuditRecord) => void): string[] {
  const marks = lineOf(change).querySelectorAll('.jp-AgentBox-historyMark');
  return [...marks].map(mark => mark.textContent ?? '');
}

test.each([
  ['a call that ran and failed', ended('failed'), '✗ Allowed, failed'],
  ['a call that was cancelled', ended('cancelled'), '– Allowed, cut off'],
  [
    'a call whose caller was gone',
    { ...ended('cancelled'), started_at: null },
    '– Allowed, not run'
  ],
  [
    'a call that the Hub refused',
    { ...ended('failed'), review: { status: 'expired' } as IHubReview },
    '– Allowed, not run'
  ]
])('the line of %s says so', (_, outcome, text) => {
  const line = lineOf(record => {
    record.outcome = outcome;
  });
  expect(line.textContent).toContain(text);
});

test('the line of a rejected call has the sign of its card, which is not read out', () => {
  const line = lineOf(record => {
    record.status = 'rejected';
  });
  const result = line.querySelector('.jp-AgentBox-historyResult');
  expect(result?.textContent).toBe(`${SIGNS.bad} Rejected`);
  expect(result?.querySelector('[aria-hidden]')?.textContent).toBe(SIGNS.bad);
});

test('the line of a change of the rules says that it was done, and not that it was allowed', () => {
  const line = lineOf(record => {
    record.call = { ...record.call, server: 'agentbox', tool: 'change_rules' };
    record.seconds = null;
  });
  const cell = (name: string): string | null | undefined =>
    line.querySelector(`.jp-AgentBox-history${name}`)?.textContent;
  expect([cell('Result'), cell('Number')]).toEqual(['✓ Done', '']);
});

test('the line of an ordinary call has no mark', () => {
  expect(marksOf(() => undefined)).toEqual([]);
});

test('the line of a call that was edited says so, whatever became of it', () => {
  const marks = marksOf(record => {
    record.decision = {
      ...(record.decision as NonNullable<IAuditRecord['decision']>),
      arguments: { order_id: 7 }
    };
    record.outcome = ended('failed');
  });
  expect(marks).toEqual(['edited']);
});

test('arguments that are too long for a list count as edited, too', () => {
  const marks = marksOf(record => {
    record.decision = {
      ...(record.decision as NonNullable<IAuditRecord['decision']>),
      arguments: null,
      omitted: { size: 90_000, head: '{"order_id"' }
    };
  });
  expect(marks).toEqual(['edited']);
});

test('the line of a call whose server asked something says how often', () => {
  const marks = [1, 2].map(count =>
    marksOf(record => {
      record.outcome = {
        ...ended('succeeded'),
        questions: Array<IQuestionRecord>(count).fill(QUESTION)
      };
    })
  );
  expect(marks).toEqual([['1 question'], ['2 questions']]);
});

test('the card of an opened line does not repeat the call', () => {
  const line = lineOf(() => undefined);
  act(() => {
    screen.getByRole('button', { name: /delete_order/ }).click();
  });
  expect(line.querySelector('.jp-AgentBox-outcome')).not.toBeNull();
  expect(line.textContent?.split('delete_order(')).toHaveLength(2);
});

test('an opened line shows what its card has, without another click', () => {
  const line = lineOf(() => undefined);
  act(() => {
    screen.getByRole('button', { name: /delete_order/ }).click();
  });
  const details = line.querySelector<HTMLDetailsElement>('.jp-AgentBox-final');
  expect(details?.open).toBe(true);
  expect(details?.textContent).toContain('order_id');
});

test('of a thousand calls a few lines are in the page; an opened one stays', () => {
  addSizes();
  const names = Array.from({ length: 1000 }, (_, index) => `r${index}`);
  const table = show(names.map(recordOf));
  act(() => {
    screen.getAllByRole('button', { name: /delete_order/ })[3].click();
  });
  const rows = table.querySelectorAll('tr[role="row"]');
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.length).toBeLessThan(150);
  const whole = table.querySelector('table')?.getAttribute('aria-rowcount');
  expect(whole).toBe('1003'); // the calls, a day, the head and a card
  expect(
    [...rows].map(row => row.getAttribute('aria-rowindex')).slice(0, 7)
  ).toEqual(['1', '2', '3', '4', '5', '6', '7']);
  expect(rows[6].querySelector('.jp-AgentBox-final')).not.toBeNull();
  removeSizes();
});

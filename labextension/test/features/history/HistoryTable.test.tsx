import { render } from '@testing-library/react';
import React from 'react';

import type { IAuditRecord, IQuestionRecord } from '../../../src/api/protocol';
import { HistoryTable } from '../../../src/features/history/HistoryTable';
import { allowed } from '../../examples';

const QUESTION: IQuestionRecord = {
  mode: 'form',
  message: 'Which shop?',
  url: null,
  action: 'accept',
  reviewer: 'ada'
};

/** The marks in the line of a record. */
function marksOf(change: (record: IAuditRecord) => void): string[] {
  const { call, evaluation, decision, created_at } = allowed();
  const record: IAuditRecord = {
    id: 'r1',
    status: 'approved',
    signature: 'delete_order(order_id=1042)',
    ended_at: created_at,
    outcome: { state: 'succeeded', error: '', questions: [] },
    seconds: 1,
    ...{ call, evaluation, decision, created_at }
  };
  change(record);
  const { container } = render(<HistoryTable records={[record]} />);
  const marks = container.querySelectorAll('.jp-AgentBox-historyMark');
  return [...marks].map(mark => mark.textContent ?? '');
}

test('the line of an ordinary call has no mark', () => {
  expect(marksOf(() => undefined)).toEqual([]);
});

test('the line of a call that was edited says so, whatever became of it', () => {
  const marks = marksOf(record => {
    record.decision = {
      ...(record.decision as NonNullable<IAuditRecord['decision']>),
      arguments: { order_id: 7 }
    };
    record.outcome = { state: 'failed', error: 'no such order' };
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
        state: 'succeeded',
        error: '',
        questions: Array<IQuestionRecord>(count).fill(QUESTION)
      };
    })
  );
  expect(marks).toEqual([['1 question'], ['2 questions']]);
});

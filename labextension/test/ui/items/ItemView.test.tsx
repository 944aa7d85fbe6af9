import { Sanitizer } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { readItem } from '../../../src/api/threads';
import { RequestError } from '../../../src/api/errors';
import type { IItemOutput, ITurn, ReadTurn } from '../../../src/api/threads';
import type { IApproval } from '../../../src/api/protocol';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { NEWS_DELAY } from '../../../src/ui/hooks/useRecordedStatus';
import { ItemView } from '../../../src/ui/items/ItemView';
import { approval, language } from '../../examples';
import { itemData } from '../../threads';

const markdown = {
  parser: null,
  sanitizer: new Sanitizer(),
  typesetter: null,
  trans: language.trans
};

async function show(
  item: object,
  options: {
    isComplete?: boolean;
    isAnswer?: boolean;
    pending?: IApproval[];
    onInsert?: () => void;
    readTurn?: ReadTurn;
  } = {}
): Promise<HTMLElement> {
  const context = {
    ...language,
    nameOf: () => 'Ada',
    model: { changed: new Signal({}), pending: options.pending ?? [] }
  } as unknown as ICardContext;
  const data = {
    ...itemData(item, options.isComplete),
    is_answer: options.isAnswer
  };
  const { container } = render(
    <CardProvider value={context}>
      <ItemView
        output={readItem(data) as IItemOutput}
        markdown={markdown}
        onInsert={options.onInsert}
        readTurn={options.readTurn}
      />
    </CardProvider>
  );
  await act(() => Promise.resolve());
  return container;
}

const RUN = {
  type: 'code_run',
  code: 'a = 1',
  status: 'in_progress',
  request_id: null,
  text: '',
  error: ''
};

test('the answer is set apart, and leads to the code once it is whole', async () => {
  const onInsert = jest.fn();
  const answer = { type: 'agent_message', text: 'a', phase: 'final_answer' };
  await show(answer, { onInsert, isComplete: false });
  expect(screen.queryByRole('button')).toBeNull();
  await show(answer, { onInsert });
  fireEvent.click(screen.getByRole('button', { name: 'Insert as cells' }));
  expect(onInsert).toHaveBeenCalledTimes(1);
  expect(screen.getAllByRole('group', { name: 'Answer' })).toHaveLength(2);
});

test('a message without a phase is the answer if the turn ended with it', async () => {
  const words = { type: 'agent_message', text: 'a', phase: null };
  const data = { ...itemData(words), is_answer: true };
  expect(readItem(data)?.isAnswer).toBe(true);
  await show(words, { isAnswer: true });
  expect(screen.getByRole('group', { name: 'Answer' })).not.toBeNull();
});

test('commentary is no answer', async () => {
  await show({ type: 'agent_message', text: 'a', phase: 'commentary' });
  expect(screen.queryByRole('group', { name: 'Answer' })).toBeNull();
  expect(screen.getByRole('group', { name: 'Agent' }).textContent).toBe('a');
});

test('reasoning is folded', async () => {
  const node = await show({ type: 'reasoning', text: 'a' });
  expect(node.querySelector('details')?.open).toBe(false);
});

test.each([
  ['failed', false], // the traceback is an output, below
  ['declined', true],
  ['interrupted', true]
])('the error of code that is %s is shown: %s', async (status, isShown) => {
  const node = await show({ ...RUN, status, error: 'because' });
  expect(node.textContent?.includes('because')).toBe(isShown);
});

test.each([
  ['completed', 'completed'],
  ['failed', 'failed'],
  ['declined', 'declined'],
  ['interrupted', 'interrupted'],
  ['in_progress', 'running…']
])('code that is %s is said to be %s', async (status, words) => {
  const node = await show({ ...RUN, status });
  expect(screen.getByRole('status').textContent).toBe(words);
  expect(node.textContent).toContain('a = 1');
});

test('code that waits for a person says so, and leaves the code to its card', async () => {
  const { call } = approval();
  const asked = { ...call, tool: 'run_code', server: 'notebook' };
  const pending = [approval({ call: { ...asked, thread_id: 'h1' } })];
  const node = await show(RUN, { pending });
  expect(screen.getByRole('status').textContent).toBe(
    'waiting for your decision'
  );
  expect(node.textContent).not.toContain('a = 1');
});

test('the request of another thread is not this one’s', async () => {
  const { call } = approval();
  const asked = { ...call, tool: 'run_code', server: 'notebook' };
  const pending = [approval({ call: { ...asked, thread_id: 'h2' } })];
  await show(RUN, { pending });
  expect(screen.getByRole('status').textContent).toBe('running…');
});

test('a notice is one line of text', async () => {
  const text = 'The limit\nwas <b>reached</b>.';
  const node = await show({ type: 'notice', code: 'limit', text });
  expect(node.textContent).toBe('The limit was <b>reached</b>.');
});

test.each([
  ['completed', 'completed', 'completed'],
  ['in_progress', 'interrupted', 'interrupted'],
  ['in_progress', 'in_progress', 'running…']
])(
  'of code that its output shows in progress, the record tells (%s in a turn that is %s)',
  async (status, turnStatus, shown) => {
    const turn = { status: turnStatus, items: [{ ...RUN, id: 'i1', status }] };
    const node = await show(RUN, {
      readTurn: () => Promise.resolve(turn as unknown as ITurn)
    });
    expect(node.textContent).toContain(shown);
  }
);

test('an output that nobody told of the end says where the rest is, and one that is told does not', async () => {
  jest.useFakeTimers();
  try {
    const node = await show(RUN, {
      readTurn: () =>
        Promise.reject(new RequestError(404, 'no turn', null, null))
    });
    expect(node.textContent).toContain('interrupted');
    expect(node.textContent).not.toContain('%agent show');
    act(() => {
      jest.advanceTimersByTime(NEWS_DELAY);
    });
    expect(node.textContent).toContain('%agent show');
  } finally {
    jest.useRealTimers();
  }
});

test('a server that is out of reach says nothing of code', async () => {
  const node = await show(RUN, {
    readTurn: () => Promise.reject(new Error('no connection'))
  });
  expect(node.textContent).toContain('running…');
});

import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IApproval, IQuestion } from '../../../src/api/protocol';
import type { IQuestionsModel } from '../../../src/internalTokens';
import { ApprovalModel } from '../../../src/model/approvals';
import { RequestGroup } from '../../../src/ui/card/RequestGroup';
import { CardProvider } from '../../../src/ui/context';
import { allowed, approval, origins, source, trans } from '../../examples';
import { byPerson } from '../../person';

const QUANTITY = 25;

/** A request of a loop; those that were decided ran to their end. */
function restock(id: number, status: IApproval['status']): IApproval {
  const make = status === 'approved' ? allowed : approval;
  const item = make({ id: `r${id}`, status });
  item.call = {
    ...item.call,
    tool: 'restock',
    arguments: { product_id: id, quantity: QUANTITY }
  };
  if (status === 'approved') {
    const at = '2026-01-01T00:01:00Z';
    const times = { started_at: at, finished_at: at };
    item.outcome = { state: 'succeeded', error: '', ...times };
  }
  return item;
}

/** A request whose call was allowed here, and that waits for approvers at the Hub or was rejected by one. */
function atHub(id: number, status: 'pending' | 'rejected'): IApproval {
  const item = restock(id, 'approved');
  const review = {
    status,
    groups: ['keepers'],
    count: 1,
    approved_by: [],
    expires_at: '2026-01-01T01:00:00Z',
    rejected_by: status === 'rejected' ? 'bob' : null,
    reason: '',
    url: null
  };
  return {
    ...item,
    outcome: item.outcome && {
      ...item.outcome,
      state: status === 'rejected' ? 'failed' : 'running',
      review
    }
  };
}

/** What the server of a call asks. */
function question(requestId: string): IQuestion {
  return {
    id: `q-${requestId}`,
    request_id: requestId,
    server: 'shop',
    tool: 'restock',
    mode: 'form',
    message: 'How many?',
    schema: { type: 'object', properties: {} },
    url: null,
    calls: 1,
    kernel_id: null,
    notebook_path: null,
    asked_at: '2026-01-01T00:02:00Z',
    expires_at: null
  } as IQuestion;
}

/** The calls whose servers ask something. */
let asked: number[] = [];

beforeEach(() => {
  asked = [];
});

/** The output of a cell whose calls have these statuses, and a way to change one. */
function group(...statuses: IApproval['status'][]): {
  node: HTMLElement;
  change: (id: number, status: IApproval['status']) => void;
  changeAll: (status: IApproval['status']) => void;
  putAtHub: (status: 'pending' | 'rejected', ...ids: number[]) => void;
  leave: jest.Mock;
  openTogether: jest.Mock;
} {
  const items = new Map(
    statuses.map((status, index) => [`r${index}`, restock(index, status)])
  );
  const found = (ids: readonly string[]): IApproval[] =>
    ids.flatMap(id => items.get(id) ?? []);
  const model = new ApprovalModel(
    source({
      listApprovals: ({ ids }) =>
        Promise.resolve({ approvals: found(ids ?? []), next: null }),
      getApproval: id => Promise.resolve(found([id])[0] as IApproval)
    })
  );
  for (const id of items.keys()) {
    model.track(id);
  }
  model.remember([...items.values()]);
  const leave = jest.fn();
  const openTogether = jest.fn();
  const context = {
    model,
    origins,
    nameOf: () => 'Ada',
    translator: nullTranslator,
    trans,
    leave,
    openTogether,
    questions: {
      changed: new Signal<IQuestionsModel, void>({} as IQuestionsModel),
      questions: asked.map(id => question(`r${id}`)),
      refresh: () => Promise.resolve(),
      answer: () => Promise.resolve()
    }
  };
  const { container } = render(
    <CardProvider value={context}>
      <RequestGroup
        requestIds={[...items.keys()]}
        fallback={[...items.keys()].join('\n')}
        onFinal={() => undefined}
      />
    </CardProvider>
  );
  const change = (id: number, status: IApproval['status']): void => {
    act(() => {
      model.remember([restock(id, status)]);
    });
  };
  const changeAll = (status: IApproval['status']): void => {
    act(() => {
      model.remember(statuses.map((_, index) => restock(index, status)));
    });
  };
  const putAtHub = (status: 'pending' | 'rejected', ...ids: number[]): void => {
    act(() => {
      model.remember(ids.map(id => atHub(id, status)));
    });
  };
  return {
    node: container,
    change,
    changeAll,
    putAtHub,
    leave,
    openTogether
  };
}

function cards(): (string | undefined)[] {
  const found = screen.queryAllByRole('group', { name: /^Approval request/ });
  return found.map(card => `${card.dataset.requestId} ${card.dataset.status}`);
}

test('few calls have a card each, decided or not, and nothing folds', () => {
  const { node } = group('approved', 'pending', 'rejected');
  expect(cards()).toEqual(['r0 approved', 'r1 pending', 'r2 rejected']);
  expect(node.querySelector('.jp-AgentBox-callLines')).toBeNull();
});

test('of many calls those that wait first have cards, and one line says how all are doing', () => {
  const { node } = group(
    ...Array<IApproval['status']>(20).fill('approved'),
    ...Array<IApproval['status']>(30).fill('pending')
  );
  expect(cards()).toEqual(['r20 pending', 'r21 pending', 'r22 pending']);
  expect(node.textContent).toContain('50 calls, 30 waiting, 20 allowed');
  expect(node.textContent).toContain('27 more requests are waiting.');
});

test('what waits without a card can be decided in the panel', () => {
  const { openTogether } = group('pending', 'pending', 'pending', 'pending');
  fireEvent.click(screen.getByText('Decide them together in the panel'));
  expect(openTogether).toHaveBeenCalledWith('r3');
});

test('T on a card leads to where all are decided together, and a T that is on its way to something else does not', () => {
  const { openTogether } = group('pending', 'pending', 'pending', 'pending');
  const [card] = screen.getAllByRole('group', { name: /^Approval request/ });
  const press = (init: KeyboardEventInit): void => {
    byPerson(card, new KeyboardEvent('keydown', { ...init, bubbles: true }));
  };
  act(() => {
    card.focus();
  });
  press({ key: 't' });
  expect(openTogether).not.toHaveBeenCalled();
  byPerson(card, new MouseEvent('pointerdown', { bubbles: true }));
  press({ key: 't' });
  expect(openTogether).toHaveBeenCalledWith('r3');
});

test('finished calls fold to one line, which opens to a signature for each call and its card', () => {
  const { node } = group('approved', 'approved', 'approved', 'rejected');
  expect(node.textContent).toBe('4 calls, 3 allowed, 1 rejected');
  const details = node.querySelector('details') as HTMLDetailsElement;
  act(() => {
    details.open = true;
    fireEvent(details, new Event('toggle'));
  });
  const lines = screen.getAllByRole('listitem').map(line => line.textContent);
  expect(lines[1]).toBe(
    '✓ restock(product_id=1, quantity=25) Allowed by Ada. Done in 0 ms.'
  );
  expect(lines[3]).toContain('✗ restock(product_id=3, quantity=25) Rejected');
  fireEvent.click(screen.getByText('restock(product_id=3, quantity=25)'));
  expect(cards()).toEqual(['r3 rejected']);
});

test('the card that was decided last stays until the next decision, so that its answer is seen to count', () => {
  const { change } = group('pending', 'pending', 'pending', 'pending');
  change(0, 'approved');
  expect(cards()).toEqual([
    'r0 approved',
    'r1 pending',
    'r2 pending',
    'r3 pending'
  ]);
  change(1, 'rejected');
  expect(cards()).toEqual(['r1 rejected', 'r2 pending', 'r3 pending']);
});

test('the last decision folds all, but not a card that somebody is in', () => {
  const { node, change } = group('approved', 'approved', 'approved', 'pending');
  screen.getByRole('button', { name: 'Reject' }).focus();
  change(3, 'cancelled');
  const card = node.querySelector<HTMLElement>('[data-request-id]');
  expect(document.activeElement).toBe(card);
  act(() => {
    card?.blur();
  });
  expect(cards()).toEqual([]);
  expect(node.textContent).toBe('4 calls, 3 allowed, 1 not decided');
});

test('calls that end all at once leave no card behind', () => {
  const { node, changeAll } = group('pending', 'pending', 'pending', 'pending');
  changeAll('approved');
  expect(cards()).toEqual([]);
  expect(node.textContent).toBe('4 calls, 4 allowed');
});

test('a call whose server asks something has its card, though it was decided', () => {
  asked = [1];
  const { node } = group('approved', 'approved', 'approved', 'approved');
  expect(cards()).toEqual(['r1 approved']);
  expect(node.textContent).toContain('How many?');
});

test('calls that wait at the Hub are not counted as allowed, and the first ones have cards that say who is asked', () => {
  const { node, change, putAtHub } = group(
    ...Array.from({ length: 6 }, () => 'pending' as const)
  );
  putAtHub('pending', 1, 2, 3, 4);
  expect(node.textContent).toContain(
    '6 calls, 2 waiting, 4 waiting at the Hub'
  );
  expect(cards()).toContain('r1 approved');
  change(0, 'approved');
  change(5, 'approved');
  expect(node.textContent).toContain(
    '6 calls, 4 waiting at the Hub, 2 allowed'
  );
  expect(cards()).toEqual(['r1 approved', 'r2 approved', 'r3 approved']);
  expect(node.textContent).toContain('keepers');
  putAtHub('rejected', 4);
  expect(node.textContent).toContain(
    '6 calls, 3 waiting at the Hub, 2 allowed, 1 rejected at the Hub'
  );
});

test('the card that a line opens does not repeat the call', () => {
  const { node } = group('approved', 'approved', 'approved', 'approved');
  const line = 'restock(product_id=1, quantity=25)';
  const lines = screen.getByText('4 calls, 4 allowed').parentElement;
  (lines as HTMLDetailsElement).open = true;
  fireEvent(lines as HTMLElement, new Event('toggle'));
  fireEvent.click(screen.getByText(line));
  expect(cards()).toEqual(['r1 approved']);
  expect(node.textContent?.split(line)).toHaveLength(2);
});

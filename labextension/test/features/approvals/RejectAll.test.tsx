import { nullTranslator } from '@jupyterlab/translation';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { INamedDecision } from '../../../src/api/queries';
import type { IApproval, IDecisionAnswer } from '../../../src/api/protocol';
import { KeptReasons } from '../../../src/features/approvals/keptReasons';
import { RejectAll } from '../../../src/features/approvals/RejectAll';
import { ApprovalModel } from '../../../src/model/approvals';
import { Forms, OpenForms } from '../../../src/ui/card/forms';
import { CardProvider } from '../../../src/ui/context';
import { approval, origins, source, trans } from '../../examples';
import { layOut, waitForButtons } from '../../layout';
import { byPerson } from '../../person';

/** Pending requests with these ids, each of a tool of its own. */
function requests(...ids: string[]): IApproval[] {
  const { call } = approval();
  return ids.map(id =>
    approval({ id, call: { ...call, tool: `tool_${id}`, digest: `d-${id}` } })
  );
}

/** What the list says to the button. */
type IListState = Pick<
  React.ComponentProps<typeof RejectAll>,
  'shown' | 'all' | 'isFiltered' | 'wanted'
>;

interface IShown {
  /** Show these, which a filter may choose from all. */
  show: (shown: readonly IApproval[], state?: Partial<IListState>) => void;
  sent: INamedDecision[][];
  told: string[][];
  onClose: jest.Mock;
  forms: Forms;
}

/** Show the button, at a server that answers like this. */
function rejectAll(
  approvals: readonly IApproval[],
  answerTo: (id: string) => Partial<IDecisionAnswer> = () => ({ code: 200 })
): IShown {
  const sent: INamedDecision[][] = [];
  const told: string[][] = [];
  const onClose = jest.fn();
  const forms = new Forms();
  const reasons = new Map<string, string>();
  const model = new ApprovalModel(
    source({
      decideAll: async decisions => {
        sent.push([...decisions]);
        return decisions.map(
          ({ id }) => ({ id, message: '', ...answerTo(id) }) as IDecisionAnswer
        );
      }
    })
  );
  const nameOf = (): string => 'Ada';
  // More wait than are shown: a filter hides none of these, but they are not rendered.
  const others = requests('not shown');
  let state: IListState = {
    shown: approvals,
    all: [...approvals, ...others],
    isFiltered: true,
    wanted: 0
  };
  const page = (): JSX.Element => (
    <OpenForms.Provider value={forms}>
      <KeptReasons.Provider value={reasons}>
        <CardProvider
          value={{ model, origins, nameOf, translator: nullTranslator, trans }}
        >
          <RejectAll
            {...state}
            onClose={onClose}
            onFailure={(...all) => {
              told.push(all.map(String));
            }}
          />
        </CardProvider>
      </KeptReasons.Provider>
    </OpenForms.Provider>
  );
  const { rerender } = render(page());
  return {
    show: (shown, changed = {}) => {
      state = { ...state, shown, all: [...shown, ...others], ...changed };
      rerender(page());
    },
    sent,
    told,
    onClose,
    forms
  };
}

async function press(name: string): Promise<void> {
  waitForButtons();
  byPerson(
    screen.getByRole('button', { name }),
    new MouseEvent('click', { bubbles: true })
  );
  await act(() => Promise.resolve());
}

function type(reason: string): void {
  fireEvent.change(screen.getByRole('textbox'), { target: { value: reason } });
}

const ids = (sent: INamedDecision[][]): string[][] =>
  sent.map(decisions => decisions.map(({ id }) => id));

beforeEach(() => {
  jest.useFakeTimers();
  layOut();
});

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

test('all that were shown when the form opened are rejected by one message, and nothing that came later', async () => {
  const { show, sent, onClose } = rejectAll(requests('a', 'b', 'c'));
  await press('Reject all shown (3)…');
  expect(document.activeElement).toBe(screen.getByRole('textbox'));
  show(requests('a', 'b', 'c', 'd'));
  expect(document.body.textContent).toContain(
    '1 other request is shown now, and is not included.'
  );
  type(' enough ');
  await press('Reject 3');
  const answer = { decision: 'reject_once', reason: 'enough' };
  expect(sent).toEqual([
    ['a', 'b', 'c'].map(id => ({ ...answer, id, digest: `d-${id}` }))
  ]);
  expect(screen.queryByRole('textbox')).toBeNull();
  expect(onClose).toHaveBeenCalledTimes(1); // the list finds another place for the focus
});

test('what the filter hides leaves the form, and does not come back into it', async () => {
  const { show, sent } = rejectAll(requests('a', 'b', 'c'));
  await press('Reject all shown (3)…');
  show(requests('a', 'b'));
  show(requests('a', 'b', 'c'));
  await press('Reject 2');
  expect(ids(sent)).toEqual([['a', 'b']]);
});

test('a request with an open form is left out, also if the form opens last', async () => {
  const { sent, forms } = rejectAll(requests('a', 'b', 'c'));
  const form = { mode: 'edit', reason: '', draft: null } as const;
  forms.set('a', form);
  await press('Reject all shown (3)…');
  expect(screen.getByText('Reject 2 requests')).not.toBeNull();
  forms.set('b', form);
  await press('Reject 2');
  expect(ids(sent)).toEqual([['c']]);
});

test('if nothing is left, the form goes, and what was typed can be copied', async () => {
  const { show, sent, told } = rejectAll(requests('a', 'b'));
  await press('Reject all shown (2)…');
  type('too late');
  show(requests('c', 'd'));
  expect(told).toEqual([
    [expect.stringContaining('Nothing is left'), 'too late']
  ]);
  await press('Reject all shown (2)…');
  expect(screen.getByRole('textbox').textContent).toBe('');
  expect(sent).toEqual([]);
});

test('what was not rejected is named with the reason, and what was typed stays', async () => {
  rejectAll(requests('a', 'b', 'c'), id =>
    id === 'b'
      ? { code: 503, status: 'pending', message: 'disk full' }
      : { code: 200, status: 'rejected' }
  );
  await press('Reject all shown (3)…');
  type('enough');
  await press('Reject 3');
  expect(screen.getByRole('listitem').textContent).toBe(
    'tool_b(order_id=7) Not decided: disk full'
  );
  await press('Reject all shown (3)…');
  expect(screen.getByRole('textbox').textContent).toBe('enough');
});

test('a form that was cancelled gives the focus back and keeps the reason', async () => {
  rejectAll(requests('a', 'b'));
  await press('Reject all shown (2)…');
  type('enough');
  await press('Cancel');
  const button = screen.getByRole('button', { name: 'Reject all shown (2)…' });
  expect(document.activeElement).toBe(button);
  await press('Reject all shown (2)…');
  expect(screen.getByRole('textbox').textContent).toBe('enough');
});

test('a script rejects nothing, and neither does a press before the button could be seen', async () => {
  const { sent } = rejectAll(requests('a', 'b'));
  fireEvent.click(screen.getByRole('button', { name: /Reject all/ }));
  expect(screen.queryByRole('textbox')).toBeNull();
  await press('Reject all shown (2)…');
  const button = screen.getByRole('button', { name: 'Reject 2' });
  byPerson(button, new MouseEvent('click', { bubbles: true }));
  waitForButtons();
  fireEvent.click(button);
  expect(sent).toEqual([]);
});

test('there is nothing of the kind for one request', () => {
  rejectAll(requests('a'));
  expect(screen.queryByRole('button')).toBeNull();
});

/** The number of times that a person has wanted the form for all. */
const ONCE = { isFiltered: false, wanted: 1 };
const TWICE = { isFiltered: false, wanted: 2 };

test('the form for all has what waits beside what is shown', async () => {
  const { show, sent } = rejectAll(requests('a', 'b'));
  show(requests('a', 'b'), ONCE);
  await press('Reject 3');
  expect(ids(sent)).toEqual([['a', 'b', 'not shown']]);
});

test('whoever wants the form for all again is led to it, and nothing comes in', async () => {
  const { show, sent } = rejectAll(requests('a', 'b'));
  show(requests('a', 'b'), ONCE);
  type('enough');
  (document.activeElement as HTMLElement).blur();
  show(requests('a', 'b', 'c'), TWICE);
  expect(document.activeElement).toBe(screen.getByRole('textbox'));
  expect(screen.getByRole('textbox').textContent).toBe('enough');
  expect(document.body.textContent).toContain(
    '1 other request is waiting now, and is not included.'
  );
  await press('Reject 3');
  expect(ids(sent)).toEqual([['a', 'b', 'not shown']]);
});

test('the form for all closes when a filter begins, and what was typed stays', async () => {
  const { show } = rejectAll(requests('a', 'b', 'c'));
  show(requests('a', 'b', 'c'), ONCE);
  type('enough');
  show(requests('a', 'b'), { isFiltered: true });
  expect(screen.queryByText(/These are all requests/)).toBeNull();
  const button = screen.getByRole('button', { name: 'Reject all shown (2)…' });
  expect(document.activeElement).not.toBe(button); // the person types a filter
  await press('Reject all shown (2)…');
  expect(screen.getByRole('textbox').textContent).toBe('enough');
});

test('after the form for all was cancelled, a filter that begins keeps the focus', async () => {
  const { show } = rejectAll(requests('a', 'b'));
  show(requests('a', 'b'), ONCE);
  await press('Cancel');
  show(requests('a', 'b'), { isFiltered: true });
  const button = screen.getByRole('button', { name: 'Reject all shown (2)…' });
  expect(document.activeElement).not.toBe(button);
});

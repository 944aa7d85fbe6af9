import { Widget } from '@lumino/widgets';
import { act, fireEvent, screen } from '@testing-library/react';

import { PendingSection } from '../../../src/features/approvals/PendingSection';
import { ApprovalModel } from '../../../src/model/approvals';
import type { IApproval } from '../../../src/api/protocol';
import type { ICardContext } from '../../../src/ui/context';
import {
  approval,
  approvalAtHub,
  language,
  origins,
  source
} from '../../examples';
import { byPerson } from '../../person';
import { addSizes, removeSizes } from '../../sizes';

let idle: typeof window.requestIdleCallback;

/** JupyterLab renders when it is ready, which React would warn of in its tests; and here the page is never idle. */
beforeEach(() => {
  (
    globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
  ).IS_REACT_ACT_ENVIRONMENT = false;
  idle = window.requestIdleCallback;
  window.requestIdleCallback = () => 0;
});

afterEach(() => {
  window.requestIdleCallback = idle;
});

/** The list of a page, and the model that it shows. */
function pendingSection(): { section: PendingSection; model: ApprovalModel } {
  const model = new ApprovalModel(source());
  const context = { ...language, model, origins, nameOf: () => '' };
  const section = new PendingSection(context as unknown as ICardContext);
  return { section, model };
}

test('a card is found once it is in the document, also where the page is never idle', async () => {
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  model.remember([approval({ id: 'a1' })]);
  const card = await section.find('a1');
  expect(card?.isConnected).toBe(true);
  expect(card?.dataset['requestId']).toBe('a1');
  section.dispose();
});

test('the table of a request is found without opening the row, which its own search opens', async () => {
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  model.remember([approval({ id: 'a1' }), approval({ id: 'a2' })]);
  const table = await section.findTable('a2');
  expect(table?.classList).toContain('jp-AgentBox-batch');
  expect(table?.querySelector('[data-request-id]')).toBeNull();
  expect((await section.find('a2'))?.dataset['requestId']).toBe('a2');
  section.dispose();
});

test('who waits goes on when the list has gone', async () => {
  const { section } = pendingSection();
  Widget.attach(section, document.body);
  const waiting = section.rendered();
  section.dispose();
  await expect(waiting).resolves.toBeUndefined();
});

/** A section with this many requests of different tools. */
async function sectionOf(count: number): Promise<PendingSection> {
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  model.remember(
    Array.from({ length: count }, (_, index) =>
      approval({
        id: `a${index}`,
        call: { ...approval().call, tool: `tool_${index}` }
      })
    )
  );
  await section.rendered();
  return section;
}

function filterBy(text: string): void {
  fireEvent.change(screen.getByLabelText('Filter'), {
    target: { value: text }
  });
}

function shown(section: PendingSection): number {
  return section.node.querySelectorAll('[data-request-id]').length;
}

test('a filter is offered when more than five requests wait', async () => {
  const few = await sectionOf(5);
  expect(screen.queryByLabelText('Filter')).toBeNull();
  few.dispose();
  const many = await sectionOf(6);
  expect(screen.queryByLabelText('Filter')).not.toBeNull();
  many.dispose();
});

test('a filter hides requests, says how many are left, and Escape clears it', async () => {
  const section = await sectionOf(6);
  filterBy('TOOL_3');
  expect(shown(section)).toBe(1);
  expect(screen.getByText('1 of 6 shown').getAttribute('role')).toBe('status');
  filterBy('bank');
  expect(shown(section)).toBe(0);
  expect(screen.getByText('No request matches. 0 of 6 shown')).not.toBeNull();
  fireEvent.keyDown(screen.getByLabelText('Filter'), { key: 'Escape' });
  expect(shown(section)).toBe(6);
  filterBy('bank');
  act(() => {
    screen.getByText('Clear the filter').click();
  });
  expect(shown(section)).toBe(6);
  expect(document.activeElement).toBe(screen.getByLabelText('Filter'));
  section.dispose();
});

test('a request to which somebody is led is shown, whatever the filter', async () => {
  const section = await sectionOf(6);
  filterBy('tool_3');
  expect((await section.find('a3'))?.dataset['requestId']).toBe('a3');
  expect(shown(section)).toBe(1);
  expect((await section.find('a4'))?.dataset['requestId']).toBe('a4');
  expect(shown(section)).toBe(6);
  section.dispose();
});

test('of several requests the first is shown whole, and those to which somebody went', async () => {
  const section = await sectionOf(4);
  const compact = (): string[] =>
    [...section.node.querySelectorAll<HTMLElement>('.jp-mod-compact')].map(
      card => card.dataset['requestId'] ?? ''
    );
  expect(compact()).toEqual(['a1', 'a2', 'a3']);
  const third = (await section.find('a2')) as HTMLElement;
  act(() => {
    third.focus();
  });
  expect(compact()).toEqual(['a1', 'a3']);
  expect(third.isConnected).toBe(true); // the same element, which keeps the focus
  expect(third.textContent).toContain('Allow once');
  act(() => {
    section.node.querySelector<HTMLElement>('[data-request-id=a3]')?.focus();
  });
  expect(compact()).toEqual(['a1']); // nothing that was opened folds
  section.dispose();
});

test('J and K also lead to a table, and to the form that rejects all', async () => {
  Element.prototype.scrollIntoView = jest.fn(); // jsdom has no layout
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  const { call } = approval();
  const tools = ['a', 'a', 'b', 'c', 'd', 'e'];
  model.remember(
    tools.map((tool, index) =>
      approval({ id: `a${index}`, call: { ...call, tool } })
    )
  );
  await section.rendered();
  section.rejectAll();
  await section.rendered();
  const form = screen.getByRole('group', { name: 'Reject 6 requests' });
  const table = await section.findTable('a0');
  const card = await section.find('a2');
  const last = await section.find('a5');
  byPerson(document.body, new MouseEvent('pointerdown', { bubbles: true }));
  act(() => {
    card?.focus();
  });
  const press = (key: string): Element | null => {
    const init = { key, bubbles: true, cancelable: true };
    byPerson(
      document.activeElement as Element,
      new KeyboardEvent('keydown', init)
    );
    return document.activeElement;
  };
  expect(press('k')).toBe(table);
  expect(press('k')).toBe(form);
  expect(press('k')).toBe(last);
  expect(press('j')).toBe(form);
  expect(press('j')).toBe(table);
  expect(press('j')).toBe(card);
  section.dispose();
});

test('if the focused button that rejects all goes, the first card gets the focus', async () => {
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  const { call } = approval();
  const six = Array.from({ length: 6 }, (_, index) =>
    approval({ id: `b${index}`, call: { ...call, tool: `tool_${index}` } })
  );
  model.remember(six);
  await section.rendered();
  filterBy('tool');
  screen.getByRole('button', { name: 'Reject all shown (6)…' }).focus();
  act(() => {
    model.remember(
      six.slice(0, 5).map(each => ({ ...each, status: 'expired' }))
    );
  });
  await section.rendered();
  expect(screen.queryByText(/Reject all/)).toBeNull();
  expect(document.activeElement).toBe(await section.find('b5'));
  section.dispose();
});

test.each([
  ['the first', 'x', ['a', 'a', 'x', 'y']],
  ['the last', 'x', ['x', 'a', 'a']],
  ['the only one', '', ['a', 'a']]
])(
  'a table that stays under the pointer, and is %s, hands on the focus when all of its rows are decided',
  async (_, next, tools) => {
    const { section, model } = pendingSection();
    Widget.attach(section, document.body);
    const { call } = approval();
    const requests = tools.map((tool, index) =>
      approval({ id: `a${index}`, call: { ...call, tool } })
    );
    model.remember(requests);
    await section.rendered();
    const list = screen.getByRole('region', { name: 'Approval requests' });
    jest.spyOn(list, 'matches').mockReturnValue(true); // the pointer is on it
    const table = (): HTMLElement | null =>
      document.querySelector('.jp-AgentBox-batch');
    const decide = async (only: string[]): Promise<void> => {
      model.remember(
        requests
          .filter(one => one.call.tool === 'a' && only.includes(one.id))
          .map(one => ({ ...one, status: 'rejected' as const }))
      );
      await section.rendered();
    };
    table()?.focus();
    const [first, ...others] = requests
      .filter(one => one.call.tool === 'a')
      .map(({ id }) => id);
    await decide([first]);
    expect(document.activeElement).toBe(table());
    await decide(others);
    expect(table()?.getAttribute('aria-label')).toMatch(/^Decided requests/);
    const focused = document.activeElement as HTMLElement;
    expect(next ? focused.getAttribute('aria-label') : focused).toEqual(
      next ? expect.stringContaining(`shop.${next}`) : list
    );
    section.dispose();
  }
);

test('what is shown can be rejected while a filter chooses; otherwise the toolbar rejects all', async () => {
  const section = await sectionOf(6);
  expect(screen.queryByText(/Reject all/)).toBeNull();
  filterBy('tool_3');
  expect(screen.queryByText(/Reject all/)).toBeNull(); // one request has its own button
  filterBy('tool');
  expect(screen.getByText('Reject all shown (6)…')).not.toBeNull();
  section.dispose();
});

test('the form for all names and rejects what waits, also what is hidden or not rendered', async () => {
  const section = await sectionOf(60);
  expect(shown(section)).toBe(50);
  filterBy('tool_3');
  section.rejectAll();
  await section.rendered();
  expect(screen.getByLabelText<HTMLInputElement>('Filter').value).toBe('');
  expect(screen.getByRole('group', { name: 'Reject 60 requests' })).toBe(
    document.activeElement?.closest('.jp-AgentBox-card')
  );
  expect(section.node.textContent).toContain('Requests that arrive later');
  filterBy('tool_3'); // it is no longer about all
  expect(screen.queryByRole('group', { name: /^Reject/ })).toBeNull();
  expect(screen.getByText('Reject all shown (11)…')).not.toBeNull();
  section.dispose();
});

test('however many requests are shown, few are rendered: those in view, at the ends, wanted, and with an open form', async () => {
  addSizes();
  const section = await sectionOf(1000);
  for (let count = 50; count < 400; count += 50) {
    act(() => {
      screen.getByText('Show 50 more (1000 in total)').click();
    });
  }
  const items = section.node.querySelectorAll('[aria-posinset]');
  expect(items.length).toBeLessThan(100);
  expect(items[0].getAttribute('aria-setsize')).toBe('400');
  expect(items[items.length - 1].getAttribute('aria-posinset')).toBe('400');
  expect((await section.find('a300'))?.dataset['requestId']).toBe('a300');
  section.dispose();
  removeSizes();
});

test('a thousand requests of different tools are fifty cards in the page, and links to the rest', async () => {
  const section = await sectionOf(1000);
  expect(shown(section)).toBe(50);
  expect(section.node.querySelectorAll('li')).toHaveLength(50);
  expect(section.node.querySelectorAll('*').length).toBeLessThan(6_000);
  act(() => {
    screen.getByText('Show 50 more (1000 in total)').click();
  });
  expect(shown(section)).toBe(100);
  section.dispose();
});

test('calls that wait at the Hub are counted, and links lead to one in a notebook and to one at the Hub', async () => {
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  await model.refresh();
  await section.rendered();
  expect(section.node.textContent).toContain('No requests are waiting.');
  act(() => {
    const { call } = approval();
    const program = { ...call, kernel_id: null, notebook_path: null };
    model.remember([
      approvalAtHub({ id: 'a1', call: program }),
      withUrl(approvalAtHub({ id: 'a2' }), 'https://hub.example.org/x')
    ]);
  });
  expect(section.node.textContent).toContain(
    'No requests are waiting for you here.'
  );
  expect(section.node.textContent).toContain(
    '2 calls are waiting for approval at the Hub.'
  );
  const reveal = jest.spyOn(origins, 'reveal');
  screen.getByRole('button', { name: 'Show one' }).click();
  expect(reveal).toHaveBeenCalledWith(model.get('a2').approval);
  const open = jest.spyOn(window, 'open').mockReturnValue(null);
  byPerson(
    screen.getByRole('button', { name: 'Show one at the Hub' }),
    new MouseEvent('click', { bubbles: true })
  );
  expect(open.mock.calls[0]?.[0]).toBe('https://hub.example.org/x');
  section.dispose();
});

function withUrl(approval: IApproval, url: string): IApproval {
  const { outcome } = approval;
  const review = outcome?.review && { ...outcome.review, url };
  return {
    ...approval,
    outcome: { ...outcome, review } as IApproval['outcome']
  };
}

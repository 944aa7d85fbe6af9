import {
  act,
  cleanup,
  fireEvent,
  render,
  screen
} from '@testing-library/react';
import React from 'react';

import { Card } from '../../../src/ui/card/Card';
import { Forms, OpenForms } from '../../../src/ui/card/forms';
import type { IForm } from '../../../src/ui/card/forms';
import type { IJsonObject } from '../../../src/api/json';
import type { IApproval, IHubReview } from '../../../src/api/protocol';
import { allowed, approval } from '../../examples';
import { byPerson } from '../../person';

/** What the request is by now, if it is not as the card shows it. */
let present: IApproval | null = null;

function card(item: IApproval, onLeave?: () => void): JSX.Element {
  return (
    <Card
      approval={item}
      origin="orders.ipynb, cell 3"
      now={() => Date.parse('2026-01-01T00:00:00Z')}
      onDecide={async () => undefined}
      onLeave={onLeave}
      present={() => present ?? item}
    />
  );
}

function show(item: IApproval): HTMLElement {
  return render(card(item)).container;
}

test('a pending request has three buttons with these names, two with an arrow beside them', () => {
  show(approval());
  const names = screen.getAllByRole('button').map(button => button.textContent);
  expect(names).toEqual(['Allow once', '▾', 'Edit', 'Reject', '▾']);
});

test('where the call came from says whose settings the sandbox has', () => {
  const item = approval();
  item.call.isolation = 'landlock';
  item.call.has_own_settings = true;
  const place = show(item).querySelector('.jp-AgentBox-isolation');
  expect(place?.textContent).toContain("with its user's own settings");
});

test('its buttons show their letters, also where the label begins with another one', () => {
  const letters = (): (string | undefined)[][] =>
    [...document.querySelectorAll('[aria-keyshortcuts]')].map(button => [
      button.getAttribute('aria-keyshortcuts') ?? '',
      button.querySelector('u, kbd')?.textContent ?? undefined
    ]);
  const item = approval();
  show(item);
  expect(letters()).toEqual(['A', 'E', 'R'].map(letter => [letter, letter]));
  cleanup();
  item.call.server = 'agentbox';
  item.call.tool = 'register_mcp_server';
  item.call.arguments = { name: 'db', file: '/work/.mcp.json' };
  show(item);
  const trust = screen.getByRole('button', { name: 'Trust and start' });
  expect(trust.textContent).toBe('Trust and start A');
  expect(letters()).toEqual(['A', 'R'].map(letter => [letter, letter]));
});

test('trusting a server of the project, which lasts, is not called allowing once', () => {
  const item = approval();
  item.call.server = 'agentbox';
  item.call.tool = 'register_mcp_server';
  item.call.arguments = { name: 'db', file: '/work/.mcp.json' };
  show(item);
  const trust = screen.getByRole('button', { name: 'Trust and start' });
  byPerson(
    screen.getByRole('group', { name: /^Approval request/ }),
    new KeyboardEvent('keydown', { key: '?', bubbles: true })
  );
  const help = document.querySelector('.jp-AgentBox-keys');
  expect(help?.textContent).toContain('ATrust and start');
  fireEvent.click(screen.getByRole('button', { name: /^Let it run/ }));
  expect(screen.getByText(/^Trust lasts until/)).not.toBeNull();
  expect(screen.getByText('Trust with a comment…')).not.toBeNull();
  expect(trust.isConnected).toBe(true);
  expect(document.body.textContent).not.toContain('Allow once');
});

test('a final request has none of them', () => {
  show(allowed());
  expect(screen.queryAllByRole('button')).toEqual([]);
});

test('a request that is over says in one line what ran, after edits, and hides what sounds like a secret', () => {
  const item = allowed();
  item.call = { ...item.call, tool: 'restock' };
  item.call.arguments = { quantity: 25, api_key: 'sk-1' };
  const line = (): string | null | undefined =>
    document.querySelector('.jp-AgentBox-outcomeCall')?.textContent;
  const { rerender } = render(card(item));
  expect(line()).toBe('restock(quantity=25, api_key=••••)');
  const edited = item.decision && {
    ...item.decision,
    arguments: { quantity: 30 }
  };
  rerender(card({ ...item, decision: edited }));
  expect(line()).toBe('restock(quantity=30)');
});

test('untrusted text is text', () => {
  const item = approval();
  item.call.arguments = { note: '<img src=x onerror=alert(1)> **b**' };
  item.tool.title = '<b>bold</b>';
  const node = show(item);
  expect(node.querySelector('img')).toBeNull();
  expect(node.textContent).toContain('<img src=x onerror=alert(1)> **b**');
  expect(node.textContent).toContain('<b>bold</b>');
});

test('hidden characters are shown, with a warning', () => {
  const item = approval();
  item.call.arguments = { file: 'invoice\u202efdp.exe' };
  const node = show(item);
  expect(node.textContent).not.toContain('\u202e');
  expect(node.textContent).toContain('invoice\\u202efdp.exe');
  expect(screen.getByRole('note').textContent).toContain('invisible');
});

test('a letter that is not what it looks like is named, wherever it is', () => {
  const item = approval();
  item.call.look_alikes = [
    {
      of: 'tool',
      code: 'U+043E',
      name: 'CYRILLIC SMALL LETTER O',
      like: 'o'
    },
    {
      of: 'argument',
      code: 'U+13E2',
      name: 'CHEROKEE LETTER TLV',
      like: ''
    },
    { of: 'value', code: 'U+0430', name: 'CYRILLIC SMALL LETTER A', like: 'a' }
  ];
  show(item);
  const [first, second, third] = screen.getAllByRole('listitem');
  expect(first?.textContent).toBe(
    'Tool: U+043E CYRILLIC SMALL LETTER O looks like “o”'
  );
  expect(second?.textContent).toBe(
    'Argument: U+13E2 CHEROKEE LETTER TLV belongs to another script'
  );
  expect(third?.textContent).toBe(
    'Value: U+0430 CYRILLIC SMALL LETTER A looks like “a”'
  );
  expect(screen.getByRole('note').textContent).toContain('look-alike');
});

test('a final request keeps the note, and one with plain names has none', () => {
  const item = allowed();
  item.call.look_alikes = [
    { of: 'server', code: 'U+0430', name: 'CYRILLIC SMALL LETTER A', like: 'a' }
  ];
  const node = show(item);
  expect(node.querySelector('.jp-AgentBox-lookAlikes')).not.toBeNull();
  expect(show(approval()).querySelector('.jp-AgentBox-lookAlikes')).toBeNull();
});

test('a long text shows both ends, and a line says how much was never shown', () => {
  const item = approval();
  const gap = '-'.repeat(30_000);
  item.call.arguments = { sql: `first${gap}middle${gap}last` };
  const node = show(item);
  expect(node.textContent).toMatch(/first.*last/);
  expect(node.textContent).toContain('1 line, 60,015 characters');
  expect(node.textContent).not.toContain('middle');
  const unseen = 'You have not seen 40,015 characters of “sql”.';
  expect(node.textContent).toContain(unseen);
  fireEvent.click(screen.getByText('Show all 60,015 characters'));
  expect(node.textContent).toContain('middle');
  expect(node.textContent).not.toContain('You have not seen');
  fireEvent.click(screen.getByText('Show less'));
  expect(node.textContent).not.toContain('You have not seen');
});

test('the time that is left is shown', () => {
  show(approval({ expires_at: '2026-01-01T00:09:41Z' }));
  expect(screen.getByRole('timer').textContent).toBe('9:41 left');
});

test('a request that ends by itself sends no key that is typed in its card to the notebook', () => {
  const onLeave = jest.fn();
  const { container, rerender } = render(card(approval(), onLeave));
  screen.getByRole('button', { name: 'Reject' }).focus();

  rerender(card({ ...approval(), status: 'cancelled' }, onLeave));

  const node = container.querySelector<HTMLElement>('[data-request-id]');
  expect(onLeave).not.toHaveBeenCalled();
  expect(document.activeElement).toBe(node);
  expect(node?.dataset.lmSuppressShortcuts).toBe('true');
  act(() => {
    node?.blur();
  });
  expect(node?.dataset.lmSuppressShortcuts).toBeUndefined();
});

test.each([
  [
    'a reason',
    { mode: 'reject', reason: ' still open\n', draft: null },
    'still open'
  ],
  ['nothing', { mode: 'reject', reason: ' ', draft: null }, undefined],
  [
    'a comment',
    {
      mode: 'comment',
      reason: '',
      draft: null,
      comment: { text: 'mind the stock', isTold: true }
    },
    'mind the stock'
  ],
  [
    'arguments',
    {
      mode: 'edit',
      reason: '',
      draft: {
        mode: 'json',
        start: { id: 1 },
        values: { id: 1 },
        text: '{"id": 2',
        problem: null
      }
    },
    '{"id": 2'
  ]
] as [string, IForm, string | undefined][])(
  'when a cell is interrupted while somebody types %s, that can still be copied',
  (_, form, typed) => {
    const forms = new Forms();
    const item = approval();
    forms.set(item.id, form);
    const within = (node: JSX.Element): JSX.Element => (
      <OpenForms.Provider value={forms}>{node}</OpenForms.Provider>
    );
    const { rerender } = render(within(card(item)));
    const ended: IApproval = { ...item, status: 'cancelled' };
    present = ended;
    rerender(within(card(ended)));
    present = null;
    expect(screen.getByRole('alert').textContent).toContain('interrupted');
    const kept = screen.queryByLabelText<HTMLTextAreaElement>(/not sent/);
    expect(kept?.value).toBe(typed);
    expect(kept?.readOnly ?? true).toBe(true);
  }
);

test('the first sentence of the description is shown as the server’s words, and the rest is a click away', () => {
  const item = approval();
  item.tool.description = 'Delete an order for good. There is no undo.';
  show(item);
  expect(screen.getByText('Server’s words:').parentElement?.textContent).toBe(
    'Server’s words: “Delete an order for good.”'
  );
  expect(screen.getByText('Server’s description')).not.toBeNull();
});

test('the reason of a rule that asks is quoted in one line of text; one that nobody wrote is not', () => {
  const words = (layer: string): string | undefined => {
    const evaluation: IApproval['evaluation'] = {
      effect: 'ask',
      rule: `${layer}: ask shop.*`,
      reason: 'ask <b>Ada</b>\nfirst \u202e',
      layer
    };
    const { unmount } = render(card(approval({ evaluation })));
    const said = screen.queryByText('Rule’s words:')?.parentElement;
    unmount();
    return said?.textContent;
  };
  expect(words('user')).toBe('Rule’s words: “ask <b>Ada</b> first \\u202e”');
  expect(words('session')).toBeUndefined();
});

test.each(['pending', 'expired'] as const)(
  'a description of one sentence is the server’s words once while a request is %s',
  status => {
    const item = approval({ status });
    item.tool.description = 'Delete an order.';
    show(item);
    expect(screen.getByText('Server’s words:').parentElement?.textContent).toBe(
      'Server’s words: “Delete an order.”'
    );
    expect(screen.queryByText('Server’s description')).toBeNull();
  }
);

test('allowing is the obvious answer only where the server says that nothing is destroyed', () => {
  const hints: IJsonObject[] = [
    { readOnlyHint: true },
    { destructiveHint: true },
    {}
  ];
  const looks = hints.map(annotations => {
    const item = approval();
    item.tool.annotations = annotations;
    const { container, unmount } = render(card(item));
    const look = [
      container.querySelector('[data-risk]')?.getAttribute('data-risk'),
      screen.getByRole('button', { name: 'Allow once' }).className
    ];
    unmount();
    return look;
  });
  expect(looks).toEqual([
    ['readonly', 'jp-AgentBox-button jp-mod-allow'],
    ['destructive', 'jp-AgentBox-button jp-mod-caution'],
    ['unsaid', 'jp-AgentBox-button jp-mod-caution']
  ]);
});

test('a request that ends shortly can be kept waiting, as long as the server lets it', async () => {
  const onExtend = jest.fn(() => Promise.resolve(false));
  const at = (expires_at: string): JSX.Element => (
    <Card
      approval={approval({ expires_at })}
      origin="orders.ipynb, cell 3"
      now={() => Date.parse('2026-01-01T00:00:00Z')}
      onDecide={async () => undefined}
      onExtend={onExtend}
    />
  );
  const { rerender } = render(at('2026-01-01T00:02:01Z'));
  expect(screen.queryByText('Keep waiting')).toBeNull();
  rerender(at('2026-01-01T00:02:00Z'));
  fireEvent.click(screen.getByText('Keep waiting'));
  expect(onExtend).toHaveBeenCalledTimes(1);
  expect(await screen.findByText('Cannot wait longer.')).not.toBeNull();
});

test('who keeps a request waiting by a key goes on from the time that is left', async () => {
  const at = (expires_at: string, isLonger: boolean): JSX.Element => (
    <Card
      approval={approval({ expires_at })}
      origin="orders.ipynb, cell 3"
      now={() => Date.parse('2026-01-01T00:00:00Z')}
      onDecide={async () => undefined}
      onExtend={() => Promise.resolve(isLonger)}
    />
  );
  const { rerender } = render(at('2026-01-01T00:01:00Z', true));
  const place = screen.getByRole('timer').parentElement;
  screen.getByText('Keep waiting').focus();
  rerender(at('2026-01-01T00:10:00Z', true));
  expect(screen.queryByText('Keep waiting')).toBeNull();
  expect(document.activeElement).toBe(place);
  rerender(at('2026-01-01T00:01:00Z', false));
  screen.getByText('Keep waiting').focus();
  fireEvent.click(screen.getByText('Keep waiting'));
  await screen.findByText('Cannot wait longer.');
  expect(document.activeElement).toBe(place);
});

test('a form in which somebody types keeps its request waiting; one that was left does not', () => {
  jest.useFakeTimers();
  const onExtend = jest.fn(() => Promise.resolve(true));
  const shared = new Forms();
  shared.set('a1', { mode: 'reject', reason: '', draft: null });
  const { unmount } = render(
    <OpenForms.Provider value={shared}>
      <Card
        approval={approval({ expires_at: '2026-01-01T00:01:59Z' })}
        origin="orders.ipynb, cell 3"
        now={() => Date.parse('2026-01-01T00:00:00Z')}
        onDecide={async () => undefined}
        onExtend={onExtend}
      />
    </OpenForms.Provider>
  );
  act(() => {
    jest.advanceTimersByTime(10_000);
  });
  expect(onExtend).not.toHaveBeenCalled();
  fireEvent.keyDown(screen.getByRole('textbox'), { key: 'a' });
  expect(onExtend).toHaveBeenCalledTimes(1);
  act(() => {
    jest.advanceTimersByTime(60_000);
  });
  const calls = onExtend.mock.calls.length;
  act(() => {
    jest.advanceTimersByTime(60_000);
  });
  expect(onExtend).toHaveBeenCalledTimes(calls);
  unmount();
  jest.useRealTimers();
});

test('a value whose name sounds like a secret is shown on request, and not seen before', () => {
  const item = approval();
  item.call.arguments = { api_key: 'sk-12345', key: 'name' };
  const node = show(item);
  expect(node.textContent).not.toContain('sk-12345');
  expect(node.textContent).toContain('“name”');
  expect(node.textContent).toContain(
    'You have not seen 8 characters of “api_key”.'
  );
  fireEvent.click(screen.getByText('Show 8 hidden characters'));
  expect(node.textContent).toContain('sk-12345');
  expect(node.textContent).not.toContain('You have not seen');
});

test('objects that have the same names are a table, and others are not', () => {
  const item = approval();
  item.call.arguments = {
    same: [
      { id: 1, name: 'a' },
      { id: 2, name: '\u202eb' }
    ],
    other: [{ id: 1 }, { name: 'a' }]
  };
  show(item);
  expect(screen.getAllByRole('table')).toHaveLength(1);
  const cells = screen.getAllByRole('cell').map(cell => cell.textContent);
  expect(cells).toEqual(['1', '“a”', '2', '“\\u202eb”']);
});

test('a text that stands in the place of another is shown as a difference', () => {
  const item = approval();
  item.call.arguments = {
    path: 'a',
    old_text: 'one\ntwo',
    new_text: 'one\nzwei'
  };
  show(item);
  const group = screen.getByRole('group', { name: 'What new_text changes' });
  expect(group.textContent).toContain('Removed:two');
  expect(group.textContent).toContain('Added:zwei');
});

/** The text of a running call's card. */
function running(outcome: Partial<IApproval['outcome']>): HTMLElement {
  const item = allowed({ status: 'approved' });
  item.outcome = {
    state: 'running',
    started_at: null,
    finished_at: null,
    error: '',
    ...outcome
  };
  return show(item);
}

test.each([
  [42, 100, '42 of 100'],
  [1234, 5678, '1,234 of 5,678'],
  [0.25, 1, '25%'],
  [3, null, '3'],
  [7, 5, '7 of 5'],
  [1e300, 2, '100%'],
  [-0.5, 2, '0%'],
  [1e300, null, '']
])('a running call is at %s of %s', (progress, total, text) => {
  const node = running({ progress: { progress, total, message: '' } });
  const shown = node.querySelector('.jp-AgentBox-progress')?.textContent;
  expect(shown).toBe(text);
});

test('while others are asked at the Hub, the card says who, how many answered, and until when', () => {
  const review: IHubReview = {
    status: 'pending',
    groups: ['stewards', 'on-\u202ecall'],
    count: 2,
    approved_by: [],
    expires_at: '2026-01-01T00:10:00Z',
    rejected_by: null,
    reason: '',
    url: '/services/agentbox/requests/r1'
  };
  const progress = { progress: 0, total: 2, message: 'waits for 2' };
  const node = running({ progress, review });
  const group = screen.getByRole('group', { name: 'Approval at the Hub' });
  expect(group.textContent).toContain(
    'Asked at the Hub: 2 members of stewards or on-\\u202ecall. Nobody has approved yet.'
  );
  expect(group.querySelector('[role="timer"]')).not.toBeNull();
  expect(node.querySelector('progress')).toBeNull();
  cleanup();

  running({ progress, review: { ...review, approved_by: ['bob'] } });
  expect(
    screen.getByRole('group', { name: 'Approval at the Hub' }).textContent
  ).toContain('1 of 2 approved: bob.');
});

test('whose own answer is awaited at the Hub is told so', () => {
  const review = {
    status: 'pending' as const,
    groups: [],
    count: 1,
    approved_by: [],
    expires_at: null,
    rejected_by: null,
    reason: '',
    url: 'javascript:alert(1)'
  };
  running({ review });
  const group = screen.getByRole('group', { name: 'Approval at the Hub' });
  expect(group.textContent).toBe('Asked at the Hub: you. Review at the Hub');
});

test('the record of a call says who was asked at the Hub, and who approved', () => {
  const node = running({
    state: 'succeeded',
    review: {
      status: 'approved',
      groups: ['stewards'],
      count: 2,
      approved_by: ['bob', 'cleo'],
      expires_at: null,
      rejected_by: null,
      reason: '',
      url: null
    }
  });
  expect(node.textContent).toContain('Asked at the Hub2 members of stewards');
  expect(node.textContent).toContain('Approved at the Hub bybob and cleo');
  expect(
    screen.queryByRole('group', { name: 'Approval at the Hub' })
  ).toBeNull();
});

test('the last lines that a server logs are its words, shown as text and cut', () => {
  const message = (level: string, text: string) => ({
    level,
    logger: '',
    text
  });
  const node = running({
    messages: [
      message('info', 'long ago'),
      message('info', '<img src=x> \u202eopened'),
      message('error', 'x'.repeat(500)),
      message('debug', 'sorted')
    ]
  });
  const lines = node.querySelectorAll('.jp-AgentBox-messages > span');
  const texts = [...lines].map(line => line.textContent ?? '');
  expect(texts[0]).toBe('shop: <img src=x> \\u202eopened');
  expect(texts[1]).toMatch(/^shop: \[error\] x{100,199}…$/);
  expect(texts[2]).toBe('shop: sorted');
  expect(node.querySelector('[role="status"]')?.textContent).not.toContain(
    'sorted'
  );
});

test('of a change, which is never asked about, is not said why it was', () => {
  const item = allowed();
  const call = { ...item.call, server: 'agentbox', tool: 'stop_server' };
  const node = show({ ...item, call });
  expect(node.textContent).toContain('Done by ada.');
  expect(node.textContent).not.toContain('Why you were');
});

test('what a server logged is not shown when the call is over', () => {
  const node = running({
    state: 'succeeded',
    messages: [{ level: 'info', logger: '', text: 'sorted' }]
  });
  expect(node.textContent).not.toContain('sorted');
});

test.each([
  ['changed', 'This tool has changed since somebody looked at it.'],
  ['new', 'This tool is new since somebody looked'],
  [null, '']
] as const)(
  'a tool that is %s since somebody looked says so before the buttons',
  (mark, text) => {
    const item = approval();
    item.tool = { ...item.tool, mark };
    show(item);
    const notes = screen.queryAllByRole('note');
    expect(notes.map(note => note.textContent)).toEqual(
      mark ? [expect.stringContaining(text)] : []
    );
  }
);

test('the details of a call say who may have asked', () => {
  const item = allowed();
  const asker = { kind: 'user', display_name: null, via: 'browser' } as const;
  item.call = {
    ...item.call,
    askers: [
      { ...asker, name: 'ada' },
      { ...asker, name: 'ben' },
      { ...asker, name: '', via: 'api_token' },
      { ...asker, name: '', via: 'unknown' }
    ]
  };
  expect(show(item).textContent).toContain(
    'Asked byada or ben or a program with a token or somebody unknown'
  );
});

test('the details of a call say what its server asked, and who made the call without code', () => {
  const item = allowed();
  item.call = { ...item.call, person: 'ada' };
  const asked = { mode: 'form', url: null, message: 'Where to?' } as const;
  item.outcome = {
    state: 'succeeded',
    started_at: null,
    finished_at: null,
    error: '',
    questions: [
      { ...asked, action: 'accept', reviewer: 'bob' },
      { ...asked, action: 'decline', reviewer: 'bob' },
      { ...asked, url: 'https://shop/sign', action: 'cancel', reviewer: null }
    ]
  };
  const text = show(item).textContent;
  expect(text).toContain('Called in the panel byada');
  expect(text).toContain('The server asked“Where to?” Answered by bob.');
  expect(text).toContain('The server asked“Where to?” Declined by bob.');
  expect(text).toContain('“Where to?” https://shop/sign Nobody answered.');
});

/** The texts of the changes that a request's card shows after an edit, by the name of the argument. */
function changes(
  before: IJsonObject,
  after: IJsonObject
): Record<string, string | null> {
  const item = allowed();
  item.call = { ...item.call, arguments: before };
  item.decision = item.decision && { ...item.decision, arguments: after };
  const rows = show(item).querySelectorAll('.jp-AgentBox-changes > div');
  return Object.fromEntries(
    [...rows].map(row => [
      row.querySelector('dt')?.textContent,
      (row.querySelector('dd')?.textContent ?? '').trim()
    ])
  );
}

test('a request that was edited says what was changed: a short value before and after, a long one as a difference', () => {
  const [head, tail] = ['h'.repeat(300), 't'.repeat(300)];
  expect(
    changes(
      { price: 149, sql: `${head}old${tail}`, note: 'one\ntwo', id: 5 },
      { price: 14.9, sql: `${head}new${tail}`, note: 'one\nzwei', id: 5 }
    )
  ).toEqual({
    price: '149 → 14.9',
    sql: `1−Removed:⋯${'h'.repeat(60)}old${'t'.repeat(60)}⋯1+Added:⋯${'h'.repeat(60)}new${'t'.repeat(60)}⋯`,
    note: '1 one2−Removed:two2+Added:zwei'
  });
  const marks = [...document.querySelectorAll('mark')];
  expect(marks.map(mark => mark.textContent)).toEqual(['old', 'new']);
  const box = screen.getByRole('group', { name: 'Changes to sql' });
  expect(box.tabIndex).toBe(0);
});

test('the changes of a long object are a difference, in which secrets are shown on request', () => {
  const list = Array.from({ length: 40 }, (_, at) => at);
  const found = changes(
    { options: { list, token: 'a', limit: 1 } },
    { options: { list, token: 'b', limit: 2 } }
  );
  expect(found['options']).toContain('"token": "••••••••"');
  expect(found['options']).toContain('Removed:  "limit": 1');
  fireEvent.click(screen.getAllByText('Show 2 hidden characters')[0]);
  const dd = document.querySelector('.jp-AgentBox-changes dd');
  expect(dd?.textContent).toContain('Removed:  "token": "a"');
});

test('where only secrets were changed, nothing of them is shown', () => {
  const list = Array.from({ length: 40 }, (_, at) => at);
  expect(
    changes(
      { options: { list, token: 'a' }, password: 'one' },
      { options: { list, token: 'b' }, password: 'two' }
    )
  ).toEqual({
    options: '•••••••• → •••••••• Show 2 hidden characters',
    password: '•••••••• → •••••••• Show 6 hidden characters'
  });
});

test('nothing is said of changes whose original arguments are no longer there', () => {
  const item = allowed();
  item.call.omitted = { size: 20_000, head: '{"sql"' };
  item.decision = item.decision && { ...item.decision, arguments: { a: 1 } };
  expect(show(item).querySelector('.jp-AgentBox-changes')).toBeNull();
});

import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { Card } from '../../../src/ui/card/Card';
import type { IApproval, IGrantUse } from '../../../src/api/protocol';
import type { PersonalAnswer } from '../../../src/internalTokens';
import { layOut, waitForButtons } from '../../layout';
import { byPerson } from '../../person';
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
  const scrolled = jest.spyOn(Element.prototype, 'scrollIntoView');
  open('Let it run more often…');
  expect(scrolled.mock.contexts).toEqual([
    screen.getByRole('group', { name: 'More ways to allow' })
  ]);
  const answer = screen.getByText(
    'Allow shop.delete_order in this notebook until its kernel ends'
  );
  expect(node.querySelector('.jp-AgentBox-card')?.contains(answer)).toBe(true);
  expect(document.activeElement?.textContent).toContain('this exact call');
  fireEvent.keyDown(answer, { key: 'Escape' });
  expect(screen.queryByText(/in this notebook/)).toBeNull();
  expect(document.activeElement?.getAttribute('aria-label')).toBe(
    'Let it run more often…'
  );
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

test('a person chooses until when and how often, by the button that says all of it', async () => {
  jest.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z') });
  layOut();
  const { sent } = show(approval());
  const press = async (name: string | RegExp): Promise<void> => {
    waitForButtons();
    jest.setSystemTime(Date.parse('2026-01-01T00:00:00Z'));
    await act(async () => {
      const click = new MouseEvent('click', { bubbles: true });
      byPerson(screen.getByRole('button', { name }), click);
    });
  };
  const type = (name: string, value: string): void => {
    fireEvent.change(screen.getByLabelText(name), { target: { value } });
  };
  open('Let it run more often…');
  await press('Choose a time or a number of calls…');
  expect(screen.getByLabelText('Time')).toBe(document.activeElement);
  expect(screen.queryByRole('button', { name: /^Allow shop/ })).toBeNull();
  type('Time', '2x');
  expect(screen.queryByRole('button', { name: /^Allow shop/ })).toBeNull();
  type('Time', '2');
  type('Unit of time', 'hours');
  type('Maximum number of calls', '20');
  await press(
    'Allow shop.delete_order in all notebooks for 2 hours, but at most 20 calls, including this one'
  );
  jest.useRealTimers();
  jest.restoreAllMocks();
  const until = '2026-01-01T02:00:00.000Z';
  const grant = { scope: 'user', until, uses: 20 };
  expect(sent).toEqual([{ decision: 'allow_always', grant }]);
});

test('Escape and “Back” lead from the form back to the lasting answers', () => {
  jest.useFakeTimers();
  layOut();
  show(approval());
  open('Keep it from running…');
  const choose = (): void => {
    waitForButtons();
    const click = new MouseEvent('click', { bubbles: true });
    byPerson(screen.getByRole('button', { name: 'Choose a time…' }), click);
  };
  choose();
  expect(screen.queryByLabelText('Maximum number of calls')).toBeNull();
  fireEvent.keyDown(screen.getByLabelText('Time'), { key: 'Escape' });
  expect(document.activeElement?.textContent).toBe('Choose a time…');
  choose();
  waitForButtons();
  byPerson(
    screen.getByRole('button', { name: 'Back' }),
    new MouseEvent('click', { bubbles: true })
  );
  jest.useRealTimers();
  jest.restoreAllMocks();
  expect(screen.getByText(/in this notebook/)).not.toBeNull();
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
  expect(node.textContent).toMatch(
    /Allowed by the lasting answer of .* by ada\./
  );
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

test('a request that asks again because of another command shows it, and nothing that stayed the same', () => {
  const item = approval();
  item.evaluation.voided = {
    grant: USE,
    void: 'server',
    before: item.tool,
    server: { before: 'shop --dry-run\nenv: SHOP', now: 'shop\nenv: SHOP' }
  };
  const { node } = show(item);
  const lines = [...node.querySelectorAll('.jp-AgentBox-diffLines > div')];
  expect(lines.map(line => line.textContent)).toEqual([
    '1−Removed:shop --dry-run',
    '1+Added:shop',
    '2 env: SHOP'
  ]);
  item.evaluation.voided.server = null;
  const same = show(item).node;
  expect(same.querySelector('.jp-AgentBox-difference')).toBeNull();
  expect(same.textContent).not.toContain('No changes');
});

test('a request that asks again because of another result shows its schema', () => {
  const item = approval();
  item.evaluation.voided = {
    grant: USE,
    void: 'definition',
    before: { ...item.tool, output_schema: { type: 'object' } }
  };
  item.tool.output_schema = { type: 'array' };
  const { node } = show(item);
  expect(node.textContent).toContain('Removed: "type": "object"');
  expect(node.textContent).toContain('Added: "type": "array"');
});

test('both arrows lead to a rule, unless a part of the arguments was never shown', () => {
  const item = approval();
  const props = {
    origin: '',
    now: () => 0,
    onDecide: async () => undefined,
    onMakeRule: jest.fn()
  };
  const { rerender } = render(<Card approval={item} {...props} />);
  open('Let it run more often…');
  expect(screen.getByText('Make a rule…')).not.toBeNull();
  open('Keep it from running…');
  expect(screen.getByText('Make a rule…')).not.toBeNull();
  const call = { ...item.call, arguments: { sql: '-'.repeat(60_000) } };
  rerender(<Card approval={{ ...item, call }} {...props} />);
  expect(screen.queryByText('Make a rule…')).toBeNull();
});

test('a final card leads to a rule with the effect that it had', () => {
  const onMakeRule = jest.fn();
  for (const item of [allowed(), approval({ status: 'rejected' })]) {
    const { unmount } = render(
      <Card
        approval={item}
        origin=""
        now={() => 0}
        onDecide={async () => undefined}
        onMakeRule={onMakeRule}
      />
    );
    fireEvent.click(screen.getByText('Make a rule…'));
    unmount();
  }
  expect(onMakeRule.mock.calls).toEqual([['allow'], ['deny']]);
});

test.each([
  [
    { effect: 'ask', rule: null },
    'Why you were asked',
    'No rule covers this call, nor does an earlier answer'
  ],
  [
    { effect: 'ask', rule: 'user: ask shop.*', file: '/r.json', line: 3 },
    'Why you were asked',
    'Rule “user: ask shop.*” asks for approval. (/r.json:3)'
  ],
  [
    { effect: 'ask', rule: 'user: ask shop.*', reason: 'ask\nAda \u202e' },
    'Why you were asked',
    'Rule “user: ask shop.*” asks for approval. Its words: “ask Ada \\u202e”'
  ],
  [
    { effect: 'allow', rule: 'site: allow shop.*', file: '/s.json', line: 9 },
    'Why you were not asked',
    'Rule “site: allow shop.*” allows this call. (/s.json:9)'
  ],
  [
    { effect: 'allow', rule: null, grant: USE },
    'Why you were not asked',
    'Allowed by the lasting answer of'
  ]
] as [IApproval['evaluation'], string, string][])(
  'the details say why somebody was asked or not: %j',
  (evaluation, name, why) => {
    const status = evaluation.effect === 'ask' ? 'pending' : 'approved';
    show(approval({ status, evaluation }));
    expect(screen.getByText(name).nextSibling?.textContent).toContain(why);
  }
);

test.each([
  ['any', 'site', ['call', 'kernel', 'user', 'user'], null],
  ['kernel', 'site', ['call', 'kernel'], /until their kernel ends, and not/],
  [undefined, 'user', ['call', 'kernel', 'user', 'user'], /asks about each/],
  [undefined, 'session', ['call', 'kernel', 'user', 'user'], null]
] as const)(
  'where a rule that asks lets %s last (%s), the card says so and offers no more',
  (grants, layer, scopes, note) => {
    const item = approval({
      evaluation: { effect: 'ask', rule: 'a rule', layer, grants }
    });
    show(item);
    open('Let it run more often…');
    const group = screen.getByRole('group', { name: 'More ways to allow' });
    const shown = [...group.querySelectorAll('button')].filter(button =>
      /until its kernel|for 1 hour|for 10 calls/.test(button.textContent ?? '')
    );
    expect(shown).toHaveLength(scopes.length);
    expect(screen.queryByText('Choose a time or a number of calls…')).toEqual(
      scopes.length > 2 ? expect.anything() : null
    );
    const text = group.querySelector('.jp-AgentBox-note')?.textContent ?? null;
    expect(text).toEqual(note && expect.stringMatching(note));
  }
);

import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { RequestError } from '../../../src/api/errors';
import type { IJsonObject } from '../../../src/api/json';
import type { IEffectiveRule, IPolicy } from '../../../src/api/rules';
import { RuleList } from '../../../src/features/rules/RuleList';
import type { IRulesModel } from '../../../src/model/rules';
import { layOut, setCovered, waitForButtons } from '../../layout';
import { byPerson } from '../../person';

const OWN = { effect: 'allow', server: 'shop', tool: 'list_*' } as const;
const SITE = { effect: 'deny', server: '*', tool: 'drop_*' } as const;

const effective: IEffectiveRule[] = [
  { ...SITE, layer: 'site', file: '/etc/jupyter/r.json', line: 3 },
  { ...OWN, layer: 'user', file: '/home/r.json', line: 2, reason: 'reads' }
];

function show(
  policy: Partial<IPolicy> = {},
  more: Partial<IRulesModel> = {}
): IRulesModel {
  const model = {
    changed: new Signal<object, void>({}),
    policy: {
      rules: [OWN],
      file: '/home/r.json',
      revision: 'r1',
      writable: true,
      effective,
      problems: [],
      ...policy
    },
    proposal: null,
    refresh: jest.fn(() => Promise.resolve()),
    save: jest.fn(() => Promise.resolve()),
    tryRule: jest.fn(() =>
      Promise.resolve({
        looked_at: 50,
        matched: 46,
        allow: 41,
        ask: 3,
        deny: 2,
        unknown: 0
      })
    ),
    propose: jest.fn(),
    ...more
  } as unknown as IRulesModel;
  render(<RuleList rules={model} />);
  return model;
}

async function press(name: string): Promise<void> {
  await act(async () => {
    byPerson(
      screen.getByRole('button', { name }),
      new MouseEvent('click', { bubbles: true })
    );
  });
}

function type(name: string, value: string): void {
  fireEvent.change(screen.getByLabelText(name), { target: { value } });
}

/** Fill in what every rule has. */
function fillIn(): void {
  type('Server', 'bank');
  type('Tool', 'pay');
}

function pressEscape(): void {
  const init = { key: 'Escape', bubbles: true };
  fireEvent.keyDown(document.activeElement ?? document.body, init);
}

beforeEach(() => {
  jest.useFakeTimers();
  layOut();
});

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Have the rules change, as the server says. */
function change(model: IRulesModel, fields: Partial<IPolicy>): void {
  Object.assign(model, { policy: { ...model.policy, ...fields } });
  act(() => {
    (model.changed as Signal<object, void>).emit();
  });
}

const text = (): string => document.body.textContent ?? '';

test('each rule is shown with what it does, where it stands and why', () => {
  show();
  expect(text()).toContain('Allow shop.list_*reads/home/r.json:2');
  expect(text()).toContain(
    'Deny *.drop_*Set by your administrator · /etc/jupyter/r.json:3'
  );
});

test('a rule of the site cannot be changed, one of the user can', async () => {
  const model = show();
  expect(screen.queryByRole('button', { name: 'Remove *.drop_*' })).toBeNull();
  waitForButtons();
  await press('Remove shop.list_*');
  expect(model.save).toHaveBeenCalledWith([], 'r1');
});

test('the second click of a double click on “Remove” does not remove the rule that comes into its place', async () => {
  const other = { ...effective[1], tool: 'get_*', line: 3 };
  const model = show({
    rules: [OWN, OWN],
    effective: [...effective, other]
  });
  waitForButtons();
  const press = async (name: string): Promise<void> => {
    const [button] = screen.getAllByRole('button', { name: /^Remove/ });
    expect(button.getAttribute('aria-label')).toBe(name);
    await act(async () => {
      byPerson(button, new MouseEvent('click', { bubbles: true }));
    });
  };
  await press('Remove shop.list_*');
  expect(model.save).toHaveBeenCalledTimes(1);
  change(model, { revision: 'r2', rules: [OWN], effective: [other] });
  await press('Remove shop.get_*');
  expect(model.save).toHaveBeenCalledTimes(1);
});

test('a second press on “Remove” while the first is under way asks for nothing', async () => {
  let answer = (): void => undefined;
  const answered = new Promise<void>(resolve => {
    answer = resolve;
  });
  const model = show({}, { save: jest.fn(() => answered) });
  waitForButtons();
  await press('Remove shop.list_*');
  await press('Remove shop.list_*');
  expect(model.save).toHaveBeenCalledTimes(1);
  await act(async () => {
    answer();
  });
  expect(text()).not.toContain('That did not count');
});

test('the focus stays with the rules where the button that had it goes away', async () => {
  const model = show();
  const rules = screen.getByRole('region', { name: 'Rules' });
  const focus = (name: string): void => {
    act(() => {
      screen.getByRole('button', { name }).focus();
    });
  };
  focus('Remove shop.list_*');
  change(model, { revision: 'r2', rules: [], effective: [] });
  expect(document.activeElement).toBe(rules);
  await press('New rule…');
  focus('Cancel');
  await press('Cancel');
  expect(document.activeElement).toBe(rules);
});

test.each([
  ['New rule…', 'Effect'],
  ['Edit shop.list_*', 'Effect'],
  ['Edit as JSON…', 'Rules as JSON']
])(
  'after “%s” one goes on in the first field of its form',
  async (name, field) => {
    show();
    await press(name);
    expect(document.activeElement).toBe(screen.getByLabelText(field));
  }
);

function propose(rule: IJsonObject, names: string[] = []): void {
  show({}, { proposal: { rule, names } });
}

test('a rule that is wider than the call says so until there is a condition', () => {
  propose({ effect: 'allow', server: 'db', tool: 'query' }, ['sql', 'tags']);
  expect(screen.getByRole('note').textContent).toContain(
    'The rule matches any value of: sql, tags.'
  );
  type('Arguments (JSON)', '{"sql": "SELECT *"}');
  expect(screen.getByRole('note').textContent).toContain('any value of: tags.');
});

test('a form that a request filled in has the focus', () => {
  propose({ effect: 'deny', server: 'a', tool: 'b' });
  expect(document.activeElement).toBe(screen.getByLabelText('Effect'));
});

test.each([
  ['Arguments (JSON)', 'n=3', 'The arguments are not a JSON object'],
  ['Arguments (JSON)', '[3]', 'The arguments are not a JSON object'],
  ['Seconds to wait', 'ten', 'The seconds to wait are not a number.'],
  ['Seconds to wait', '{}', 'The seconds to wait are not a number.']
])(
  'a rule with %j of %j is not written, and it says why',
  async (field, value, why) => {
    const model = show();
    await press('New rule…');
    fillIn();
    type(field, value);
    waitForButtons();
    await press('Save rule');
    expect(document.activeElement).toBe(screen.getByLabelText(field));
    await press('Try on the history');
    expect(text()).toContain(why);
    expect(model.save).not.toHaveBeenCalled();
    expect(model.tryRule).not.toHaveBeenCalled();
  }
);

test('a change of the rules takes the focus from nothing else', () => {
  const model = show();
  const elsewhere = document.body.appendChild(document.createElement('input'));
  elsewhere.focus();
  change(model, { revision: 'r2', rules: [], effective: [] });
  expect(document.activeElement).toBe(elsewhere);
  elsewhere.remove();
});

test('a broken file is shown with line and column', () => {
  show({
    problems: [{ path: '/home/r.json', message: 'no', line: 2, column: 7 }]
  });
  expect(text()).toContain('/home/r.json, line 2, column 7');
});

test('a rule is written as a form, with digits as they were typed', async () => {
  const model = show();
  await press('New rule…');
  type('Server', 'bank');
  type('Tool', 'pay');
  type('Arguments (JSON)', '{"id": 12345678901234567890}');
  type('Seconds to wait', '30');
  waitForButtons();
  await press('Save rule');
  const [rules] = jest.mocked(model.save).mock.calls[0];
  expect(rules).toHaveLength(2);
  expect(String((rules[1]['arguments'] as { id: object }).id)).toBe(
    '12345678901234567890'
  );
  expect(rules[1]).toMatchObject({ server: 'bank', tool: 'pay', timeout: 30 });
});

test('a rule can be tried on the history before it is written', async () => {
  const model = show();
  await press('New rule…');
  fillIn();
  await press('Try on the history');
  expect(text()).toContain('Of the last 50 calls, it matches 46.');
  expect(text()).toContain(
    'would have allowed 41, asked about 3 and denied 2.'
  );
  expect(model.save).not.toHaveBeenCalled();
});

test.each([
  [{ looked_at: 0 }, 'The history has no calls yet.'],
  [{ looked_at: 1 }, 'It does not match the last call.'],
  [{ looked_at: 9 }, 'Of the last 9 calls, it matches none.'],
  [
    { looked_at: 1, matched: 1, allow: 1 },
    'It matches the last call. It would have allowed 1.'
  ],
  [
    { looked_at: 9, matched: 5, ask: 3, deny: 2 },
    'Of the last 9 calls, it matches 5. It would have asked about 3 and denied 2.'
  ],
  [
    { looked_at: 9, matched: 9, allow: 4, ask: 3, deny: 2 },
    'Of the last 9 calls, it matches 9. It would have allowed 4, asked about 3 and denied 2.'
  ],
  [
    { looked_at: 9, matched: 2, unknown: 2 },
    'Of the last 9 calls, it matches 2.'
  ]
])('of a try that finds %j it says nothing of zero', async (found, words) => {
  const nothing = { matched: 0, allow: 0, ask: 0, deny: 0, unknown: 0 };
  show(
    {},
    { tryRule: jest.fn(() => Promise.resolve({ ...nothing, ...found })) }
  );
  await press('New rule…');
  fillIn();
  await press('Try on the history');
  const said = document.querySelector('.jp-AgentBox-ruleSaid');
  expect(said?.textContent).toBe(words);
});

test('a new rule asks, has no tool yet, and each of its fields says what it is for', async () => {
  show();
  await press('New rule…');
  expect(screen.getByLabelText('Effect')).toHaveProperty('value', 'ask');
  const tool = screen.getByLabelText('Tool') as HTMLInputElement;
  expect([tool.value, tool.placeholder]).toEqual(['', 'e.g. set_*']);
  const fields = document.querySelectorAll('input, select, textarea');
  expect(fields).toHaveLength(8);
  for (const field of fields) {
    const hint = field.getAttribute('aria-describedby') ?? '';
    expect(document.getElementById(hint)?.textContent).toBeTruthy();
  }
});

test('a rule that lacks something cannot be saved, says why, and a try leads there', async () => {
  const model = show();
  await press('New rule…');
  waitForButtons();
  const save = screen.getByRole('button', { name: 'Save rule' });
  const why = (): string =>
    document.getElementById(save.getAttribute('aria-describedby') ?? '')
      ?.textContent ?? '';
  expect(save.getAttribute('aria-disabled')).toBe('true');
  expect(why()).toBe('Fill in the server first.');
  await press('Save rule');
  expect(document.activeElement).toBe(screen.getByLabelText('Server'));
  type('Server', 'bank');
  expect(why()).toBe('Fill in the tool first.');
  await press('Save rule');
  expect(document.activeElement).toBe(screen.getByLabelText('Tool'));
  type('Tool', '*');
  expect(why()).toBe('');
  expect(save.getAttribute('aria-disabled')).toBe('false');
  expect(model.save).not.toHaveBeenCalled();
});

test.each([
  ['New rule…', 'Tool', 'Rule'],
  ['Edit as JSON…', 'Rules as JSON', 'All rules']
])(
  'Escape closes the form of “%s”, and asks first if something was typed',
  async (name, field, form) => {
    show();
    const isOpen = (): boolean =>
      screen.queryByRole('group', { name: form }) !== null;
    await press(name);
    pressEscape();
    expect(isOpen()).toBe(false);
    await press(name);
    type(field, 'x');
    const scrolled = jest.spyOn(Element.prototype, 'scrollIntoView');
    pressEscape();
    expect(isOpen()).toBe(true);
    expect(scrolled.mock.contexts.at(-1)).toHaveProperty(
      'textContent',
      'Press Escape again to discard what you have changed.'
    );
    expect(text()).toContain('Press Escape again to discard');
    type(field, 'xy');
    expect(text()).not.toContain('Press Escape again');
    pressEscape();
    expect(screen.getByLabelText(field)).toHaveProperty('value', 'xy');
    pressEscape();
    expect(isOpen()).toBe(false);
  }
);

test('what a script clicks writes no rule', () => {
  const model = show();
  fireEvent.click(screen.getByRole('button', { name: 'Remove shop.list_*' }));
  expect(model.save).not.toHaveBeenCalled();
});

test.each([
  ['Remove shop.list_*', null],
  ['Save rule', 'New rule…'],
  ['Save rules', 'Edit as JSON…']
])(
  'a press on “%s” just after it came, or after something lay over it, changes no rule',
  async (name, before) => {
    const model = show();
    if (before) {
      await press(before);
    }
    if (name === 'Save rule') {
      fillIn();
    }
    await press(name);
    waitForButtons();
    setCovered(true);
    await press(name);
    setCovered(false);
    await press(name);
    expect(model.save).not.toHaveBeenCalled();
    waitForButtons();
    await press(name);
    expect(model.save).toHaveBeenCalledTimes(1);
  }
);

test('all rules can be written as JSON, whose lines are short and do not wrap', async () => {
  const model = show();
  await press('Edit as JSON…');
  const field = screen.getByLabelText('Rules as JSON') as HTMLTextAreaElement;
  expect(field.wrap).toBe('off');
  expect(field.value.split('\n')).toEqual([
    '[',
    ' {',
    '  "effect": "allow",',
    '  "server": "shop",',
    '  "tool": "list_*"',
    ' }',
    ']'
  ]);
  type('Rules as JSON', 'x');
  waitForButtons();
  await press('Save rules');
  expect(text()).toContain(
    'Invalid JSON: expected a value at line 1, column 1.'
  );
  type('Rules as JSON', '{}');
  waitForButtons();
  await press('Save rules');
  expect(text()).toContain('This is not a JSON list of rules such as [{');
  type('Rules as JSON', '[{"effect": "ask", "server": "*", "tool": "*"}]');
  waitForButtons();
  await press('Save rules');
  expect(model.save).toHaveBeenCalledWith(
    [{ effect: 'ask', server: '*', tool: '*' }],
    'r1'
  );
});

test('a refused rule is told with its number and its line in the text, and so are others', async () => {
  const model = show();
  const problem = { path: '/home/r.json', line: 9, column: 5 };
  const problems = [
    { ...problem, rule: 1, message: '`tool` is missing' },
    { ...problem, rule: 3, message: '`effect` must be …, not `a\u202eb`' },
    ...[4, 5, 6, 7, 8].map(rule => ({ ...problem, rule, message: 'x' }))
  ];
  jest
    .mocked(model.save)
    .mockRejectedValueOnce(
      new RequestError(422, 'no', null, null, 'invalid_rules', problems)
    );
  await press('Edit as JSON…');
  type(
    'Rules as JSON',
    '[{"tool":\n"}{\\"["},\n\n{"arguments": {"a": [{}]}},\n{},{},{},{},{},{}]'
  );
  waitForButtons();
  await press('Save rules');
  expect(
    document.querySelector('.jp-AgentBox-ruleSaid')?.textContent?.split('\n')
  ).toEqual([
    'Rule 1, line 1: `tool` is missing',
    'Rule 3, line 5: `effect` must be …, not `a\\u202eb`',
    'Rule 4, line 5: x',
    'Rule 5, line 5: x',
    'Rule 6, line 5: x',
    'And 2 more problems.'
  ]);
});

test('rules that were changed elsewhere meanwhile are shown and not replaced', async () => {
  const model = show();
  jest
    .mocked(model.save)
    .mockRejectedValueOnce(
      new RequestError(409, 'has changed', null, null, 'policy_conflict')
    );
  waitForButtons();
  await press('Remove shop.list_*');
  expect(text()).toContain('Another program changed the rules meanwhile');
  expect(model.refresh).toHaveBeenCalled();
});

const DENY = { effect: 'deny', server: 'shop', tool: 'delete_*' } as const;

test('a rule that is edited is replaced, wherever it stands by then, and no other', async () => {
  const model = show();
  await press('Edit shop.list_*');
  type('Tool', 'get_*');
  change(model, { revision: 'r2', rules: [DENY, OWN] });
  waitForButtons();
  await press('Save rule');
  expect(model.save).toHaveBeenCalledWith(
    [DENY, { ...OWN, tool: 'get_*' }],
    'r2'
  );
});

test('what was typed takes the place of no other rule where its own is gone', async () => {
  const model = show();
  await press('Edit shop.list_*');
  type('Tool', 'get_*');
  change(model, { revision: 'r2', rules: [DENY] });
  waitForButtons();
  await press('Save rule');
  expect(model.save).not.toHaveBeenCalled();
  expect(text()).toContain('changed or removed this rule meanwhile');
  expect(screen.getByLabelText('Tool')).toHaveProperty('value', 'get_*');
});

test('the JSON of earlier rules says so, and does not replace those that came since', async () => {
  const model = show();
  await press('Edit as JSON…');
  change(model, { revision: 'r2', rules: [DENY, OWN] });
  expect(text()).toContain('changed the rules since you opened this text');
  waitForButtons();
  await press('Save rules');
  expect(model.save).toHaveBeenCalledWith([OWN], 'r1'); // which the server refuses
});

test('a rule that is made from a request is there to be looked at', () => {
  propose({ effect: 'allow', server: 'shop', tool: 'refund' });
  expect(screen.getByLabelText('Tool')).toHaveProperty('value', 'refund');
  expect(screen.queryByRole('note')).toBeNull();
});

test('without rules it says that every call asks', () => {
  show({ rules: [], effective: [] });
  expect(text()).toContain(
    'There are no rules: every call waits for you, unless an earlier answer still covers it, such as one for an hour.'
  );
});

test('what the administrator turned off is said, and nothing of the rest', () => {
  show({
    features: {
      grants: { lock: 'force-off', message: 'x' },
      agents: { lock: 'force-on', message: null },
      edit: { lock: 'user-choice', message: null },
      'new\u202ething': { lock: 'force-off', message: 'x' }
    }
  });
  expect(text()).toContain(
    'Set by your administrator: Lasting answers that allow are off. new'
  );
  expect(text()).not.toContain('\u202e');
  expect(text()).not.toContain('Agents are off');
});

test('where nothing is turned off nothing is said of an administrator', () => {
  show();
  expect(text()).not.toContain('administrator:');
});

test('says for which groups of users a rule is', () => {
  const rule = { ...effective[0], groups: ['students', 'guests'] };
  show({ effective: [rule as IEffectiveRule] });
  expect(screen.getByText(/for members of students, guests/)).toBeTruthy();
});

test.each([
  [{ below: 'srt' }, 'in a kernel without a sandbox or on another machine'],
  [
    { below: 'landlock' },
    'in a kernel with a weaker sandbox than landlock, without one, or on another machine'
  ],
  [{ isolation: 'none' }, 'in any kernel'],
  [{ isolation: 'srt' }, 'in a kernel with a sandbox'],
  [
    { isolation: 'bubblewrap-host-proc' },
    'in a kernel with the sandbox bubblewrap-host-proc or a stronger one'
  ]
])('a rule with %j says “%s”', (fields, words) => {
  const rule = { ...effective[0], ...fields };
  show({ effective: [rule as IEffectiveRule] });
  expect(screen.getByText(`*.drop_*, ${words}`)).toBeTruthy();
});

test('the form of a rule says of each sandbox how strong it is, with its name in the file', async () => {
  show();
  await press('New rule…');
  const choice = screen.getByLabelText('Sandbox, at least');
  expect(
    [...choice.querySelectorAll('option')].map(option => option.textContent)
  ).toEqual([
    'None needed: any kernel',
    'Any sandbox (srt)',
    'A stronger sandbox (landlock)',
    'A still stronger sandbox (bubblewrap-host-proc)',
    'The strongest sandbox (bubblewrap)'
  ]);
});

test('names the version of the policy that the Hub service sent', () => {
  const sent = { hub: 'hub.example', expires_at: null, problem: null };
  show({ hub_policy: { ...sent, version: 7 } });
  expect(
    screen.getByText(
      'Set by your administrator: The policy of hub.example, version 7.'
    )
  ).toBeTruthy();
});

test('says that everything is denied where no policy of the Hub service holds', () => {
  const sent = { hub: 'hub.example', expires_at: null, problem: 'expired' };
  show({ hub_policy: { ...sent, version: null } });
  expect(screen.getByText(/Everything is denied until/)).toBeTruthy();
});

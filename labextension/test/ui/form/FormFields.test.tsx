import { nullTranslator } from '@jupyterlab/translation';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IJsonObject } from '../../../src/api/json';
import { LanguageProvider } from '../../../src/ui/context';
import { openDraft } from '../../../src/ui/form/draft';
import { FormFields } from '../../../src/ui/form/FormFields';
import { trans } from '../../examples';

const DAYS = {
  type: 'array',
  uniqueItems: true,
  items: { type: 'string', enum: ['mon', 'tue', 'wed'] },
  description: 'When you are in'
};

/** Show a form; what is in it after each change is put into the list that is returned. */
function show(
  properties: IJsonObject,
  values: IJsonObject = {},
  required: string[] = []
): IJsonObject[] {
  const source: IJsonObject = { type: 'object', properties, required };
  const seen: IJsonObject[] = [];
  function Form(): JSX.Element {
    const [draft, setDraft] = React.useState(() => openDraft(values, source));
    return (
      <LanguageProvider value={{ translator: nullTranslator, trans }}>
        <FormFields
          source={source}
          draft={draft}
          error={null}
          onChange={next => {
            seen.push(next.values);
            setDraft(next);
          }}
        />
      </LanguageProvider>
    );
  }
  render(<Form />);
  return seen;
}

test('several of some choices can be chosen, and all of them taken back', () => {
  const seen = show({ days: DAYS }, { days: ['mon'] });
  const group = screen.getByRole('group', { name: 'days' });
  expect(group.textContent).toContain('When you are in');
  const box = (name: string): HTMLInputElement =>
    screen.getByRole('checkbox', { name });
  expect(box('mon').checked).toBe(true);
  fireEvent.click(box('wed'));
  expect(seen.at(-1)).toEqual({ days: ['mon', 'wed'] });
  expect(screen.queryByText(/must/)).toBeNull();
  fireEvent.click(box('mon'));
  fireEvent.click(box('wed'));
  expect(seen.at(-1)).toEqual({});
});

test('what hides in a choice is spelled out, and sent as it is', () => {
  const items = { type: 'string', enum: ['pay \u202egnihton', 'no'] };
  const seen = show({ one: items, many: { ...DAYS, items } });
  expect(screen.getAllByText(/pay .*202e/)).toHaveLength(2);
  fireEvent.click(screen.getByRole('checkbox', { name: /pay/ }));
  expect(seen.at(-1)).toEqual({ many: ['pay \u202egnihton'] });
});

test.each<[string, IJsonObject]>([
  [
    'enumNames',
    { type: 'string', enum: ['s', 'pay'], enumNames: ['Slow', 'No \u202e'] }
  ],
  [
    'oneOf',
    {
      type: 'string',
      oneOf: [
        { const: 's', title: 'Slow' },
        { const: 'pay', title: 'No \u202e' }
      ]
    }
  ],
  [
    'anyOf',
    {
      anyOf: [
        { const: 's', title: 'Slow' },
        { const: 'pay', title: 'No \u202e' }
      ]
    }
  ]
])(
  'a choice is shown as the server calls it, with what is sent: %s',
  (_, items) => {
    const seen = show({ one: items, many: { ...DAYS, items } });
    const select: HTMLSelectElement = screen.getByRole('combobox', {
      name: 'one'
    });
    const shown = [...select.options].map(({ text }) => text);
    expect(shown).toEqual(['', 'Slow (s)', 'No \\u202e (pay)']);
    fireEvent.change(select, { target: { value: '1' } });
    expect(seen.at(-1)).toEqual({ one: 'pay' });
    fireEvent.click(screen.getByRole('checkbox', { name: 'Slow (s)' }));
    expect(seen.at(-1)).toEqual({ one: 'pay', many: ['s'] });
  }
);

test('a choice whose title says no more than its value is shown once', () => {
  const items: IJsonObject = {
    oneOf: [{ const: 'a', title: 'a' }, { const: 'b' }]
  };
  show({ one: items });
  const { options } = screen.getByRole<HTMLSelectElement>('combobox');
  expect([...options].map(({ text }) => text)).toEqual(['', 'a', 'b']);
});

test('a list that is required is sent empty, and not left out', () => {
  const seen = show({ days: DAYS }, { days: ['mon'] }, ['days']);
  fireEvent.click(screen.getByRole('checkbox', { name: 'mon' }));
  expect(seen.at(-1)).toEqual({ days: [] });
});

test.each<[IJsonObject, IJsonObject, string]>([
  [{ type: 'string' }, {}, 'Required'],
  [{ type: 'integer', maximum: 10 }, { x: 99 }, 'Must be 10 or less'],
  [{ type: 'string', minLength: 2 }, { x: 'a' }, 'Too short: at least 2'],
  [{ type: 'string', maxLength: 1 }, { x: 'ab' }, 'at most 1 character$']
])('a field says plainly what is wrong: %j %j', (field, values, said) => {
  show({ x: field }, values, ['x']);
  expect(screen.getByText(new RegExp(said))).toBeTruthy();
});

const LINES: IJsonObject = {
  type: 'array',
  items: { type: 'object', properties: { note: { type: 'string' } } }
};

test('a list of objects has rows, unless any text in it has several lines', () => {
  const short = show({ lines: LINES }, { lines: [{ note: 'a' }] });
  expect(screen.getByRole('group', { name: 'lines, 1' })).not.toBeNull();
  expect(short).toEqual([]);
  cleanup();
  show({ lines: LINES }, { lines: [{ note: 'short' }, { note: 'a\nb' }] });
  expect(screen.queryByRole('group', { name: 'lines, 1' })).toBeNull();
  const fields = screen.getAllByRole<HTMLTextAreaElement>('textbox');
  expect(fields.map(({ value }) => value)).toEqual(['short', 'a\nb']);
});

test('a row that is moved to an end keeps the focus, and goes no further', () => {
  const seen = show(
    { lines: LINES },
    { lines: [{ note: 'a' }, { note: 'b' }] }
  );
  const button = screen.getByRole('button', { name: 'Move lines, 2 up' });
  button.focus();
  fireEvent.click(button);
  expect(seen).toEqual([{ lines: [{ note: 'b' }, { note: 'a' }] }]);
  const first = screen.getByRole('button', { name: 'Move lines, 1 up' });
  expect(document.activeElement).toBe(first);
  expect(first.getAttribute('aria-disabled')).toBe('true');
  expect(first.hasAttribute('disabled')).toBe(false);
  fireEvent.click(first);
  expect(seen).toHaveLength(1);
  const down = screen.getByRole('button', { name: 'Move lines, 1 down' });
  down.focus();
  fireEvent.click(down);
  expect(seen.at(-1)).toEqual({ lines: [{ note: 'a' }, { note: 'b' }] });
  expect(document.activeElement).toBe(
    screen.getByRole('button', { name: 'Move lines, 2 down' })
  );
});

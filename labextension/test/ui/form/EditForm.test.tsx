import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { RequestError } from '../../../src/api/errors';
import type { IJsonObject } from '../../../src/api/json';
import type { PersonalAnswer } from '../../../src/internalTokens';
import { Deciding } from '../../../src/ui/card/Deciding';
import { Forms, OpenForms } from '../../../src/ui/card/forms';
import { useSending } from '../../../src/ui/card/useSending';
import { GUARD_TIME } from '../../../src/ui/guarded/guardTime';
import { CardGuard } from '../../../src/ui/guarded/GuardedCard';
import { approval } from '../../examples';
import { byPerson } from '../../person';

const PROPERTIES: IJsonObject = {
  product_id: { type: 'integer' },
  price: { type: 'number', exclusiveMinimum: 0 },
  code: { type: 'string' }
};
const ALLOW = 'Allow once with edits';

/** Open the form of a request, on a card that can be seen; returns what is sent to a server that answers with these errors. */
async function openForm(...errors: RequestError[]): Promise<PersonalAnswer[]> {
  const base = approval();
  const request = approval({
    call: { ...base.call, arguments: { product_id: 5, price: 149, code: 'A' } },
    tool: {
      ...base.tool,
      input_schema: { type: 'object', properties: PROPERTIES }
    }
  });
  const sent: PersonalAnswer[] = [];
  const decide = (_: unknown, answer: PersonalAnswer): Promise<void> => {
    sent.push(answer);
    const error = errors.shift();
    return error ? Promise.reject(error) : Promise.resolve();
  };
  function Card(): JSX.Element {
    const sending = useSending(request, decide, () => request);
    return (
      <Deciding
        approval={request}
        sending={sending}
        describedBy="title"
        hasUnseen={false}
      />
    );
  }
  const guard = {
    exposure: 'exposed' as const,
    refusal: null,
    confirm: () => true,
    refuse: jest.fn()
  };
  render(
    <OpenForms.Provider value={new Forms()}>
      <CardGuard.Provider value={guard}>
        <Card />
      </CardGuard.Provider>
    </OpenForms.Provider>
  );
  press('Edit');
  await act(async () => {
    await import('../../../src/ui/form/EditForm');
  });
  return sent;
}

/** Wait until the buttons are ready, and press one. */
function press(name: string): void {
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME);
  });
  byPerson(button(name), new MouseEvent('click', { bubbles: true }));
}

/** Press the button, and wait for the server's answer. */
async function send(): Promise<void> {
  press(ALLOW);
  await act(() => Promise.resolve());
  act(() => {
    jest.advanceTimersByTime(0);
  });
}

function button(name: string): HTMLElement {
  return screen.getByRole('button', { name });
}

function isOff(name: string): boolean {
  return button(name).getAttribute('aria-disabled') === 'true';
}

function field(name: string): HTMLElement {
  return screen.getByRole('textbox', { name });
}

function type(name: string, value: string): void {
  fireEvent.change(field(name), { target: { value } });
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME);
  });
}

function pressEnter(node: Element, modifiers: KeyboardEventInit): void {
  const init = { key: 'Enter', bubbles: true, cancelable: true, ...modifiers };
  byPerson(node, new KeyboardEvent('keydown', init));
}

/** What a screen reader says of an element besides its name. */
function description(node: Element): string {
  const ids = node.getAttribute('aria-describedby')?.split(' ') ?? [];
  return ids
    .map(id => document.getElementById(id)?.textContent ?? '')
    .join(' ')
    .trim();
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test('while a field is wrong the button is off and says why, and the error stands once, at its field', async () => {
  const sent = await openForm();
  type('price', '-3');
  expect(isOff(ALLOW)).toBe(true);
  expect(button(ALLOW).getAttribute('aria-busy')).toBe('false');
  expect(description(button(ALLOW))).toBe('Correct the marked field first.');
  expect(screen.getAllByText(/Must be more than 0/)).toHaveLength(1);
  expect(description(field('price'))).toBe('Must be more than 0');
  type('product_id', 'five');
  expect(description(button(ALLOW))).toBe('Correct the 2 marked fields first.');
  type('product_id', '5');
  type('price', '3');
  expect(isOff(ALLOW)).toBe(false);
  expect(screen.queryByText(/Correct/)).toBeNull();
  await send();
  const values: unknown = expect.objectContaining({ product_id: 5 });
  expect(sent).toEqual([{ decision: 'allow_once', arguments: values }]);
});

test('a try to send what is wrong sends nothing and leads to the first wrong field', async () => {
  const sent = await openForm();
  type('price', '0');
  press(ALLOW);
  expect(document.activeElement).toBe(field('price'));
  field('code').focus();
  pressEnter(field('code'), { ctrlKey: true });
  expect(document.activeElement).toBe(field('price'));
  expect(sent).toEqual([]);
});

test.each([
  ['Ctrl+Enter', { ctrlKey: true }, 1],
  ['Cmd+Enter', { metaKey: true }, 1],
  ['Enter', {}, 0],
  ['Ctrl+Enter that is held', { ctrlKey: true, repeat: true }, 0]
])('%s in a field of the form', async (_, modifiers, times) => {
  const sent = await openForm();
  type('code', 'B');
  pressEnter(field('price'), modifiers);
  await act(() => Promise.resolve());
  expect(sent).toHaveLength(times);
});

const REFUSAL = new RequestError(
  422,
  "`code`: 'a' does not match '^[A-Z]+$'",
  'code',
  null
);

test('what the server objects to stands once, at its field, and goes when the field is corrected', async () => {
  const sent = await openForm(REFUSAL);
  type('code', 'a');
  field('product_id').focus();
  await send();
  expect(screen.getAllByText(/does not match/)).toHaveLength(1);
  expect(description(field('code'))).toContain('does not match');
  expect(field('code').getAttribute('aria-invalid')).toBe('true');
  expect(document.activeElement).toBe(field('code'));
  expect(isOff(ALLOW)).toBe(true);
  type('code', 'B');
  expect(screen.queryByText(/does not match/)).toBeNull();
  expect(field('code').getAttribute('aria-invalid')).toBe('false');
  await send();
  expect(sent).toHaveLength(2);
});

test('as JSON, the objection stands once below the text, and goes when that is corrected', async () => {
  await openForm(REFUSAL);
  type('code', 'a');
  await send();
  press('JSON');
  expect(screen.getAllByText(/does not match/)).toHaveLength(1);
  const text = field('Arguments as JSON') as HTMLTextAreaElement;
  expect(text.getAttribute('aria-invalid')).toBe('true');
  expect(description(button(ALLOW))).toContain('does not match');
  type('Arguments as JSON', text.value.replace('"a"', '"B"'));
  expect(screen.queryByText(/does not match/)).toBeNull();
  expect(isOff(ALLOW)).toBe(false);
});

test('as JSON, a value that the form would refuse keeps the button off, and is named', async () => {
  const sent = await openForm();
  press('JSON');
  const json = 'Arguments as JSON';
  type(json, '{"product_id": "5", "price": -3, "code": 7}');
  expect(isOff(ALLOW)).toBe(true);
  expect(field(json).getAttribute('aria-invalid')).toBe('true');
  for (const text of [
    '“product_id”: Not a whole number',
    '“price”: Must be more than 0',
    '“code”: Not a text'
  ]) {
    expect(screen.getAllByText(text)).toHaveLength(1);
    expect(description(button(ALLOW))).toContain(text);
  }
  button(ALLOW).focus();
  press(ALLOW);
  pressEnter(field(json), { ctrlKey: true });
  expect(document.activeElement).toBe(field(json));
  expect(sent).toEqual([]);
  type(json, '{"product_id": 5, "price": 3, "code": "7", "more": null}');
  expect(isOff(ALLOW)).toBe(false);
  await send();
  expect(sent).toHaveLength(1);
});

test('what is no number can still be corrected in its field after a look at the JSON', async () => {
  await openForm();
  type('product_id', 'five');
  press('JSON');
  press('Form');
  expect(field('product_id')).toHaveProperty('value', 'five');
  expect(description(field('product_id'))).toBe('Not a whole number');
  type('product_id', '5');
  expect(isOff(ALLOW)).toBe(false);
});

test('what is wrong and has no field in the form is named there, too', async () => {
  await openForm();
  press('JSON');
  type('Arguments as JSON', '{"product_id": 5, "price": "7", "code": "A"}');
  press('Form');
  expect(screen.getByText('“price”: Not a number')).toBeTruthy();
  expect(isOff(ALLOW)).toBe(true);
  press(ALLOW);
  expect(document.activeElement).toBe(button('JSON'));
});

test('broken JSON is said once, and a try to send it leads back to it', async () => {
  const sent = await openForm();
  press('JSON');
  type('Arguments as JSON', '{');
  expect(screen.getAllByText(/Invalid JSON/)).toHaveLength(1);
  expect(screen.queryByText('No changes')).toBeNull();
  expect(description(button(ALLOW))).toContain('Invalid JSON');
  button(ALLOW).focus();
  press(ALLOW);
  expect(document.activeElement).toBe(field('Arguments as JSON'));
  expect(sent).toEqual([]);
});

test('a change within a long text is in view while it is typed, and short values are before and after', async () => {
  await openForm();
  press('JSON');
  const [head, tail] = ['A'.repeat(300), 'B'.repeat(300)];
  type(
    'Arguments as JSON',
    `{"product_id": 6, "price": 149, "code": "${head}\\n${tail}"}`
  );
  const changed = document.querySelector('.jp-AgentBox-changes');
  expect(changed?.textContent).toContain('product_id5 → 6');
  expect(changed?.textContent).toContain(`Added:${tail}`);
  expect(screen.getByRole('group', { name: 'Changes to code' })).not.toBeNull();
});

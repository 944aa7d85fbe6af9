import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { PersonalAnswer } from '../../../src/internalTokens';
import { Deciding } from '../../../src/ui/card/Deciding';
import { Forms, OpenForms } from '../../../src/ui/card/forms';
import type { ISending } from '../../../src/ui/card/useSending';
import { GUARD_TIME } from '../../../src/ui/guarded/guardTime';
import { CardGuard } from '../../../src/ui/guarded/GuardedCard';
import { approval } from '../../examples';
import { byPerson } from '../../person';

/** The buttons of a request whose card can be seen; returns what was sent. */
function deciding(): PersonalAnswer[] {
  const sent: PersonalAnswer[] = [];
  const sending: ISending = {
    send: answer => {
      sent.push(answer);
    },
    interrupt: jest.fn(),
    forget: jest.fn(),
    isBusy: false,
    failure: null,
    typed: '',
    argumentError: null
  };
  const guard = {
    exposure: 'exposed' as const,
    refusal: null,
    confirm: () => true,
    refuse: jest.fn()
  };
  render(
    <OpenForms.Provider value={new Forms()}>
      <CardGuard.Provider value={guard}>
        <Deciding
          approval={approval()}
          sending={sending}
          describedBy="title"
          hasUnseen={false}
        />
      </CardGuard.Provider>
    </OpenForms.Provider>
  );
  return sent;
}

/** Wait until the buttons are ready, and press one. */
function press(name: string): void {
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME);
  });
  byPerson(
    screen.getByRole('button', { name }),
    new MouseEvent('click', { bubbles: true })
  );
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

function openComment(text: string): void {
  press('Let it run more often…');
  press('Allow once with a comment…');
  const field = screen.getByRole('textbox', { name: 'Comment' });
  expect(document.activeElement).toBe(field);
  fireEvent.change(field, { target: { value: text } });
}

test('a call is allowed with a comment, which the code is told only if that is ticked', () => {
  const sent = deciding();
  openComment(' mind the stock ');
  press('Allow once');
  fireEvent.click(screen.getByRole('checkbox'));
  press('Allow once');
  const answer = { decision: 'allow_once', reason: 'mind the stock' };
  expect(sent).toEqual([
    { ...answer, tell: false },
    { ...answer, tell: true }
  ]);
});

test('an empty comment is none', () => {
  const sent = deciding();
  openComment(' ');
  press('Allow once');
  expect(sent).toEqual([{ decision: 'allow_once' }]);
});

test('Enter in a comment allows nothing, and Escape goes back to the button', () => {
  const sent = deciding();
  openComment('mind');
  const field = screen.getByRole('textbox');
  byPerson(
    field,
    new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })
  );
  fireEvent.keyDown(field, { key: 'Escape' });
  expect(sent).toEqual([]);
  expect(document.activeElement).toBe(
    screen.getByRole('button', { name: 'Allow once' })
  );
});

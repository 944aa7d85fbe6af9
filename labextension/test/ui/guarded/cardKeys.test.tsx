import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { byPerson } from '../../person';
import { GUARD_TIME } from '../../../src/ui/guarded/guardTime';
import { letterOf, withFocusToFollow } from '../../../src/ui/guarded/keyGuard';
import {
  CardKeys,
  KeyHelp,
  useCardKeys,
  useLetter
} from '../../../src/ui/guarded/cardKeys';
import type { Refusal } from '../../../src/ui/guarded/cardKeys';

/** A time after which what a person did before says nothing. */
const LONG = 2000;

let press: jest.Mock;
let refuse: jest.Mock<void, [Refusal]>;

beforeEach(() => {
  jest.useFakeTimers();
  Element.prototype.scrollIntoView = jest.fn(); // jsdom has no layout
  press = jest.fn();
  refuse = jest.fn();
});

afterEach(() => {
  jest.useRealTimers();
});

function Card(props: { name: string }): JSX.Element {
  const root = React.useRef<HTMLDivElement>(null);
  const { keys, onKeyDown } = useCardKeys(root, true, refuse);
  const { bind } = keys;
  React.useEffect(() => bind('A', press), [bind]);
  return (
    <div
      ref={root}
      role="group"
      aria-label={props.name}
      className="jp-AgentBox-card"
      data-status="pending"
      tabIndex={-1}
      onKeyDown={onKeyDown}
    >
      <input />
    </div>
  );
}

function show(): HTMLElement {
  render(
    <>
      <textarea />
      <Card name="first" />
      <Card name="second" />
    </>
  );
  return screen.getByRole('group', { name: 'first' });
}

function wait(time: number): void {
  act(() => {
    jest.advanceTimersByTime(time);
  });
}

function type(node: Element, key: string, init: KeyboardEventInit = {}): void {
  const event = new KeyboardEvent('keydown', {
    key,
    bubbles: true,
    cancelable: true,
    ...init
  });
  byPerson(node, event);
}

/** The person clicks something and the focus goes to a card. */
function goTo(card: HTMLElement): void {
  byPerson(document.body, new MouseEvent('pointerdown', { bubbles: true }));
  act(() => {
    card.focus();
  });
}

test('a letter counts on a card to which a person went, after the delay', () => {
  const card = show();
  goTo(card);
  wait(GUARD_TIME - 1);
  type(card, 'a');
  expect(press).not.toHaveBeenCalled();
  expect(refuse).toHaveBeenLastCalledWith('early');
  wait(GUARD_TIME);
  type(card, 'a');
  expect(press).toHaveBeenCalledTimes(1);
});

test('a letter counts on a card to which the focus came as soon as the card was there', () => {
  function Arrival(): null {
    React.useLayoutEffect(() => {
      screen.getByRole('group').focus();
    }, []);
    return null;
  }
  byPerson(document.body, new MouseEvent('pointerdown', { bubbles: true }));
  render(
    <>
      <Card name="first" />
      <Arrival />
    </>
  );
  wait(GUARD_TIME);
  type(screen.getByRole('group'), 'a');
  expect(press).toHaveBeenCalledTimes(1);
});

test('what somebody types on decides nothing where a program moved the focus, however long they pause', () => {
  const card = show();
  const cell = screen.getAllByRole('textbox')[0];
  cell.focus();
  type(cell, 'b');
  act(() => {
    card.focus();
  });
  for (const pause of [0, GUARD_TIME, LONG, LONG]) {
    wait(pause);
    type(card, 'a');
  }
  expect(press).not.toHaveBeenCalled();
  expect(refuse).toHaveBeenLastCalledWith('focus');
});

test.each([
  ['Enter', <textarea enterKeyHint="send" />, true],
  ['Enter', <button type="button" />, true],
  [' ', <button type="button" />, true],
  ['Enter', <textarea />, false],
  ['x', <textarea enterKeyHint="send" />, false]
])(
  'after %j in what sends or presses, the card that the page goes on to takes letters (%#)',
  (key, field, isTaken) => {
    const card = show();
    const { container } = render(field);
    const node = container.firstElementChild as HTMLElement;
    node.focus();
    type(node, key);
    act(() => {
      card.focus(); // the next request
    });
    wait(GUARD_TIME);
    type(card, 'j');
    expect(document.activeElement === card).toBe(!isTaken);
  }
);

test('the focus that a program moves long after a click makes no letter count', () => {
  const card = show();
  byPerson(document.body, new MouseEvent('pointerdown', { bubbles: true }));
  wait(LONG);
  act(() => {
    card.focus();
  });
  wait(LONG);
  type(card, 'a');
  expect(press).not.toHaveBeenCalled();
  type(card, 'Tab');
  wait(GUARD_TIME);
  type(card, 'a');
  expect(press).toHaveBeenCalledTimes(1);
});

describe('where the page is busy before the focus follows what a person did', () => {
  /** The person clicks something, which moves the focus to a card in the end. */
  async function goSlowlyTo(
    card: HTMLElement,
    meanwhile: () => void,
    then: () => void = () => undefined
  ): Promise<void> {
    byPerson(document.body, new MouseEvent('pointerdown', { bubbles: true }));
    await withFocusToFollow(async () => {
      wait(LONG);
      meanwhile();
      act(() => {
        card.focus();
      });
      return Promise.resolve();
    });
    then();
    wait(GUARD_TIME);
  }

  test('letters count', async () => {
    const card = show();
    await goSlowlyTo(card, () => undefined);
    type(card, 'a');
    expect(press).toHaveBeenCalledTimes(1);
  });

  test('they do not if the person has begun to write', async () => {
    const card = show();
    await goSlowlyTo(card, () => {
      type(screen.getAllByRole('textbox')[0], 'b');
    });
    type(card, 'a');
    expect(press).not.toHaveBeenCalled();
  });

  test.each(['a', 'aa', '?', 'kja'])(
    'a letter that comes just after it does not count, such as the last of “%s”, but the next one does after the delay',
    async text => {
      const first = show();
      const here = (): Element => document.activeElement ?? document.body;
      await goSlowlyTo(
        first,
        () => undefined,
        () => {
          for (const letter of text) {
            wait(GUARD_TIME - 1);
            type(here(), letter);
          }
          wait(GUARD_TIME - 1);
          type(here(), 'a');
        }
      );
      expect(press).not.toHaveBeenCalled();
      expect(refuse).toHaveBeenLastCalledWith('early');
      type(here(), 'a');
      expect(press).toHaveBeenCalledTimes(1);
    }
  );

  test.each(['b', 'ab', 'jb'])(
    'they do not if what the person writes comes just after it, such as “%s”',
    async text => {
      const first = show();
      const here = (): Element => document.activeElement ?? document.body;
      await goSlowlyTo(
        first,
        () => undefined,
        () => {
          for (const letter of text) {
            type(here(), letter);
          }
        }
      );
      const card = here();
      type(card, 'a');
      wait(LONG);
      type(card, 'a');
      expect(press).not.toHaveBeenCalled();
      type(card, 'Tab');
      wait(GUARD_TIME);
      type(card, 'a');
      expect(press).toHaveBeenCalledTimes(1);
    }
  );

  test('they do not if the person has gone to a frame, where nobody sees what they write', async () => {
    const card = show();
    await goSlowlyTo(card, () => {
      window.dispatchEvent(new FocusEvent('blur'));
    });
    for (const pause of [0, GUARD_TIME, LONG]) {
      wait(pause);
      type(card, 'a');
    }
    expect(press).not.toHaveBeenCalled();
    type(card, 'Tab');
    wait(GUARD_TIME);
    type(card, 'a');
    expect(press).toHaveBeenCalledTimes(1);
  });

  test('they do not where a program moves the focus after that', async () => {
    const card = show();
    await goSlowlyTo(screen.getAllByRole('textbox')[0], () => undefined);
    wait(LONG);
    act(() => {
      card.focus();
    });
    wait(GUARD_TIME);
    type(card, 'a');
    expect(press).not.toHaveBeenCalled();
  });
});

test.each([
  ['held', { repeat: true }],
  ['with a modifier', { ctrlKey: true }],
  ['as a capital', { shiftKey: true }]
])('a key %s decides nothing', (_, init) => {
  const card = show();
  goTo(card);
  wait(GUARD_TIME);
  type(card, 'a', init);
  expect(press).not.toHaveBeenCalled();
});

test('a script cannot press a letter, and none counts in a field', () => {
  const card = show();
  goTo(card);
  wait(GUARD_TIME);
  fireEvent.keyDown(card, { key: 'a' });
  type(screen.getAllByRole('textbox')[1], 'a');
  expect(press).not.toHaveBeenCalled();
});

test('J and K go from card to card, and a letter right after them does not count', () => {
  const card = show();
  goTo(card);
  type(card, 'j');
  const second = screen.getByRole('group', { name: 'second' });
  expect(document.activeElement).toBe(second);
  type(second, 'a');
  expect(press).not.toHaveBeenCalled();
  wait(GUARD_TIME);
  type(second, 'k');
  expect(document.activeElement).toBe(card);
  wait(GUARD_TIME);
  type(card, 'a');
  expect(press).toHaveBeenCalledTimes(1);
});

test.each(['?', 'j', 'k'])(
  'after %j, which leaves the focus on the card, a letter waits no longer than before',
  key => {
    render(<Card name="only" />);
    const card = screen.getByRole('group');
    goTo(card);
    wait(GUARD_TIME - 1);
    type(card, key);
    wait(1);
    type(card, 'a');
    type(card, key);
    type(card, 'a');
    expect(press).toHaveBeenCalledTimes(2);
    expect(refuse).not.toHaveBeenCalled();
  }
);

test.each([
  ['a', 'KeyQ', 'A'],
  ['ф', 'KeyA', 'A'],
  ['?', 'Slash', '?'],
  ['1', 'Digit1', ''],
  ['Enter', 'Enter', '']
])('the key %j at %s stands for %j', (key, code, letter) => {
  expect(letterOf(new KeyboardEvent('keydown', { key, code }))).toBe(letter);
});

describe('the help', () => {
  function Letter({ letter }: { letter: string }): null {
    useLetter(letter, press);
    return null;
  }

  function HelpfulCard(props: { letters: string[] }): JSX.Element {
    const root = React.useRef<HTMLDivElement>(null);
    const { keys, onKeyDown } = useCardKeys(root, true, refuse);
    return (
      <CardKeys.Provider value={keys}>
        <div ref={root} role="group" tabIndex={-1} onKeyDown={onKeyDown}>
          {props.letters.map(letter => (
            <Letter key={letter} letter={letter} />
          ))}
          <KeyHelp />
        </div>
      </CardKeys.Provider>
    );
  }

  const shown = (): string[] =>
    [...document.querySelectorAll('kbd')].map(key => key.textContent ?? '');

  test('shows the keys that do something, also when a form opens meanwhile', () => {
    const { rerender } = render(<HelpfulCard letters={['A', 'E', 'R']} />);
    const card = screen.getByRole('group');
    expect(shown()).toEqual([]);
    type(card, '?');
    expect(shown()).toEqual(['A', 'E', 'R', 'J', 'K', '?']);
    rerender(<HelpfulCard letters={[]} />);
    expect(shown()).toEqual(['J', 'K', '?']);
    rerender(<HelpfulCard letters={['A', 'E', 'R']} />);
    expect(shown()).toEqual(['A', 'E', 'R', 'J', 'K', '?']);
    type(card, '?');
    expect(shown()).toEqual([]);
  });
});

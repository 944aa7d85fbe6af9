import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import { act, fireEvent, screen } from '@testing-library/react';
import React from 'react';

import { Section } from '../../../src/ui/components/Section';
import { useDoing } from '../../../src/ui/hooks/useDoing';

/** An action that a test ends. */
class Action {
  run = (): Promise<void> =>
    new Promise((resolve, reject) => {
      this.runs += 1;
      this.succeed = resolve;
      this.fail = reject;
    });

  runs = 0;
  succeed: () => void = () => undefined;
  fail: (error: Error) => void = () => undefined;
}

function Row(props: { name: string; action: Action }): JSX.Element {
  const { run, isBusy, failure } = useDoing(props.name);
  return (
    <>
      <button
        aria-busy={isBusy}
        onClick={() => {
          run(props.action.run);
        }}
      >
        {props.name}
      </button>
      <p>{failure}</p>
    </>
  );
}

let action: Action;
let section: Section;

beforeEach(async () => {
  action = new Action();
  section = new Section(
    () => (
      <>
        <Row name="a" action={action} />
        <Row name="b" action={action} />
      </>
    ),
    () => undefined
  );
  await attach();
});

afterEach(() => {
  act(() => {
    section.dispose();
  });
});

async function attach(): Promise<void> {
  await act(async () => {
    Widget.attach(section, document.body);
    MessageLoop.flush();
    await section.renderPromise;
  });
}

/** What JupyterLab does when a person moves the panel to the other side. */
async function detach(): Promise<void> {
  await act(async () => {
    Widget.detach(section);
  });
}

const busy = (): string[] =>
  screen
    .queryAllByRole('button', { busy: true })
    .map(({ textContent }) => textContent ?? '');

test('what is in progress is still so when the panel was moved, and is done once', async () => {
  fireEvent.click(screen.getByText('a'));
  expect(busy()).toEqual(['a']);
  await detach();
  await attach();
  expect(busy()).toEqual(['a']);
  fireEvent.click(screen.getByText('a'));
  expect(action.runs).toBe(1);

  await act(async () => {
    action.succeed();
  });
  expect(busy()).toEqual([]);
});

test('a failure is told, also if the panel was away, until a person has seen it', async () => {
  fireEvent.click(screen.getByText('a'));
  await detach();
  await act(async () => {
    action.fail(new Error('no such thing'));
  });
  await attach();
  expect(screen.getAllByText('no such thing')).toHaveLength(1);
  expect(busy()).toEqual([]);

  await detach();
  await attach();
  expect(screen.queryByText('no such thing')).toBeNull();
});

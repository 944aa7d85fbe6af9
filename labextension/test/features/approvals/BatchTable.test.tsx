import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { BatchTable } from '../../../src/features/approvals/BatchTable';
import type { IJsonObject } from '../../../src/api/json';
import type { IApproval } from '../../../src/api/protocol';
import { ApprovalModel } from '../../../src/model/approvals';
import { CardProvider } from '../../../src/ui/context';
import { approval, origins, source, trans } from '../../examples';
import { byPerson } from '../../person';

const NOON = '2026-01-01T12:00:00Z';

/** Show a table of requests with these fields, and return the ids of those that are extended. */
function showTable(fields: Partial<IApproval>[]): string[] {
  return tableOf(fields).extended;
}

interface ITable {
  extended: string[];
  /** Show the table with other requests. */
  change: (fields: Partial<IApproval>[]) => void;
}

function tableOf(first: Partial<IApproval>[]): ITable {
  const extended: string[] = [];
  const model = new ApprovalModel(source());
  jest.spyOn(model, 'now').mockReturnValue(Date.parse(NOON));
  jest.spyOn(model, 'extend').mockImplementation(async id => {
    extended.push(id);
    return false;
  });
  const nameOf = (): string => 'Ada';
  const table = (fields: Partial<IApproval>[]): JSX.Element => (
    <CardProvider
      value={{ model, origins, nameOf, translator: nullTranslator, trans }}
    >
      <BatchTable
        approvals={fields.map((one, index) =>
          approval({ id: `a${index}`, ...one })
        )}
        wanted={null}
        hidden={0}
        isOpened={false}
        onFailure={() => undefined}
      />
    </CardProvider>
  );
  const { rerender } = render(table(first));
  Signal.clearData(model);
  return {
    extended,
    change: fields => {
      rerender(table(fields));
    }
  };
}

/** Show a table of requests that expire at these times, and return the ids of those that are extended. */
function show(ends: (string | null)[]): string[] {
  return showTable(ends.map(expires_at => ({ expires_at })));
}

test('a table says how long the first of its requests waits, and keeps waiting those that soon expire', async () => {
  const extended = show([
    '2026-01-01T12:02:00Z',
    null,
    '2026-01-01T12:01:30Z',
    '2026-01-01T12:02:01Z'
  ]);
  expect(screen.getByRole('timer').textContent).toBe('1:30 left');
  fireEvent.click(screen.getByText('Keep waiting'));
  expect(extended).toEqual(['a0', 'a2']);
  expect(await screen.findByText('Cannot wait longer.')).not.toBeNull();
});

test('a table of requests that wait for ever shows no time', () => {
  show([null, null]);
  expect(screen.queryByRole('timer')).toBeNull();
});

test('? on a table shows its keys, also while nothing is selected', () => {
  show([null, null]);
  const row = screen.getAllByRole('row').at(-1) as HTMLElement;
  byPerson(
    row,
    new KeyboardEvent('keydown', { key: '?', code: 'Slash', bubbles: true })
  );
  const keys = screen.getByLabelText('Keys').textContent;
  expect(keys).toContain('SpaceSelect the row');
  expect(keys).toContain('JNext request');
});

test('a table quotes the reason of a rule that asks about all of its requests', () => {
  const of = (reason: string): Partial<IApproval> => ({
    evaluation: { effect: 'ask', rule: 'user: ask shop.*', reason }
  });
  showTable([of('ask Ada'), of('ask Ada')]);
  expect(screen.getByText('Rule’s words:')).not.toBeNull();
  cleanup();
  showTable([of('ask Ada'), of('ask Bob')]);
  expect(screen.queryByText('Rule’s words:')).toBeNull();
});

test('decided rows have the signs of cards: what was never answered is not marked as rejected', () => {
  showTable([
    { status: 'rejected' },
    { status: 'expired' },
    { status: 'cancelled' }
  ]);
  const signs = [...document.querySelectorAll('.jp-AgentBox-rowCheck')];
  expect(signs.map(sign => sign.textContent)).toEqual(['✗', '–', '–']);
});

test('a table in which nothing waits any more counts nothing and offers nothing to select', () => {
  const ended: Partial<IApproval> = { status: 'cancelled' };
  showTable([{}, ended]);
  expect(screen.getByText('1 waiting')).not.toBeNull();
  expect(screen.getByLabelText(/^All of this cell/)).not.toBeNull();
  const name = (): string | null =>
    document.querySelector('.jp-AgentBox-batch')?.getAttribute('aria-label') ??
    null;
  expect(name()).toMatch(/^1 approval request of /);
  cleanup();
  showTable([ended, ended]);
  expect(name()).toMatch(/^Decided requests of /);
  expect(document.body.textContent).not.toContain('waiting');
  expect(document.body.textContent).not.toContain('All of this');
  expect(document.body.textContent).not.toContain('all of this');
});

/** A request from a cell. */
function fromCell(cell: string): Partial<IApproval> {
  return { call: { ...approval().call, cell_id: cell } };
}

/** Which rows are selected, from top to bottom. */
function selected(): boolean[] {
  return screen
    .getAllByRole('row')
    .filter(row => row.hasAttribute('data-row-id'))
    .map(row => row.getAttribute('aria-selected') === 'true');
}

function tick(name: string | RegExp): void {
  byPerson(
    screen.getByRole('checkbox', { name }),
    new MouseEvent('click', { bubbles: true, cancelable: true })
  );
}

test('a click on the checkbox of a row gives the row the focus, where the keys of rows count', () => {
  showTable([{}, {}]);
  const [first] = screen.getAllByRole('checkbox', { name: /^Select/ });
  first.focus(); // as a press of the mouse does
  byPerson(first, new MouseEvent('click', { bubbles: true, cancelable: true }));
  expect(selected()).toEqual([true, false]);
  const focused = (): string | undefined =>
    (document.activeElement as HTMLElement | null)?.dataset['rowId'];
  expect(focused()).toBe('a0');
  byPerson(
    document.activeElement as Element,
    new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true })
  );
  expect(focused()).toBe('a1');
});

test('“All of this tool” selects the rows of all cells, and “all of this cell” those of one', () => {
  showTable([fromCell('c1'), fromCell('c1'), fromCell('c2'), fromCell('c2')]);
  tick('All of this tool (4)');
  expect(selected()).toEqual([true, true, true, true]);
  expect(screen.getByRole('button', { name: 'Allow 4' })).not.toBeNull();
  tick('All of this tool (4)');
  expect(selected()).toEqual([false, false, false, false]);
  byPerson(
    screen.getAllByRole('checkbox', { name: /all of this cell/ })[1],
    new MouseEvent('click', { bubbles: true, cancelable: true })
  );
  expect(selected()).toEqual([false, false, true, true]);
});

test.each(['destructive', 'read-only'])(
  'of %s calls none is selected at first, nor when more arrive after all were selected',
  kind => {
    const annotations: IJsonObject =
      kind === 'destructive'
        ? { destructiveHint: true, readOnlyHint: false }
        : { readOnlyHint: true };
    const one = { tool: { ...approval().tool, annotations } };
    const { change } = tableOf([one, one]);
    expect(selected()).toEqual([false, false]);
    expect(screen.queryByRole('button', { name: /^Allow/ })).toBeNull();
    tick(/^All of this cell/);
    expect(selected()).toEqual([true, true]);
    change([one, one, one]);
    expect(selected()).toEqual([true, true, false]);
    expect(screen.getByRole('button', { name: 'Allow 2' })).not.toBeNull();
  }
);

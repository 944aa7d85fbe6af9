import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type {
  IApproval,
  ICellUpdate,
  OutcomeState
} from '../../../src/api/protocol';
import { CellUpdate, mayUpdateCell } from '../../../src/ui/card/CellUpdate';
import { CardProvider } from '../../../src/ui/context';
import { ApprovalModel } from '../../../src/model/approvals';
import type { IOriginCell, IOrigins } from '../../../src/internalTokens';
import { allowed, approval, origins, source, trans } from '../../examples';

const BEFORE = 'restock(quantity=25)';
const AFTER = 'restock(quantity=30)';

/** An allowed request, and the state of its call. */
function ran(state: OutcomeState): IApproval {
  return allowed({
    outcome: { state, error: '', started_at: null, finished_at: null }
  });
}

/** A cell, and what the server says of its code. */
class Notebook implements IOriginCell {
  source = BEFORE;
  isEditable = true;
  isThere = true;
  asked: string[][] = [];
  readonly leave = jest.fn();
  readonly kernelsChanged = new Signal<IOrigins, void>({} as IOrigins);

  constructor(readonly answer: () => Promise<ICellUpdate>) {}

  replace(before: string, after: string): boolean {
    if (!this.isEditable || this.source !== before) {
      return false;
    }
    this.source = after;
    return true;
  }

  show(): void {
    render(
      <CardProvider
        value={{
          model: new ApprovalModel(source()),
          origins: {
            ...origins,
            kernelsChanged: this.kernelsChanged,
            cellOf: () => (this.isThere ? this : null)
          },
          nameOf: () => 'Ada',
          translator: nullTranslator,
          trans,
          leave: this.leave,
          proposeUpdate: (id, text) => {
            this.asked.push([id, text]);
            return this.answer();
          }
        }}
      >
        <div className="jp-AgentBox-card">
          <CellUpdate approval={approval({ id: 'a1' })} />
        </div>
      </CardProvider>
    );
  }
}

async function press(name: string): Promise<void> {
  await act(async () => {
    fireEvent.click(screen.getByRole('button', { name }));
    await Promise.resolve();
  });
}

const OFFER = 'Update the cell’s code…';

test('the code changes only after the person has seen the difference, and the cell is asked about as it is', async () => {
  const notebook = new Notebook(() =>
    Promise.resolve({ source: AFTER, reason: null })
  );
  notebook.show();
  await press(OFFER);
  expect(notebook.asked).toEqual([['a1', BEFORE]]);
  expect(notebook.source).toBe(BEFORE);
  expect(screen.getByRole('group').textContent).toContain(AFTER);
  await press('Leave it as it is');
  expect(notebook.source).toBe(BEFORE);
  await press(OFFER);
  await press('Update the code');
  expect(notebook.source).toBe(AFTER);
  expect(screen.getByRole('status').textContent).toMatch(/not run again/);
  expect(screen.queryByRole('button')).toBeNull();
});

test('the focus goes on from the card when the code was updated, and stays in it when it was not', async () => {
  const notebook = new Notebook(() =>
    Promise.resolve({ source: AFTER, reason: null })
  );
  notebook.show();
  const card = document.querySelector('.jp-AgentBox-card');
  await press(OFFER);
  await press('Leave it as it is');
  expect(card?.contains(document.activeElement)).toBe(true);
  expect(notebook.leave).not.toHaveBeenCalled();
  await press(OFFER);
  await press('Update the code');
  expect(notebook.leave.mock.calls).toEqual([[card]]);
});

test('a cell that was deleted while its change was shown is left alone', async () => {
  const notebook = new Notebook(() =>
    Promise.resolve({ source: AFTER, reason: null })
  );
  notebook.show();
  await press(OFFER);
  const place = origins.describe(approval({ id: 'a1' }));
  expect(screen.getByRole('group', { name: new RegExp(place) })).not.toBeNull();
  notebook.isThere = false;
  await press('Update the code');
  expect(notebook.source).toBe(BEFORE);
});

test('why nothing can be changed is said, and another try is possible', async () => {
  const notebook = new Notebook(() =>
    Promise.resolve({ source: null, reason: 'It is in a loop.' })
  );
  notebook.show();
  await press(OFFER);
  expect(screen.getByRole('status').textContent).toBe('It is in a loop.');
  expect(screen.getByRole('button', { name: OFFER })).not.toBeNull();
});

test('a server that cannot be asked changes nothing and says so', async () => {
  const notebook = new Notebook(() => Promise.reject(new Error('no server')));
  notebook.show();
  await press(OFFER);
  expect(screen.getByRole('status').textContent).toBe('no server');
});

test('a cell that the person changed while they looked at the difference keeps that change', async () => {
  const notebook = new Notebook(() =>
    Promise.resolve({ source: AFTER, reason: null })
  );
  notebook.show();
  await press(OFFER);
  notebook.source = 'mine';
  await press('Update the code');
  expect(notebook.source).toBe('mine');
  expect(screen.getByRole('status').textContent).toMatch(/changed meanwhile/);
});

test('only a call of a cell that a person edited, and that ran well, is offered', () => {
  const plain = ran('succeeded');
  const edited = {
    ...plain,
    call: { ...plain.call, cell_id: 'c1', thread_id: null },
    decision: plain.decision && { ...plain.decision, arguments: { a: 1 } }
  };
  expect(mayUpdateCell(edited)).toBe(true);
  expect(mayUpdateCell(plain)).toBe(false);
  for (const state of ['running', 'failed', 'cancelled'] as const) {
    const { outcome } = ran(state);
    expect(mayUpdateCell({ ...edited, outcome })).toBe(false);
  }
  expect(mayUpdateCell({ ...edited, outcome: null })).toBe(false);
  for (const call of [{ cell_id: null }, { thread_id: 't1' }]) {
    expect(
      mayUpdateCell({ ...edited, call: { ...edited.call, ...call } })
    ).toBe(false);
  }
});

test('the offer comes with the kernel of the notebook, which a page that was just loaded does not know yet', () => {
  const notebook = new Notebook(() => Promise.reject(new Error()));
  notebook.isThere = false;
  notebook.show();
  expect(screen.queryByRole('button', { name: OFFER })).toBeNull();
  notebook.isThere = true;
  act(() => {
    notebook.kernelsChanged.emit();
  });
  expect(screen.queryByRole('button', { name: OFFER })).not.toBeNull();
});

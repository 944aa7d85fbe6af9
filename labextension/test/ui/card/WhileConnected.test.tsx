import { Signal } from '@lumino/signaling';
import { act, render, screen } from '@testing-library/react';
import React from 'react';

import { WhileConnected } from '../../../src/ui/card/WhileConnected';
import type { IApproval } from '../../../src/api/protocol';
import type { Connection, IApprovalModel } from '../../../src/internalTokens';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { languageOf } from '../../../src/ui/text/language';
import { allowed, approval } from '../../examples';

/** A model of one request. */
class Model {
  constructor(private readonly _approval: IApproval) {}

  get(): { approval: IApproval; state: 'loaded' } {
    return { approval: this._approval, state: 'loaded' };
  }

  lose(connection: Connection): void {
    this.connection = connection;
    this.changed.emit(null);
  }

  connection: Connection = 'connected';
  readonly changed = new Signal<this, string | null>(this);
}

function show(item: IApproval): Model {
  const model = new Model(item);
  const context = {
    ...languageOf(null),
    model: model as unknown as IApprovalModel
  } as ICardContext;
  render(
    <CardProvider value={context}>
      <WhileConnected requestId={item.id}>
        <button>Allow once</button>
        <input aria-label="Reason" />
      </WhileConnected>
    </CardProvider>
  );
  return model;
}

test.each<[Connection, string]>([
  ['unreachable', 'cannot be reached'],
  ['forbidden', 'Log in again'],
  ['not_authorized', 'do not have the right to read'],
  ['failing', 'was stopped'],
  ['stopped', 'was stopped'],
  ['absent', 'was stopped']
])('without a server (%s) nothing can be pressed', (connection, text) => {
  const model = show(approval());
  expect(screen.queryByRole('button')).not.toBeNull();
  act(() => {
    model.lose(connection);
  });
  expect(screen.queryByRole('button')).toBeNull();
  expect(screen.getByRole('status').textContent).toContain(text);
});

test('what was typed is there when the server is back', () => {
  const model = show(approval());
  const field = screen.getByLabelText<HTMLInputElement>('Reason');
  field.value = 'not today';
  act(() => {
    model.lose('unreachable');
  });
  act(() => {
    model.lose('connected');
  });
  expect(screen.getByLabelText<HTMLInputElement>('Reason').value).toBe(
    'not today'
  );
  expect(screen.queryByRole('status')).toBeNull();
});

test('a request that is over stays as it is', () => {
  const model = show(allowed());
  act(() => {
    model.lose('unreachable');
  });
  expect(screen.queryByRole('status')).toBeNull();
});

import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { Forms, OpenForms } from '../../../src/ui/card/forms';
import { RequestCard } from '../../../src/ui/card/RequestCard';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { ApprovalModel } from '../../../src/model/approvals';
import { approval, origins, source, trans } from '../../examples';

/** Views of requests `a1` and `a2`, which wait. */
function context(openInPanel?: (id: string) => void): ICardContext {
  const model = new ApprovalModel(source());
  model.remember([approval({ id: 'a1' }), approval({ id: 'a2' })]);
  return {
    model,
    origins,
    nameOf: () => 'Ada',
    translator: nullTranslator,
    trans,
    openInPanel
  };
}

/** The view of a request, and what it shares with others. */
function view(requestId: string, shared: ICardContext): JSX.Element {
  return (
    <CardProvider value={shared}>
      <RequestCard requestId={requestId} />
    </CardProvider>
  );
}

test('another request is another card, with buttons of its own', () => {
  const shared = context();
  const { rerender } = render(view('a1', shared));
  const before = screen.getByRole('group', { name: /Approval/ });
  const button = screen.getByRole('button', { name: 'Allow once' });
  rerender(view('a1', shared));
  expect(screen.getByRole('group', { name: /Approval/ })).toBe(before);
  rerender(view('a2', shared));
  expect(screen.getByRole('group', { name: /Approval/ })).not.toBe(before);
  expect(screen.getByRole('button', { name: 'Allow once' })).not.toBe(button);
  expect(button.isConnected).toBe(false);
  Signal.clearData(shared.model);
});

test('what a person asked for without any code says who asked, and leads to no cell', () => {
  const shared = context();
  const asker = { kind: 'user', display_name: null, via: 'browser' } as const;
  const call = {
    ...approval().call,
    kernel_id: null,
    notebook_path: null,
    cell_id: null,
    askers: [{ ...asker, name: 'ada' }]
  };
  shared.model.remember([approval({ id: 'a3', call })]);
  const card = (id: string): JSX.Element => (
    <CardProvider value={shared}>
      <RequestCard requestId={id} hasLink={true} />
    </CardProvider>
  );
  const { container, rerender } = render(card('a3'));
  const origin = (): string =>
    container.querySelector('.jp-AgentBox-origin')?.textContent ?? '';
  expect(origin()).toBe('Asked by Ada');
  rerender(card('a2'));
  expect(origin()).toContain('From orders.ipynb, cell 3');
  expect(origin()).toContain('Go to cell');
  Signal.clearData(shared.model);
});

test('in a widget there is no button that decides, but one that leads to the panel', () => {
  const opened: string[] = [];
  const shared = context(id => opened.push(id));
  render(
    <CardProvider value={shared}>
      <RequestCard requestId="a1" isInWidget={true} />
    </CardProvider>
  );
  const [button, ...others] = screen.getAllByRole('button');
  expect(others).toEqual([]);
  expect(button.textContent).toBe('Decide in the panel');
  button.click();
  expect(opened).toEqual(['a1']);
});

test('a form that was open is open again when its view is built anew, and does not take the focus', () => {
  const shared = context();
  const forms = new Forms();
  forms.set('a1', { mode: 'reject', reason: 'not', draft: null });
  const view = (
    <OpenForms.Provider value={forms}>
      <CardProvider value={shared}>
        <RequestCard requestId="a1" />
      </CardProvider>
    </OpenForms.Provider>
  );
  const { unmount } = render(view);
  fireEvent.change(screen.getByRole('textbox'), {
    target: { value: 'not today' }
  });
  unmount();
  render(view);
  const field = screen.getByRole<HTMLTextAreaElement>('textbox');
  expect(field.value).toBe('not today');
  expect(document.activeElement).not.toBe(field);
  Signal.clearData(shared.model);
});

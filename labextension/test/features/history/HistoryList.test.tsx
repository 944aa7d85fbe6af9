import { Signal } from '@lumino/signaling';
import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { HistoryList } from '../../../src/features/history/HistoryList';
import type { IHistoryModel } from '../../../src/internalTokens';
import { ApprovalModel } from '../../../src/model/approvals';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { allowed, language, origins, source } from '../../examples';
import { addSizes, removeSizes } from '../../sizes';

function show(fields: Partial<IHistoryModel>): {
  load: jest.Mock;
  loadMore: jest.Mock;
} {
  const load = jest.fn(() => Promise.resolve());
  const loadMore = jest.fn(() => Promise.resolve());
  const changed = new Signal<object, void>({});
  const model = { changed, items: [], hasMore: false, load, loadMore };
  const history = { ...model, ...fields } as unknown as IHistoryModel;
  const approvals = new ApprovalModel(source());
  for (const { id } of history.items) {
    approvals.track(id);
  }
  approvals.remember(history.items);
  const context: ICardContext = {
    model: approvals,
    origins,
    nameOf: () => 'ada',
    ...language
  };
  render(
    <CardProvider value={context}>
      <HistoryList history={history} />
    </CardProvider>
  );
  return { load, loadMore };
}

test('calls that could not be loaded are asked for again, and are not said to be none', () => {
  const { load } = show({ state: 'failing' });
  expect(screen.getByRole('alert').textContent).toContain(
    'The history could not be loaded.'
  );
  expect(screen.queryByText(/requests appear here/)).toBeNull();
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  expect(load).toHaveBeenCalledTimes(1);
});

test('more calls that could not be loaded are asked for again', () => {
  const { load, loadMore } = show({ state: 'failing', hasMore: true });
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }));
  expect(loadMore).toHaveBeenCalledTimes(1);
  expect(load).not.toHaveBeenCalled();
});

test('while calls are loaded, that is said, and no more are asked for', () => {
  show({ state: 'loading', hasMore: true });
  expect(screen.getByRole('status').textContent).toBe('Loading…');
  expect(screen.queryByRole('button', { name: 'Load more' })).toBeNull();
});

test('of a thousand calls a few are in the page, each with its place among all', () => {
  addSizes();
  const items = Array.from({ length: 1000 }, (_, index) =>
    allowed({ id: `r${index}` })
  );
  show({ items, state: 'ready' });
  const shown = screen.getAllByRole('listitem');
  expect(shown.length).toBeGreaterThan(20);
  expect(shown.length).toBeLessThan(150);
  expect(shown[2].getAttribute('aria-posinset')).toBe('3');
  expect(shown[2].getAttribute('aria-setsize')).toBe('1000');
  removeSizes();
});

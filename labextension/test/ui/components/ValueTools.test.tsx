import { Clipboard } from '@jupyterlab/apputils';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { ApprovalModel } from '../../../src/model/approvals';
import { ValueTools } from '../../../src/ui/components/ValueTools';
import { CardProvider } from '../../../src/ui/context';
import { language, origins, source } from '../../examples';

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

function show(text: string, openValue?: jest.Mock): void {
  const model = new ApprovalModel(source());
  render(
    <CardProvider
      value={{ ...language, model, origins, nameOf: () => '', openValue }}
    >
      <ValueTools name="sql" text={text} mimeType="text/x-sql" />
    </CardProvider>
  );
}

test('the exact text is copied, and for a moment that is said', () => {
  jest.useFakeTimers();
  const copy = jest.spyOn(Clipboard, 'copyToSystem').mockImplementation();
  show('SELECT\t1; -- 👍🏽\n');
  fireEvent.click(screen.getByRole('button', { name: 'Copy: sql' }));
  expect(copy).toHaveBeenCalledWith('SELECT\t1; -- 👍🏽\n');
  expect(screen.getByRole('status').textContent).toBe('Copied');
  act(() => {
    jest.advanceTimersByTime(2_000);
  });
  expect(screen.getByRole('status').textContent).toBe('');
});

test('characters that cannot be seen are copied as they are, and the person is told of them', () => {
  jest.useFakeTimers();
  const copy = jest.spyOn(Clipboard, 'copyToSystem').mockImplementation();
  const status = (): string | null => screen.getByRole('status').textContent;
  show('SELECT\u202e 1;\u200b\n');
  expect(status()).toBe('');
  fireEvent.click(screen.getByRole('button', { name: 'Copy: sql' }));
  expect(copy).toHaveBeenCalledWith('SELECT\u202e 1;\u200b\n');
  expect(status()).toMatch(/^Copied with 2 characters that cannot be seen/);
  act(() => {
    jest.advanceTimersByTime(2_000);
  });
  expect(status()).toMatch(/^Copied with 2 characters that cannot be seen/);
  act(() => {
    jest.advanceTimersByTime(8_000);
  });
  expect(status()).toBe('');
});

test('a long value can be opened on a page of its own, a short one needs none', () => {
  const open = jest.fn();
  show('SELECT 1;\nSELECT 2;', open);
  expect(screen.queryByText('Open in a tab')).toBeNull();
  expect(screen.getByText('Copy').getAttribute('aria-label')).toBe('Copy: sql');
  const long = 'SELECT 1;\n'.repeat(40);
  show(long, open);
  fireEvent.click(screen.getByRole('button', { name: 'Open in a tab: sql' }));
  expect(open).toHaveBeenCalledWith({
    name: 'sql',
    text: long,
    mimeType: 'text/x-sql'
  });
});

test('where there are no pages, none is offered', () => {
  show('SELECT 1;\n'.repeat(40));
  expect(screen.queryByText('Open in a tab')).toBeNull();
});

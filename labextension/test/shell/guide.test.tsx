import { fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import { Guide } from '../../src/shell/guide';
import { trans } from '../examples';

test('the guide leads to what it describes', () => {
  const showTab = jest.fn();
  const execute = jest.fn();
  render(<Guide links={{ showTab, execute }} trans={trans} />);
  for (const button of screen.getAllByRole('button')) {
    fireEvent.click(button);
  }
  expect(showTab.mock.calls.flat()).toEqual(['pending', 'servers', 'rules']);
  expect(execute.mock.calls.flat()).toEqual([
    'keys',
    'demo',
    'history',
    'settings'
  ]);
});

test('what is typed is shown as code, without marks', () => {
  render(
    <Guide links={{ showTab: jest.fn(), execute: jest.fn() }} trans={trans} />
  );
  const article = screen.getByRole('article');
  expect(article.textContent).not.toMatch(/[`*]/);
  expect(
    [...article.querySelectorAll('code')].map(each => each.textContent)
  ).toContain('from jupyter_agentbox import tools');
});

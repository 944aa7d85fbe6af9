import { Signal } from '@lumino/signaling';
import { render, screen } from '@testing-library/react';
import React from 'react';

import type { IHubRequestList } from '../../../src/api/protocol';
import { HubRequestList } from '../../../src/features/hubRequests/HubRequestList';
import { hubRequestsPlugin } from '../../../src/features/hubRequests/hubRequestsPlugin';
import type { IHubRequestsModel } from '../../../src/internalTokens';
import { LanguageProvider } from '../../../src/ui/context';
import { hubList, hubRequest, language } from '../../examples';
import { byPerson } from '../../person';

function show(list: IHubRequestList): HTMLElement {
  const hub: IHubRequestsModel = {
    changed: new Signal<never, void>({} as never),
    list,
    refresh: async () => true,
    now: () => Date.parse('2026-01-01T00:30:00Z')
  };
  return render(
    <LanguageProvider value={language}>
      <HubRequestList hub={hub} />
    </LanguageProvider>
  ).container;
}

let open: jest.SpyInstance;

beforeEach(() => {
  open = jest.spyOn(window, 'open').mockImplementation(() => null);
});

afterEach(() => {
  open.mockRestore();
});

test('a request leads to the page of the service, and nothing here decides it', () => {
  const { textContent: said } = show(hubList([hubRequest()]));
  expect(said).toContain('shop.delete_order');
  expect(said).toContain('ada asks');
  expect(said).toContain('30:00 left');
  const [button, ...others] = screen.getAllByRole('button');
  expect(button.textContent).toBe('Review at the Hub');
  expect(others).toEqual([]);

  button.click(); // as a script does
  expect(open).not.toHaveBeenCalled();
  byPerson(button, new MouseEvent('click', { bubbles: true }));
  const page = 'https://hub.example.org/services/agentbox/requests/a';
  expect(open).toHaveBeenCalledWith(page, '_blank', 'noopener,noreferrer');
});

test('names of others are text, and what hides in them is spelled out', () => {
  const container = show(
    hubList([hubRequest({ tool: '<b>x</b>\u202e', asked_by: 'ad\u200ba' })])
  );
  expect(container.querySelector('b')).toBeNull();
  expect(container.textContent).toContain('shop.<b>x</b>\\u202e');
  expect(container.textContent).toContain('ad\\u200ba asks');
});

test('an address that is none of a page opens nothing', () => {
  show(hubList([hubRequest({ url: 'javascript:alert(1)' })]));
  byPerson(
    screen.getByRole('button'),
    new MouseEvent('click', { bubbles: true })
  );
  expect(open).not.toHaveBeenCalled();
});

test('of many, the page of all is offered', () => {
  show(hubList([hubRequest()], 7));
  byPerson(
    screen.getByRole('button', { name: 'Show all 7 at the Hub' }),
    new MouseEvent('click', { bubbles: true })
  );
  expect(open).toHaveBeenCalledWith(
    'https://hub.example.org/services/agentbox/',
    '_blank',
    'noopener,noreferrer'
  );
});

test('a service that is away is told in a line', () => {
  show({ ...hubList([]), problem: 'it answers 503' });
  expect(screen.getByRole('status').textContent).toContain(
    'it is not known what waits for you there'
  );
});

test('where no service is configured, nobody is asked', () => {
  const client = { listHubRequests: jest.fn(), now: () => 0 };
  const model = hubRequestsPlugin.activate(
    null as never,
    client as never
  ) as IHubRequestsModel;
  document.dispatchEvent(new Event('visibilitychange'));
  expect(model.list.total).toBe(0);
  expect(client.listHubRequests).not.toHaveBeenCalled();
});

import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';

import type { IHubRequestList } from '../../../src/api/protocol';
import { HubRequestNotifier } from '../../../src/features/approvals/hubRequestNotifier';
import { hubList, hubRequest, trans } from '../../examples';

let changed: Signal<never, void>;
let list: IHubRequestList;
let notifier: HubRequestNotifier;
let panel: { isVisible: boolean; open: jest.Mock };
let tell: jest.Mock;

beforeEach(() => {
  jest.useFakeTimers();
  changed = new Signal<never, void>({} as never);
  list = hubList([]);
  panel = { isVisible: false, open: jest.fn() };
  tell = jest.fn();
  notifier = new HubRequestNotifier({
    hub: {
      changed,
      get list() {
        return list;
      }
    } as never,
    panel,
    desktop: { tell },
    restored: Promise.resolve(),
    trans
  });
});

afterEach(() => {
  notifier.dispose();
  jest.useRealTimers();
});

async function waits(...ids: string[]): Promise<void> {
  list = hubList(ids.map(id => hubRequest({ id })));
  await jest.advanceTimersByTimeAsync(0);
  changed.emit();
}

function messages(): string[] {
  return Notification.manager.notifications.map(({ message }) => message);
}

test('one notification speaks of all, and goes with the last', async () => {
  await waits('a');
  expect(messages()).toEqual([
    'ada asks for your approval at the Hub (shop.delete_order)'
  ]);
  await waits('a', 'b');
  expect(messages()).toEqual(['2 requests wait for you at the Hub']);
  expect(tell).toHaveBeenCalledTimes(2);
  const [shown] = Notification.manager.notifications;
  shown.options.actions?.[0].callback(new MouseEvent('click'));
  expect(panel.open).toHaveBeenCalled();
  await waits();
  // At once after an update, JupyterLab would show it again.
  await jest.advanceTimersByTimeAsync(100);
  expect(messages()).toEqual([]);
});

test('a message is no longer than JupyterLab shows', async () => {
  const long = 'a'.repeat(200);
  list = hubList([hubRequest({ asked_by: long, server: long, tool: long })]);
  await jest.advanceTimersByTimeAsync(0);
  changed.emit();
  const [message] = messages();
  expect(message.length).toBeLessThanOrEqual(140);
});

test('what a person has come to see is not spoken of again', async () => {
  await waits('a');
  panel.isVisible = true;
  await jest.advanceTimersByTimeAsync(1000);
  expect(messages()).toEqual([]);
  panel.isVisible = false;
  await waits('a');
  expect(messages()).toEqual([]);
  await waits('a', 'b');
  expect(messages()).toHaveLength(1);
});

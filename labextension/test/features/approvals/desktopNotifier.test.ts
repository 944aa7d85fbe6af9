import { Notification as Toast } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';

import type { IApproval } from '../../../src/api/protocol';
import { DesktopNotifier } from '../../../src/features/approvals/desktopNotifier';
import { approval, trans } from '../../examples';

/** The desktop, as a page sees it. */
class FakeNotification {
  static permission: NotificationPermission = 'granted';
  static requestPermission = jest.fn(() => Promise.resolve('granted'));
  static all: FakeNotification[] = [];

  constructor(
    readonly title: string,
    readonly options: NotificationOptions
  ) {
    FakeNotification.all.push(this);
  }

  close(): void {
    this.isClosed = true;
  }

  isClosed = false;
  onclick: (() => void) | null = null;
}

const EXPIRES = '2026-01-01T00:10:00Z';

/** The requests that wait, as the tests say. */
class Model {
  readonly arrived = new Signal<never, readonly IApproval[]>(this as never);
  readonly changed = new Signal<never, string | null>(this as never);
  pending: IApproval[] = [];
  time = Date.parse('2026-01-01T00:00:00Z');

  now(): number {
    return this.time;
  }

  add(...ids: string[]): void {
    const arrived = ids.map(id => approval({ id, expires_at: EXPIRES }));
    this.pending = [...this.pending, ...arrived];
    this.changed.emit(null);
    this.arrived.emit(arrived);
  }

  decide(...ids: string[]): void {
    this.pending = this.pending.filter(({ id }) => !ids.includes(id));
    this.changed.emit(null);
  }

  extend(id: string, expires_at: string): void {
    this.pending = this.pending.map(each =>
      each.id === id ? { ...each, expires_at } : each
    );
    this.changed.emit(id);
  }

  clear(): void {
    this.pending = [];
    this.changed.emit(null);
  }
}

let hasFocus: jest.SpyInstance<boolean>;
let model: Model;
let notifier: DesktopNotifier;
let show: jest.Mock;

beforeEach(() => {
  jest.useFakeTimers();
  Object.assign(window, { Notification: FakeNotification });
  FakeNotification.all = [];
  FakeNotification.permission = 'granted';
  FakeNotification.requestPermission.mockClear();
  hasFocus = jest.spyOn(document, 'hasFocus').mockReturnValue(false);
  model = new Model();
  show = jest.fn();
  const origins = { describe: () => 'orders.ipynb, cell 3' };
  const restored = Promise.resolve();
  notifier = new DesktopNotifier({ model, origins, show, restored, trans });
  notifier.isEnabled = true;
});

afterEach(() => {
  notifier.dispose();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** What is to be seen on the desktop. */
function seen(): [string, string | undefined][] {
  return FakeNotification.all
    .filter(({ isClosed }) => !isClosed)
    .map(({ title, options }) => [title, options.body]);
}

test('one notification is shown for all that wait, and goes with them', () => {
  model.add('a1');
  expect(seen()).toEqual([
    [
      'A tool call needs your approval',
      'shop.delete_order (orders.ipynb, cell 3)'
    ]
  ]);
  model.add('a2', 'a3');
  expect(seen()).toEqual([['3 tool calls need your approval', '']]);
  model.clear();
  expect(seen()).toEqual([]);
});

test('it leads to the oldest request, and decides nothing', () => {
  model.add('a1', 'a2');
  jest.spyOn(window, 'focus').mockImplementation();
  FakeNotification.all[0].onclick?.();
  expect(window.focus).toHaveBeenCalled();
  expect(show.mock.calls).toEqual([[model.pending[0]]]);
  expect(FakeNotification.all[0].options).not.toHaveProperty('actions');
  expect(seen()).toEqual([]);
});

test('nothing is shown to who looks at the page, wants none, or does not want to be disturbed', () => {
  hasFocus.mockReturnValue(true);
  model.add('a1');
  hasFocus.mockReturnValue(false);
  notifier.isQuiet = true;
  model.add('a2');
  notifier.isQuiet = false;
  notifier.isEnabled = false;
  model.add('a3');
  expect(FakeNotification.all).toEqual([]);
});

test('of a request that ends in less than two minutes is told once more', () => {
  model.add('a1');
  model.time = Date.parse(EXPIRES) - 121_000;
  jest.advanceTimersByTime(10_000);
  expect(FakeNotification.all).toHaveLength(1);
  model.time = Date.parse(EXPIRES) - 119_000;
  jest.advanceTimersByTime(20_000);
  expect(seen()).toEqual([
    [
      'A tool call expires in less than 2 minutes',
      'shop.delete_order (orders.ipynb, cell 3)'
    ]
  ]);
  expect(FakeNotification.all).toHaveLength(2);
});

test('of a request that waits longer is told again before its new end, and not of the old one', () => {
  model.add('a1');
  model.time = Date.parse(EXPIRES) - 110_000;
  jest.advanceTimersByTime(5000);
  expect(seen()).toHaveLength(1);
  model.extend('a1', '2026-01-01T00:20:00Z');
  expect(seen()).toEqual([]);
  jest.advanceTimersByTime(20_000);
  expect(seen()).toEqual([]);
  model.time = Date.parse('2026-01-01T00:18:30Z');
  jest.advanceTimersByTime(20_000);
  expect(seen().map(([title]) => title)).toEqual([
    'A tool call expires in less than 2 minutes'
  ]);
  expect(FakeNotification.all).toHaveLength(3);
});

test('who was at the page when the end came near is told once they leave', () => {
  hasFocus.mockReturnValue(true);
  model.add('a1');
  model.time = Date.parse(EXPIRES) - 110_000;
  jest.advanceTimersByTime(20_000);
  expect(FakeNotification.all).toEqual([]);
  hasFocus.mockReturnValue(false);
  jest.advanceTimersByTime(20_000);
  expect(seen().map(([title]) => title)).toEqual([
    'A tool call expires in less than 2 minutes'
  ]);
  expect(FakeNotification.all).toHaveLength(1);
});

test('it speaks of no request that was decided meanwhile, and says so without a sound', () => {
  model.add('a1', 'a2', 'a3');
  model.decide('a1');
  expect(seen()).toEqual([['2 tool calls need your approval', '']]);
  expect(FakeNotification.all.map(({ options }) => options.silent)).toEqual([
    false,
    true
  ]);
  jest.spyOn(window, 'focus').mockImplementation();
  FakeNotification.all[1].onclick?.();
  expect(show.mock.calls).toEqual([[model.pending[0]]]);
});

test('what it says of one server stays in the place of requests that are decided', () => {
  model.add('a1', 'a2');
  notifier.tell('The server asks you', 'orders.ipynb', show);
  model.decide('a1');
  expect(seen()).toEqual([['The server asks you', 'orders.ipynb']]);
});

test('the names are plain and short', () => {
  model.pending = [];
  const item = approval();
  item.call.tool = `<b>\u202e${'x'.repeat(500)}`;
  model.pending = [item];
  model.arrived.emit([item]);
  const [[, body = '']] = seen();
  expect(body).toContain('shop.<b>\\u202e');
  expect(body.length).toBeLessThan(100);
});

test('the permission is asked for by a button only, and not without need', async () => {
  FakeNotification.permission = 'default';
  notifier.isEnabled = false;
  notifier.isEnabled = true;
  await Promise.resolve();
  expect(FakeNotification.requestPermission).not.toHaveBeenCalled();
  const [toast] = Toast.manager.notifications;
  toast.options.actions?.[0].callback(new MouseEvent('click'));
  expect(FakeNotification.requestPermission).toHaveBeenCalledTimes(1);
  model.add('a1');
  expect(FakeNotification.all).toEqual([]);
});

test('who does not want to be disturbed is not asked for the permission before they want to be', async () => {
  Toast.dismiss();
  FakeNotification.permission = 'default';
  notifier.isEnabled = false;
  notifier.isEnabled = true;
  notifier.isQuiet = true; // the settings of JupyterLab come after ours
  await Promise.resolve();
  expect(Toast.manager.count).toBe(0);
  notifier.isQuiet = false;
  notifier.isQuiet = true;
  notifier.isQuiet = false;
  await Promise.resolve();
  expect(Toast.manager.count).toBe(1);
});

test('what else is told stays when no request waits', () => {
  notifier.tell('The server asks you', 'orders.ipynb', show);
  model.clear();
  expect(FakeNotification.all.map(({ isClosed }) => isClosed)).toEqual([false]);
});

import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';

import type { IApproval } from '../../../src/api/protocol';
import { Notifier } from '../../../src/features/approvals/notifier';
import type { INotifierOptions } from '../../../src/features/approvals/notifier';
import { AVOID_INTERVAL } from '../../../src/integrations/standingNotification';
import { ApprovalModel } from '../../../src/model/approvals';
import { GUARD_TIME } from '../../../src/ui/guarded/guardTime';
import { KeyGuard } from '../../../src/ui/guarded/keyGuard';
import { allowed, approval, trans } from '../../examples';
import { byPerson } from '../../person';
import { noteCard } from '../../../src/ui/guarded/renderedCards';

/** Long enough for a cell to show its card, and for a look at what came into view. */
const A_WHILE = 1500;

let closed: Signal<object, void>;
let inView: Set<string>;
let isOpen: boolean;
let lost: Set<string>;
let model: ApprovalModel;
let notifier: Notifier;
let panel: { isVisible: boolean; open: jest.Mock; focusRequest: jest.Mock };
let reveal: jest.Mock<Promise<boolean>, [IApproval]>;

beforeEach(() => {
  jest.useFakeTimers();
  closed = new Signal<object, void>({});
  inView = new Set();
  isOpen = true;
  lost = new Set();
  model = new ApprovalModel({
    listApprovals: ({ ids }) =>
      Promise.resolve({
        approvals: (ids ?? []).filter(id => !lost.has(id)).map(waits),
        next: null
      }),
    listSummaries: () => Promise.resolve({ summaries: [], next: null }),
    getApproval: id => Promise.resolve(waits(id)),
    decide: () => Promise.reject(new Error('nobody decides here')),
    extend: () => Promise.reject(new Error('nobody extends here')),
    decideAll: () => Promise.reject(new Error('nobody decides here')),
    now: () => 0
  });
  panel = { isVisible: false, open: jest.fn(), focusRequest: jest.fn() };
  reveal = jest.fn((_: IApproval) => Promise.resolve(true));
  notifier = new Notifier({
    model,
    origins: {
      closed,
      isInView: ({ id }: IApproval) => inView.has(id),
      isOpen: () => isOpen,
      describe: () => 'orders.ipynb, cell 3',
      reveal
    },
    panel,
    restored: Promise.resolve(),
    trans
  } as unknown as INotifierOptions);
});

afterEach(() => {
  notifier.dispose();
  Signal.clearData(model);
  jest.useRealTimers();
});

const waits = (id: string): IApproval => approval({ id });

async function arrive(...ids: string[]): Promise<void> {
  model.remember(ids.map(waits));
  await jest.advanceTimersByTimeAsync(A_WHILE);
}

function messages(): string[] {
  return Notification.manager.notifications.map(({ message }) => message);
}

async function press(): Promise<void> {
  const [shown] = Notification.manager.notifications;
  const [action] = shown.options.actions ?? [];
  action.callback(new MouseEvent('click'));
  await jest.advanceTimersByTimeAsync(0);
}

test('one notification counts all that wait out of view', async () => {
  await arrive('a1');
  expect(messages()).toEqual([
    'shop.delete_order(order_id=7) needs your approval (orders.ipynb, cell 3)'
  ]);
  await arrive('a2');
  expect(messages()).toEqual(['2 tool calls need your approval']);
});

test('where more wait than it counts, as the status bar says, it says of how many', async () => {
  inView.add('a3');
  await arrive('a1', 'a2', 'a3');
  expect(messages()).toEqual([
    'Not seen yet: 2 of 3 tool calls that need your approval'
  ]);
  model.remember([allowed({ id: 'a3' })]);
  expect(messages()).toEqual(['2 tool calls need your approval']);
  inView.add('a4');
  await arrive('a4');
  inView.clear(); // scrolled away
  await arrive('a5');
  expect(messages()).toEqual([
    'Not seen yet: 3 of 4 tool calls that need your approval'
  ]);
});

test('it names the call in one short line, with what cannot be seen in it made visible', async () => {
  const named = (tool: string, text: string): IApproval => {
    const { call } = approval();
    return approval({ id: tool, call: { ...call, tool, arguments: { text } } });
  };
  model.remember([named('note', 'a\u202Eb\n<b>')]);
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([
    'shop.note(text="a\\u202eb\\n<b>") needs your approval (orders.ipynb, cell 3)'
  ]);
  inView.add('note');
  model.remember([named('x'.repeat(50), 'y'.repeat(50))]);
  await jest.advanceTimersByTimeAsync(A_WHILE);
  const [message] = messages();
  expect(message).toMatch(/^shop\.x+.*… needs your approval \(orders/);
  expect(message.length).toBeLessThanOrEqual(140);
});

test('it goes when the last request is decided, or comes into view', async () => {
  await arrive('a1', 'a2');
  model.remember([allowed({ id: 'a1' })]);
  expect(messages()).toHaveLength(1);
  inView.add('a2');
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([]);
});

test('it comes back when the notebook is closed in which its request was seen, and not before', async () => {
  inView.add('a1');
  await arrive('a1');
  inView.clear(); // scrolled away
  closed.emit(); // another notebook
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([]);
  isOpen = false;
  closed.emit();
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toHaveLength(1);
});

test('it comes back when the notebook to which it led is closed, and not for what was decided there', async () => {
  await arrive('a1');
  await press();
  expect(messages()).toEqual([]);
  inView.add('a2');
  await arrive('a2');
  model.remember([allowed({ id: 'a2' })]);
  isOpen = false;
  closed.emit();
  inView.clear();
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([
    expect.stringContaining('shop.delete_order(order_id=7)')
  ]);
});

test('a request that was seen in the panel only is not told of because something was closed', async () => {
  isOpen = false;
  panel.isVisible = true;
  await arrive('a1');
  panel.isVisible = false;
  closed.emit();
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([]);
});

test('it goes when the server has lost the request', async () => {
  await arrive('a1');
  lost.add('a1');
  model.hint('a1');
  model.hint('a2');
  await jest.advanceTimersByTimeAsync(A_WHILE);
  inView.add('a2');
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(model.get('a1').approval).toBeNull();
  expect(messages()).toEqual([]);
});

test('nothing is said while the panel shows all, or where a person turned it off', async () => {
  panel.isVisible = true;
  await arrive('a1');
  expect(messages()).toEqual([]);
  panel.isVisible = false;
  notifier.isEnabled = false;
  await arrive('a2');
  expect(messages()).toEqual([]);
});

test('a person who closed it is told of the next request, not of the rest', async () => {
  await arrive('a1', 'a2');
  Notification.dismiss();
  model.remember([allowed({ id: 'a1' })]);
  expect(messages()).toEqual([]);
  await arrive('a3');
  expect(messages()).toEqual(['2 tool calls need your approval']);
});

test('its button leads to the card, to the one in the panel where that is not to be seen, and to the panel where many wait', async () => {
  await arrive('a1');
  await press();
  expect(reveal.mock.calls.map(([{ id }]) => id)).toEqual(['a1']);
  expect(panel.open).not.toHaveBeenCalled();
  reveal.mockResolvedValue(false);
  await arrive('a2');
  await press();
  expect(panel.focusRequest.mock.calls).toEqual([['a2']]);
  expect(panel.open).not.toHaveBeenCalled();
  await arrive('a3', 'a4');
  await press();
  expect(panel.open).toHaveBeenCalledTimes(1);
});

test('the focus follows its button to the card in the panel, however long the way is', async () => {
  const card = document.createElement('div');
  card.tabIndex = -1;
  document.body.append(card);
  const ready = jest.fn();
  const watching = new KeyGuard().watch(card, ready);
  panel.focusRequest.mockImplementation(() => {
    card.focus();
  });
  reveal.mockImplementation(async () => {
    await jest.advanceTimersByTimeAsync(5000); // the notebook is opened, and has no card
    return false;
  });
  await arrive('a1');
  byPerson(document.body, new MouseEvent('pointerdown', { bubbles: true }));
  await press();
  await jest.advanceTimersByTimeAsync(GUARD_TIME);
  expect(ready).toHaveBeenLastCalledWith(true);
  watching.dispose();
  card.remove();
});

test('where a card waits in its corner it is in the list only, and comes out when the corner is free', async () => {
  const shown = (): unknown[] =>
    Notification.manager.notifications.map(({ options }) => options.autoClose);
  const size = { value: 1000, configurable: true };
  const root = document.documentElement;
  Object.defineProperties(root, { clientWidth: size, clientHeight: size });
  const card = document.createElement('div');
  card.className = 'jp-AgentBox-card';
  card.dataset.status = 'pending';
  const lay = (node: Element, top: number, bottom: number): void => {
    const box = { left: 100, right: 980, top, bottom } as DOMRect;
    jest.spyOn(node, 'getBoundingClientRect').mockReturnValue(box);
  };
  const put = (top: number): void => {
    lay(card, top, top + 300);
  };
  put(200);
  document.body.append(card);
  await arrive('a1');
  expect(shown()).toEqual([false]);
  put(650);
  await jest.advanceTimersByTimeAsync(AVOID_INTERVAL);
  expect(shown()).toEqual([false]); // a document may show what looks like a card
  noteCard(card);
  await jest.advanceTimersByTimeAsync(AVOID_INTERVAL);
  expect(shown()).toEqual([0]);
  put(200);
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(shown()).toEqual([false]);
  // Others push it up, and what it lay over then counts from now on.
  const [{ id }] = Notification.manager.notifications;
  const toast = document.createElement('div');
  toast.id = id;
  lay(toast, 400, 490);
  document.body.append(toast);
  await jest.advanceTimersByTimeAsync(AVOID_INTERVAL);
  toast.remove();
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(shown()).toEqual([0]);
  const buttons = document.createElement('div');
  buttons.className = 'jp-AgentBox-buttons';
  lay(buttons, 1010, 1040); // below the edge of the window
  card.append(buttons);
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(shown()).toEqual([false]);
  lay(buttons, 560, 590);
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(shown()).toEqual([0]);
  card.remove();
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(shown()).toEqual([false]);
});

test('a notifier that was disposed says nothing', async () => {
  await arrive('a1');
  notifier.dispose();
  expect(messages()).toEqual([]);
  await arrive('a2');
  expect(messages()).toEqual([]);
});

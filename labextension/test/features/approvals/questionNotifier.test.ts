import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';

import type { IApproval, IQuestion } from '../../../src/api/protocol';
import { QuestionNotifier } from '../../../src/features/approvals/questionNotifier';
import type { IQuestionNotifierOptions } from '../../../src/features/approvals/questionNotifier';
import { allowed, question, trans } from '../../examples';

/** Long enough for a cell to show its card, and for a look at what came into view. */
const A_WHILE = 1500;

let arrivesLate: boolean;
let changed: Signal<never, void>;
let closed: Signal<never, void>;
let inView: boolean;
let isOpen: boolean;
let notifier: QuestionNotifier;
let panel: { isVisible: boolean; open: jest.Mock };
let questions: IQuestion[];
let tell: jest.Mock;
let tracked: Set<string>;

beforeEach(() => {
  jest.useFakeTimers();
  changed = new Signal<never, void>({} as never);
  arrivesLate = false;
  closed = new Signal<never, void>({} as never);
  inView = false;
  isOpen = true;
  panel = { isVisible: false, open: jest.fn() };
  questions = [];
  tell = jest.fn();
  tracked = new Set();
  notifier = new QuestionNotifier({
    questions: {
      changed,
      get questions() {
        return questions;
      }
    },
    model: {
      get: (id: string) =>
        arrivesLate
          ? { approval: null, state: 'loading' }
          : { approval: allowed({ id }), state: 'whole' },
      track: (id: string) => {
        tracked.add(id);
        return { dispose: () => tracked.delete(id) };
      }
    },
    origins: {
      closed,
      isInView: (_: IApproval) => inView,
      isOpen: (_: IApproval) => isOpen,
      describe: () => 'orders.ipynb, cell 3'
    },
    panel,
    desktop: { tell },
    restored: Promise.resolve(),
    trans
  } as unknown as IQuestionNotifierOptions);
});

afterEach(() => {
  notifier.dispose();
  jest.useRealTimers();
});

async function ask(...ids: string[]): Promise<void> {
  questions = ids.map(id => question({ id, request_id: `r-${id}` }));
  changed.emit();
  await jest.advanceTimersByTimeAsync(A_WHILE);
}

function messages(): string[] {
  return Notification.manager.notifications.map(({ message }) => message);
}

test('one notification counts all questions that are out of view, and goes with the last', async () => {
  await ask('q1');
  expect(messages()).toEqual(['The server “shop” asks you']);
  await ask('q1', 'q2');
  expect(messages()).toEqual(['Servers ask you 2 things']);
  const [shown] = Notification.manager.notifications;
  shown.options.actions?.[0].callback(new MouseEvent('click'));
  expect(panel.open).toHaveBeenCalled();
  await ask();
  expect([messages(), [...tracked]]).toEqual([[], []]);
});

test('a question that is in view, or comes into view, needs none', async () => {
  inView = true;
  await ask('q1');
  expect(messages()).toEqual([]);
  inView = false;
  await ask('q1', 'q2');
  expect(messages()).toEqual(['The server “shop” asks you']);
  panel.isVisible = true;
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([]);
});

test('a question that was seen is told of again when its notebook is closed, and not before', async () => {
  inView = true;
  await ask('q1');
  inView = false; // scrolled away
  closed.emit(); // another notebook
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([]);
  isOpen = false;
  closed.emit();
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual(['The server “shop” asks you']);
});

test('one that a person closed stays closed until there is another question', async () => {
  await ask('q1');
  Notification.manager.dismiss();
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([]);
  await ask('q1', 'q2');
  expect(messages()).toEqual(['Servers ask you 2 things']);
});

test('who turned notifications off gets none in the page', async () => {
  notifier.isEnabled = false;
  await ask('q1');
  expect(messages()).toEqual([]);
});

test('the desktop is told of each question once', async () => {
  inView = true; // the page may be in view, and the person elsewhere
  await ask('q1');
  await ask('q1', 'q2');
  expect(tell.mock.calls.map(([title, body]) => [title, body])).toEqual([
    ['The server “shop” asks you', 'orders.ipynb, cell 3'],
    ['The server “shop” asks you', 'orders.ipynb, cell 3']
  ]);
});

test('nothing is said before it is known which cell a question comes from', async () => {
  arrivesLate = true;
  await ask('q1');
  expect([messages(), tell.mock.calls]).toEqual([[], []]);
  arrivesLate = false;
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual(['The server “shop” asks you']);
});

test('the notification of the desktop goes when the last question is over', async () => {
  const close = jest.fn();
  tell.mockReturnValue({ close });
  await ask('q1');
  expect(close).not.toHaveBeenCalled();
  await ask();
  expect(close).toHaveBeenCalledTimes(1);
});

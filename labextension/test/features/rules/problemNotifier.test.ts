import { Notification } from '@jupyterlab/apputils';
import { Signal } from '@lumino/signaling';

import type { IConfigurationProblem } from '../../../src/api/protocol';
import type { IPolicy } from '../../../src/api/rules';
import { RuleProblemNotifier } from '../../../src/features/rules/problemNotifier';
import { trans } from '../../examples';

const OPEN: IConfigurationProblem = {
  path: '/home/ada/.jupyter/agentbox_rules.json',
  message: 'expected `]`',
  line: 3,
  column: 1
};
const WORD = { ...OPEN, message: 'no effect `maybe`', line: 4 };

/** Long enough for a look at what came into view. */
const A_WHILE = 1500;

let changed: Signal<never, void>;
let isVisible: boolean;
let notifier: RuleProblemNotifier;
let open: jest.Mock;
let policy: IPolicy | null;

beforeEach(() => {
  jest.useFakeTimers();
  changed = new Signal<never, void>({} as never);
  isVisible = false;
  open = jest.fn();
  policy = null;
  notifier = new RuleProblemNotifier({
    rules: {
      changed,
      get policy() {
        return policy;
      }
    } as never,
    isVisible: () => isVisible,
    open,
    restored: Promise.resolve(),
    trans
  });
});

afterEach(() => {
  notifier.dispose();
  jest.useRealTimers();
});

async function finds(...problems: IConfigurationProblem[]): Promise<void> {
  await jest.advanceTimersByTimeAsync(0);
  policy = { problems } as unknown as IPolicy;
  changed.emit();
  await jest.advanceTimersByTimeAsync(A_WHILE);
}

function messages(): string[] {
  return Notification.manager.notifications.map(({ message }) => message);
}

test('one notification speaks of all problems, leads to them, and goes with the last', async () => {
  await finds();
  expect(messages()).toEqual([]);
  await finds(OPEN);
  expect(messages()).toEqual(['A file of rules cannot be used: expected `]`']);
  await finds(OPEN, WORD);
  expect(messages()).toEqual([
    'Files of rules cannot be used: they have 2 problems'
  ]);
  const [shown] = Notification.manager.notifications;
  shown.options.actions?.[0].callback(new MouseEvent('click'));
  expect(open).toHaveBeenCalled();
  await finds();
  expect(messages()).toEqual([]);
});

test('whoever has seen a problem is not told of it again, until it was mended and is back', async () => {
  isVisible = true;
  await finds(OPEN);
  isVisible = false;
  await finds(OPEN);
  expect(messages()).toEqual([]);
  await finds();
  await finds(OPEN);
  expect(messages()).toHaveLength(1);
});

test('it goes when the rules are shown, and a person may close it', async () => {
  await finds(OPEN);
  isVisible = true;
  await jest.advanceTimersByTimeAsync(A_WHILE);
  expect(messages()).toEqual([]);
  isVisible = false;
  await finds(WORD);
  Notification.manager.dismiss();
  await finds(WORD);
  expect(messages()).toEqual([]);
});

test('whoever turned notifications off gets none', async () => {
  notifier.isEnabled = false;
  await finds(OPEN);
  expect(messages()).toEqual([]);
});

test('what a file says is text of one line', async () => {
  await finds({ ...OPEN, message: 'no\n“<b>” \u202e' });
  expect(messages()).toEqual([
    'A file of rules cannot be used: no “<b>” \\u202e'
  ]);
});

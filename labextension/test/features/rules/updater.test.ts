import { RulesUpdater } from '../../../src/features/rules/updater';
import { FakeUser } from '../../user';

const MINUTE = 60_000;

const RUNNING = { isStopped: false };

let updater: RulesUpdater;

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  updater.dispose();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** How often the model is asked in each of some minutes. */
async function asked(isAnswered: boolean): Promise<number[]> {
  const refresh = jest.fn(async () => isAnswered);
  updater = new RulesUpdater({ refresh }, new FakeUser('ada'), RUNNING);
  const counts: number[] = [];
  for (let minute = 0; minute < 12; minute++) {
    refresh.mockClear();
    await jest.advanceTimersByTimeAsync(MINUTE);
    counts.push(refresh.mock.calls.length);
  }
  return counts;
}

test('the rules are asked for every half minute', async () => {
  expect(new Set(await asked(true))).toEqual(new Set([2]));
});

test('a server that does not answer is asked less and less often', async () => {
  jest.spyOn(Math, 'random').mockReturnValue(0.5); // by chance the poll might wait no longer than before
  const counts = await asked(false);
  expect(counts[0]).toBeGreaterThan(0);
  expect(counts.slice(4).reduce((sum, one) => sum + one, 0)).toBeLessThan(6);
});

test('when another user logs in, a server that refused is asked at once', async () => {
  const refresh = jest.fn(async () => false);
  const user = new FakeUser('ben');
  updater = new RulesUpdater({ refresh }, user, RUNNING);
  await jest.advanceTimersByTimeAsync(12 * MINUTE);
  refresh.mockClear();
  user.become('ada');
  await jest.advanceTimersByTimeAsync(0);
  expect(refresh).toHaveBeenCalledTimes(1);
});

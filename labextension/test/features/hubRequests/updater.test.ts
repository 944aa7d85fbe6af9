import { HubRequestsUpdater } from '../../../src/features/hubRequests/updater';
import type { HubRequestsModel } from '../../../src/model/hubRequests';

const MINUTE = 60_000;

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** How often a model is asked in each of some minutes. */
async function asked(
  model: { isForOthers: boolean },
  isAnswered: boolean
): Promise<number[]> {
  jest.useFakeTimers();
  const refresh = jest.fn(async () => isAnswered);
  const polled = Object.assign(model, { refresh });
  const updater = new HubRequestsUpdater(polled as unknown as HubRequestsModel);
  const counts: number[] = [];
  for (let minute = 0; minute < 12; minute++) {
    refresh.mockClear();
    await jest.advanceTimersByTimeAsync(MINUTE);
    counts.push(refresh.mock.calls.length);
  }
  updater.dispose();
  return counts;
}

test('a service that answers is asked every 15 seconds', async () => {
  const counts = await asked({ isForOthers: false }, true);
  expect(Math.max(...counts)).toBeLessThanOrEqual(5);
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(3);
});

test('one that is away is asked less and less often', async () => {
  jest.spyOn(Math, 'random').mockReturnValue(0.5); // by chance the poll might wait no longer than before
  const counts = await asked({ isForOthers: false }, false);
  expect(counts[0]).toBeGreaterThan(0);
  expect(counts.slice(4).reduce((sum, one) => sum + one, 0)).toBeLessThan(6);
});

test('who is told that it is none of theirs asks once', async () => {
  const counts = await asked({ isForOthers: true }, true);
  expect(counts.reduce((sum, one) => sum + one, 0)).toBe(1);
});

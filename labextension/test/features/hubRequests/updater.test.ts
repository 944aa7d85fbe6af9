import { RequestError } from '../../../src/api/errors';
import type { IHubRequestList } from '../../../src/api/protocol';
import { HubRequestsUpdater } from '../../../src/features/hubRequests/updater';
import { HubRequestsModel } from '../../../src/model/hubRequests';
import { hubList, hubRequest } from '../../examples';
import { FakeUser } from '../../user';

const MINUTE = 60_000;
const RUNNING = { isStopped: false };

let updater: HubRequestsUpdater;

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  updater.dispose();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** How often a model is asked in each of some minutes. */
async function asked(isAnswered: boolean): Promise<number[]> {
  const refresh = jest.fn(async () => isAnswered);
  updater = new HubRequestsUpdater({ refresh }, new FakeUser('ada'), RUNNING);
  const counts: number[] = [];
  for (let minute = 0; minute < 12; minute++) {
    refresh.mockClear();
    await jest.advanceTimersByTimeAsync(MINUTE);
    counts.push(refresh.mock.calls.length);
  }
  return counts;
}

test('a service that answers is asked every 15 seconds', async () => {
  const counts = await asked(true);
  expect(Math.max(...counts)).toBeLessThanOrEqual(5);
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(3);
});

test('one that is away, or refuses to answer, is asked less and less often', async () => {
  jest.spyOn(Math, 'random').mockReturnValue(0.5); // by chance the poll might wait no longer than before
  const counts = await asked(false);
  expect(counts[0]).toBeGreaterThan(0);
  expect(counts.slice(4).reduce((sum, one) => sum + one, 0)).toBeLessThan(6);
});

/** A page of a server that is refused as long as `mayAsk` says no, and was so for a minute. */
async function refused(mayAsk: () => boolean): Promise<{
  model: HubRequestsModel;
  user: FakeUser;
}> {
  const listHubRequests = async (): Promise<IHubRequestList> => {
    if (mayAsk()) {
      return hubList([hubRequest()]);
    }
    throw new RequestError(403, 'not yours', null, null);
  };
  const model = new HubRequestsModel({ listHubRequests, now: () => 0 });
  const user = new FakeUser('ben');
  updater = new HubRequestsUpdater(model, user, RUNNING);
  await jest.advanceTimersByTimeAsync(MINUTE);
  expect(model.list.total).toBe(0);
  return { model, user };
}

test('when its user logs in on a page of somebody else, it is asked at once', async () => {
  let name = 'ben';
  const { model, user } = await refused(() => name === 'ada');
  name = 'ada';
  user.become(name);
  await jest.advanceTimersByTimeAsync(0);
  expect(model.list.total).toBe(1);
  name = 'ben';
  user.become(name);
  await jest.advanceTimersByTimeAsync(0);
  expect(model.list.total).toBe(0);
});

test('when a user whose login had ended has logged in again, it is asked at the return to the page', async () => {
  let isLoggedIn = false;
  const { model } = await refused(() => isLoggedIn);
  isLoggedIn = true;
  document.dispatchEvent(new Event('visibilitychange'));
  await jest.advanceTimersByTimeAsync(0);
  expect(model.list.total).toBe(1);
});

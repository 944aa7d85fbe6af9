import { RequestError, isOfStopped } from '../../src/api/errors';
import { EventRouter } from '../../src/api/events';
import { ApprovalsUpdater } from '../../src/features/approvals/updater';
import { HubRequestsUpdater } from '../../src/features/hubRequests/updater';
import { RulesUpdater } from '../../src/features/rules/updater';
import type { IAgentBoxClient } from '../../src/internalTokens';
import { pauseAfter } from '../../src/integrations/pauses';
import { ApprovalModel } from '../../src/model/approvals';
import { HubRequestsModel } from '../../src/model/hubRequests';
import { RulesModel } from '../../src/model/rules';
import { approval, hubList, summaryOf } from '../examples';
import { FakeUser } from '../user';

const MINUTE = 60_000;

/** What the server was asked, and whether a Hub refuses it in its place, with this status. */
const asked: string[] = [];
let status = 0;

const waiting = approval();
const answers: Partial<Record<string, unknown>> = {
  listSummaries: { summaries: [summaryOf(waiting)], next: null, tag: 't' },
  listApprovals: { approvals: [waiting], next: null },
  getApproval: waiting,
  listHubRequests: hubList([]),
  getPolicy: { features: {} }
};
const client = new Proxy({} as IAgentBoxClient, {
  get: (_, name: string) => {
    if (name === 'isStopped') {
      return isOfStopped(refusal()) && asked.length > 0;
    }
    return name === 'now' ? () => 0 : async () => answer(name);
  }
});

function refusal(): RequestError {
  return new RequestError(status, 'no', null, null);
}

function answer(name: string): unknown {
  asked.push(name);
  if (status !== 0) {
    throw refusal();
  }
  return answers[name];
}

async function askedIn(minutes: number): Promise<number> {
  asked.length = 0;
  await jest.advanceTimersByTimeAsync(minutes * MINUTE);
  return asked.length;
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  status = 0;
  jest.restoreAllMocks();
  jest.useRealTimers();
});

test.each([401, 403, 424, 502, 503])(
  'a page whose server answers %d asks at most three times in a minute, and less and less often',
  async refusal => {
    jest.spyOn(Math, 'random').mockReturnValue(0); // the shortest pauses
    const user = new FakeUser('ada');
    const stream = { connect: () => true } as never;
    const model = new ApprovalModel(client);
    const updaters = [
      new ApprovalsUpdater(new EventRouter({ stream }), user, model),
      new HubRequestsUpdater(new HubRequestsModel(client), user, client),
      new RulesUpdater(new RulesModel(client), user, client)
    ];
    expect(await askedIn(2)).toBeGreaterThan(20); // the request waits, so the page asks every five seconds
    expect(model.connection).toBe('connected');

    status = refusal;
    expect(await askedIn(1)).toBeLessThanOrEqual(3);
    expect(model.connection).not.toBe('connected');
    await askedIn(15);
    expect(await askedIn(30)).toBeLessThanOrEqual(3 * 6);

    status = 0;
    document.dispatchEvent(new Event('visibilitychange'));
    expect(await askedIn(1)).toBeGreaterThan(10); // at once, and then as before
    expect(model.connection).toBe('connected');
    updaters.forEach(one => {
      one.dispose();
    });
  }
);

test.each([0, 1])(
  'after %d more answers 404, as of a proxy that has no route yet, a page asks again soon, then less often',
  async more => {
    jest.spyOn(Math, 'random').mockReturnValue(0);
    const stream = { connect: () => true } as never;
    const model = new ApprovalModel(client);
    const updater = new ApprovalsUpdater(
      new EventRouter({ stream }),
      new FakeUser('ada'),
      model
    );
    await askedIn(1);
    expect(model.connection).toBe('connected');

    status = 404;
    await askedIn(5 / 60);
    expect(model.connection).toBe('absent');
    if (more) {
      await askedIn(10 / 60);
      expect(model.connection).toBe('absent');
    }
    status = 0;
    const pause = more ? 60 : 10;
    await askedIn((pause - 6) / 60);
    expect(model.connection).toBe('absent');
    await askedIn(7 / 60);
    expect(model.connection).toBe('connected');
    updater.dispose();
  }
);

test('a page whose server has no such API asks it every five minutes in the end', async () => {
  const stream = { connect: () => true } as never;
  const model = new ApprovalModel(client);
  status = 404;
  const updater = new ApprovalsUpdater(
    new EventRouter({ stream }),
    new FakeUser('ada'),
    model
  );
  expect(await askedIn(15)).toBeLessThanOrEqual(7);
  expect(await askedIn(30)).toBeLessThanOrEqual(6);
  updater.dispose();
});

test('pages do not ask at the same time, and never wait longer than five minutes', () => {
  const pauses = Array.from({ length: 50 }, () => pauseAfter(1));
  expect(new Set(pauses).size).toBeGreaterThan(40);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(MINUTE);
  expect(pauseAfter(20)).toBe(5 * MINUTE);
});

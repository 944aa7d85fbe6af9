import { RequestError } from '../../src/api/errors';
import type {
  IApprovalQuery,
  IDecisionBody,
  INamedDecision
} from '../../src/api/queries';
import { ApprovalModel } from '../../src/model/approvals';
import type { ApprovalSource } from '../../src/model/approvals';
import type {
  IApproval,
  IApprovalPage,
  IDecisionAnswer,
  ISummaryPage
} from '../../src/api/protocol';
import { allowed, approval, approvalAtHub, summaryOf } from '../examples';

/** A server in memory. */
class Server implements ApprovalSource {
  constructor(...approvals: IApproval[]) {
    this.put(...approvals);
  }

  put(...approvals: IApproval[]): void {
    for (const item of approvals) {
      this.approvals.set(item.id, item);
    }
  }

  now(): number {
    return 0;
  }

  async listApprovals(query: IApprovalQuery): Promise<IApprovalPage> {
    this.lists += 1;
    return this.find(query);
  }

  async listSummaries(
    query: IApprovalQuery,
    known?: ISummaryPage | null
  ): Promise<ISummaryPage> {
    this.summaries += 1;
    const { approvals, next } = this.find(query);
    const summaries = approvals.map(summaryOf);
    const atHub = query.cursor ? undefined : this.atHub;
    const tag = JSON.stringify([summaries, next, atHub]);
    if (known?.tag === tag) {
      this.unchanged.push(query.cursor ?? '');
      return known;
    }
    return { summaries, next, atHub, tag };
  }

  /** The ids of the running calls that wait at the Hub. */
  atHub: readonly string[] = [];

  /** Where the pages of summaries began that were as the model knew them. */
  readonly unchanged: string[] = [];

  private find(query: IApprovalQuery): IApprovalPage {
    this.check();
    const found = [...this.approvals.values()].filter(
      item =>
        (query.status?.includes(item.status) ?? true) &&
        (query.ids?.includes(item.id) ?? true)
    );
    const start = Number(query.cursor ?? 0);
    const end = start + (query.limit ?? found.length);
    return {
      approvals: found.slice(start, end),
      next: end < found.length ? String(end) : null
    };
  }

  /** Keep the next answer about one request back; resolves when it was asked for. */
  hold(): Promise<void> {
    return new Promise(asked => {
      this.held = new Promise(resolve => {
        this.release = resolve;
      });
      this.asked = asked;
    });
  }

  async getApproval(id: string): Promise<IApproval> {
    this.gets += 1;
    this.check();
    const found = this.approvals.get(id);
    this.asked();
    await this.held;
    if (!found) {
      throw new RequestError(404, 'unknown', null, null);
    }
    return found;
  }

  async decide(id: string, body: IDecisionBody): Promise<IApproval> {
    this.bodies.push(body);
    const found = await this.getApproval(id);
    if (found.status !== 'pending') {
      throw new RequestError(409, 'not pending', null, found);
    }
    this.put(allowed({ id }));
    return this.getApproval(id);
  }

  async extend(id: string): Promise<IApproval> {
    const found = await this.getApproval(id);
    this.put({ ...found, expires_at: this.latest });
    return this.getApproval(id);
  }

  /** Until when a request waits that was extended. */
  latest: string | null = '2026-01-01T01:00:00Z';

  async decideAll(
    decisions: readonly INamedDecision[]
  ): Promise<IDecisionAnswer[]> {
    this.batches.push(decisions.map(({ id }) => id));
    return decisions.map(({ id, digest }) => {
      const found = this.approvals.get(id);
      const code =
        found?.status === 'pending' && found.call.digest === digest ? 200 : 409;
      if (found && code === 200) {
        this.put(allowed({ id }));
      }
      const reason = code === 200 ? null : 'not_pending';
      const status = this.approvals.get(id)?.status ?? null;
      return { id, code, status, reason, message: '', parameter: null };
    });
  }

  private check(): void {
    if (this.isDown) {
      throw new TypeError('network');
    }
    if (this.status) {
      throw new RequestError(this.status, 'refused', null, null, this.reason);
    }
  }

  approvals = new Map<string, IApproval>();
  private asked: () => void = () => undefined;
  bodies: IDecisionBody[] = [];
  batches: string[][] = [];
  gets = 0;
  private held: Promise<void> | null = null;
  isDown = false;
  lists = 0;
  release: () => void = () => undefined;
  status = 0;
  reason: string | null = null;
  summaries = 0;
}

/** Resolves when the model says that something changed. */
function change(model: ApprovalModel): Promise<void> {
  return new Promise(resolve => {
    const slot = (): void => {
      model.changed.disconnect(slot);
      resolve();
    };
    model.changed.connect(slot);
  });
}

test('a refresh lists what waits, oldest first', async () => {
  const older = approval({ id: 'a1' });
  const newer = approval({ id: 'a2', created_at: '2026-01-01T00:05:00Z' });
  const model = new ApprovalModel(
    new Server(newer, older, allowed({ id: 'z' }))
  );
  await model.refresh();
  expect(model.pending).toEqual([older, newer]);
  expect(model.connection).toBe('connected');
});

test('a thousand pending requests come page by page', async () => {
  const all = Array.from({ length: 1000 }, (_, n) => approval({ id: `a${n}` }));
  const model = new ApprovalModel(new Server(...all));
  await model.refresh();
  expect(model.pending).toHaveLength(1000);
});

test('an event is a hint: the request is asked for', async () => {
  const server = new Server();
  const model = new ApprovalModel(server);
  server.put(approval());
  model.hint('a1');
  await change(model);
  expect(model.get('a1')).toEqual({ approval: approval(), state: 'whole' });
});

test('what is hinted at while an answer is under way is asked for after it', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
  await model.refresh();
  const answering = server.hold();
  model.hint('a1');
  await answering;
  server.put(approval({ id: 'a2' }));
  model.hint('a2');
  const changed = change(model);
  server.release();
  await changed;
  expect(model.pending.map(({ id }) => id)).toEqual(['a1', 'a2']);
});

test('refreshes that are asked for during one are one more', async () => {
  const server = new Server();
  const model = new ApprovalModel(server);
  const first = model.refresh();
  server.put(approval());
  await Promise.all([first, model.refresh(), model.refresh()]);
  expect(server.summaries).toBe(2);
  expect(model.pending).toEqual([approval()]);
});

test('a request arrives once', async () => {
  const model = new ApprovalModel(new Server(approval()));
  const arrived: string[] = [];
  model.arrived.connect((_, items) => {
    arrived.push(...items.map(item => item.id));
  });
  await model.refresh();
  await model.refresh();
  expect(arrived).toEqual(['a1']);
});

test('a decision names the digest that was shown', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
  model.track('a1');
  await model.refresh();
  await model.decide(approval(), { decision: 'allow_once' });
  expect(server.bodies).toEqual([{ decision: 'allow_once', digest: 'd1' }]);
  expect(model.pending).toEqual([]);
  expect(model.get('a1').approval?.status).toBe('approved');
});

test('a decision that came too late brings the truth', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
  model.track('a1');
  await model.refresh();
  server.put(allowed());
  await expect(
    model.decide(approval(), { decision: 'reject_once', reason: '' })
  ).rejects.toMatchObject({ status: 409 });
  expect(model.get('a1').approval).toEqual(allowed());
});

test('what was decided elsewhere settles at the next refresh', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
  await model.refresh();
  const settled: IApproval[] = [];
  model.settled.connect((_, item) => settled.push(item));
  server.put(allowed());
  await model.refresh();
  expect(settled).toEqual([allowed()]);
});

test('an answer that was overtaken does not bring a request back', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
  const refreshing = model.refresh(); // it was asked before the decision
  server.put(allowed());
  model.remember([allowed()]);
  expect(model.get('a1').approval).toEqual(allowed());
  await refreshing;
  expect(model.pending).toEqual([]);
});

test('a request that the server does not know is unknown', async () => {
  const model = new ApprovalModel(new Server());
  model.track('gone');
  await change(model);
  expect(model.get('gone').state).toBe('unknown');
});

test('a tracked request is asked for again when the server is back', async () => {
  const server = new Server(allowed());
  server.isDown = true;
  const model = new ApprovalModel(server);
  model.track('a1');
  await change(model);
  expect(model.get('a1').state).toBe('unreachable');
  await model.refresh();
  expect(model.connection).toBe('unreachable');
  server.isDown = false;
  await model.refresh();
  expect(model.get('a1').approval).toEqual(allowed());
});

test('a request that the server no longer has waits for nobody', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
  model.track('a1');
  await model.refresh();
  server.approvals.clear();
  await model.refresh();
  expect(model.pending).toEqual([]);
  expect(model.isBusy).toBe(false);
  expect(model.get('a1')).toEqual({ approval: null, state: 'unknown' });
});

test('a poll that brings nothing new changes nothing', async () => {
  const server = new Server(approval(), allowed({ id: 'a2' }));
  const model = new ApprovalModel(server);
  await model.refresh();
  const [before] = model.pending;
  let changes = 0;
  model.changed.connect(() => {
    changes += 1;
  });
  server.put(approval());
  await model.refresh();
  expect(changes).toBe(0);
  expect(model.pending[0]).toBe(before);
});

test('what many requests became is asked for by their ids: of those that lapsed a summary, of others all', async () => {
  const ids = Array.from({ length: 400 }, (_, index) => `a${index}`);
  const server = new Server(...ids.map(id => approval({ id })));
  const model = new ApprovalModel(server);
  await model.refresh();
  const tracked = model.track('a399');
  const settled: IApproval[] = [];
  model.settled.connect((_, one) => settled.push(one));
  const ended_at = '2026-01-01T00:05:00Z';
  server.put(
    ...ids.map(id => approval({ id, status: 'cancelled', ended_at })),
    ...ids.slice(0, 50).map(id => allowed({ id }))
  );
  server.approvals.delete('a60');
  [server.lists, server.summaries] = [0, 0];
  await model.refresh();
  expect(model.pending).toEqual([]);
  expect([server.gets, server.lists, server.summaries]).toEqual([0, 1, 3]);
  expect(new Set(settled.map(({ id }) => id)).size).toBe(399);
  const { call } = approval();
  const { approval: last } = model.get('a399');
  expect(last).toMatchObject({ status: 'cancelled', ended_at, call });
  tracked.dispose();
});

test('what many requests became is asked for whole if their summaries do not come', async () => {
  const ids = Array.from({ length: 150 }, (_, index) => `a${index}`);
  const server = new Server(...ids.map(id => approval({ id })));
  const model = new ApprovalModel(server);
  await model.refresh();
  server.put(...ids.map(id => approval({ id, status: 'orphaned' })));
  const listSummaries = server.listSummaries.bind(server);
  server.listSummaries = (query, known) =>
    query.ids
      ? Promise.reject(new TypeError('network'))
      : listSummaries(query, known);
  server.lists = 0;
  await model.refresh();
  expect([model.pending, server.lists]).toEqual([[], 2]);
});

test('cards that appear together ask together', async () => {
  const ids = Array.from({ length: 50 }, (_, index) => `a${index}`);
  const server = new Server(...ids.map(id => allowed({ id })));
  const model = new ApprovalModel(server);
  const changed = change(model);
  ids.forEach(id => model.track(id));
  await changed;
  expect(model.get('a49').state).toBe('loaded');
  expect([server.gets, server.lists]).toEqual([0, 1]);
});

test('the end of a request that nobody knows is not asked for', async () => {
  const server = new Server(allowed());
  const model = new ApprovalModel(server);
  const finished: string[] = [];
  model.finished.connect((_, id) => {
    finished.push(id);
  });
  model.hint('a1', 'approved');
  await model.refresh();
  expect(finished).toEqual(['a1']);
  expect([server.gets, model.get('a1').approval]).toEqual([0, null]);
});

test.each([
  [404, 'absent'],
  [403, 'forbidden'],
  [500, 'failing'],
  [424, 'stopped'],
  [503, 'stopped']
])('status %d says that the server is %s', async (status, connection) => {
  const server = new Server();
  server.status = status;
  const model = new ApprovalModel(server);
  await model.refresh();
  expect(model.connection).toBe(connection);
  server.status = 0;
  server.isDown = true;
  await model.refresh();
  expect(model.connection).toBe('unreachable');
});

test('who may not read requests is not told to log in', async () => {
  const server = new Server();
  server.status = 403;
  server.reason = 'not_authorized';
  const model = new ApprovalModel(server);
  await model.refresh();
  expect(model.connection).toBe('not_authorized');
});

test("an error of the server's own does not say that the server is stopped", async () => {
  const server = new Server();
  server.status = 503;
  server.reason = 'storage';
  const model = new ApprovalModel(server);
  await model.refresh();
  expect(model.connection).toBe('failing');
});

test('an older answer does not bring older progress back', async () => {
  const running = (progress: number): IApproval =>
    allowed({
      outcome: {
        state: 'running',
        started_at: null,
        finished_at: null,
        error: '',
        progress: { progress, total: 2, message: '' }
      }
    });
  const server = new Server(running(1));
  const model = new ApprovalModel(server);
  const answers: ((answer: IApproval) => void)[] = [];
  server.getApproval = () =>
    new Promise(resolve => {
      answers.push(resolve);
    });
  model.track('a1');
  const late = model.load('a1');
  model.remember([running(2)]);
  answers.forEach(answer => {
    answer(running(1));
  });
  await late;
  expect(model.get('a1').approval?.outcome?.progress?.progress).toBe(2);
});

test('nothing is kept that neither waits nor is tracked', async () => {
  const server = new Server(approval({ id: 'waits' }), approval());
  const model = new ApprovalModel(server);
  const known = (): string[] =>
    ['a0', 'a1', 'waits'].filter(id => model.get(id).approval !== null);
  const tracking = model.track('a1');
  model.remember([allowed({ id: 'a0' })]);
  await model.refresh();
  expect(known()).toEqual(['a1', 'waits']);
  server.put(allowed());
  await model.refresh();
  expect(known()).toEqual(['a1', 'waits']);
  tracking.dispose();
  expect(known()).toEqual(['waits']);
});

test('a request that was lost and is tracked no more leaves nothing', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
  const tracking = model.track('a1');
  await model.refresh();
  server.approvals.clear();
  await model.refresh();
  tracking.dispose();
  expect(model.get('a1')).toEqual({ approval: null, state: 'loading' });
});

const LONG = approval({
  call: {
    ...approval().call,
    arguments: {},
    omitted: { size: 30_000_000, head: '{"text":"x' }
  }
});

test('nobody decides a request whose arguments are not here', async () => {
  const server = new Server(LONG);
  const model = new ApprovalModel(server);
  await model.refresh();
  await expect(
    model.decide(LONG, { decision: 'allow_once' })
  ).rejects.toThrow();
  expect(server.bodies).toEqual([]);
});

test('long arguments are fetched when a person wants them, and stay', async () => {
  const server = new Server(LONG);
  const model = new ApprovalModel(server);
  model.track('a1');
  await model.refresh();
  const { getApproval } = server;
  server.getApproval = async () => approval();
  expect(model.get('a1').approval?.call.omitted?.size).toBe(30_000_000);
  await model.load('a1');
  expect(model.get('a1')).toEqual({ approval: approval(), state: 'whole' });
  server.getApproval = getApproval;
  await model.refresh();
  expect(model.pending[0]?.call.arguments).toEqual({ order_id: 7 });
});

test('a request that waits longer does so on all views, and one that cannot is said not to', async () => {
  const server = new Server(approval({ expires_at: '2026-01-01T00:10:00Z' }));
  const model = new ApprovalModel(server);
  await model.refresh();
  const changes: (string | null)[] = [];
  model.changed.connect((_, id) => changes.push(id));

  expect(await model.extend('a1')).toBe(true);
  expect(model.get('a1').approval?.expires_at).toBe(server.latest);
  expect(changes).toEqual(['a1']);
  expect(await model.extend('a1')).toBe(false);
  expect(await model.extend('gone')).toBe(false);
});

test('pages of the list that say what they said are not sent again, and what changed is seen', async () => {
  const many = Array.from({ length: 501 }, (_, n) => approval({ id: `a${n}` }));
  const server = new Server(...many);
  const model = new ApprovalModel(server);
  await model.refresh();
  expect([model.pending.length, server.unchanged]).toEqual([501, []]);
  await model.refresh();
  expect([model.pending.length, server.unchanged]).toEqual([501, ['', '500']]);
  // All pages move on by one, and the second is gone.
  server.put(allowed({ id: 'a0' }));
  await model.refresh();
  expect(model.pending.map(({ id }) => id)).not.toContain('a0');
  expect([model.pending.length, server.unchanged.length]).toEqual([500, 2]);
  await model.refresh();
  expect([model.pending.length, server.unchanged.length]).toEqual([500, 3]);
  model.dispose();
});

test('one answer to many is sent in parts that the server takes', async () => {
  const many = Array.from({ length: 501 }, (_, n) =>
    approval({ id: `a${n}`, call: { ...approval().call, digest: `d${n}` } })
  );
  const server = new Server(...many);
  const model = new ApprovalModel(server);
  await model.refresh();
  server.put(allowed({ id: 'a3' }));
  const answers = await model.decideAll(model.pending, {
    decision: 'allow_once'
  });
  expect(server.batches.map(({ length }) => length)).toEqual([500, 1]);
  const refused = answers.filter(({ code }) => code !== 200);
  expect(refused.map(({ id, status }) => [id, status])).toEqual([
    ['a3', 'approved']
  ]);
  expect(model.pending).toEqual([]);
});

test('nobody decides many of which one was not shown whole', async () => {
  const server = new Server(approval(), LONG);
  const model = new ApprovalModel(server);
  await model.refresh();
  await expect(
    model.decideAll([approval({ id: 'a2' }), LONG], { decision: 'allow_once' })
  ).rejects.toThrow();
  expect(server.batches).toEqual([]);
});

test('many are rejected unread, because what is rejected does not run', async () => {
  const server = new Server(approval({ id: 'a2' }), LONG);
  const model = new ApprovalModel(server);
  await model.refresh();
  await model.decideAll([approval({ id: 'a2' }), LONG], {
    decision: 'reject_once',
    reason: ''
  });
  expect(server.batches).toEqual([['a2', LONG.id]]);
});

test('what waits is asked for once, and after that only how it stands', async () => {
  const server = new Server(...approvals(3));
  const model = new ApprovalModel(server);
  await model.refresh();
  await model.refresh();
  expect([server.summaries, server.lists, server.gets]).toEqual([2, 1, 0]);
  const later = '2026-01-01T02:00:00Z';
  server.put(approval({ id: 'a1', expires_at: later }), approval({ id: 'a9' }));
  await model.refresh();
  expect([server.summaries, server.lists, server.gets]).toEqual([3, 2, 0]);
  expect(model.get('a1').approval?.expires_at).toBe(later);
  expect(model.pending).toHaveLength(4);
});

function approvals(count: number): IApproval[] {
  return Array.from({ length: count }, (_, number) =>
    approval({ id: `a${number}` })
  );
}

test('calls that wait at the Hub are counted with and without a card, until they have been answered there', async () => {
  const server = new Server();
  const model = new ApprovalModel(server);
  model.track('a1');
  model.remember([approvalAtHub({ id: 'a1' })]);
  server.put(approvalAtHub({ id: 'a1' }), approvalAtHub({ id: 'elsewhere' }));
  server.atHub = ['a1', 'elsewhere'];
  await model.refresh();
  expect(idsAtHub(model)).toEqual(['a1', 'elsewhere']);
  server.put(answeredAtHub('elsewhere'));
  model.hint('elsewhere', 'approved');
  await change(model);
  expect(idsAtHub(model)).toEqual(['a1']);
  await model.refresh();
  expect(model.get('elsewhere').approval).toBeNull();
});

test('a call without a card that waits at the Hub is fetched once, and again when the list lacks it', async () => {
  const server = new Server(approvalAtHub({ id: 'a1' }));
  const model = new ApprovalModel(server);
  server.atHub = ['a1'];
  await model.refresh();
  await model.refresh();
  expect([server.summaries, server.lists, server.gets]).toEqual([2, 1, 0]);
  expect(model.isBusy).toBe(false);
  server.put(answeredAtHub('a1'));
  server.atHub = [];
  const changes = jest.fn();
  model.changed.connect(changes);
  await model.refresh();
  expect(idsAtHub(model)).toEqual([]);
  expect(changes).toHaveBeenCalled();
});

test('a call with a card that waits at the Hub is fetched with each list: how many have approved changes', async () => {
  const server = new Server(approvalAtHub({ id: 'a1' }));
  const model = new ApprovalModel(server);
  server.atHub = ['a1'];
  await model.refresh();
  model.track('a1');
  await model.refresh();
  expect([server.lists, server.gets]).toEqual([1, 1]);
  expect(model.isBusy).toBe(true);
});

test('a call that waits at the Hub is still counted when its card is gone', () => {
  const model = new ApprovalModel(new Server());
  const tracking = model.track('a1');
  model.remember([approvalAtHub({ id: 'a1' })]);
  tracking.dispose();
  expect(idsAtHub(model)).toEqual(['a1']);
});

function idsAtHub(model: ApprovalModel): string[] {
  return model.atHub.map(({ id }) => id);
}

function answeredAtHub(id: string): IApproval {
  const { outcome } = approvalAtHub();
  const review = outcome?.review && { ...outcome.review, status: 'approved' };
  return approvalAtHub({
    id,
    outcome: { ...outcome, review } as IApproval['outcome']
  });
}

import { RequestError } from '../src/client';
import type { IApprovalQuery, IDecisionBody } from '../src/client';
import { ApprovalModel } from '../src/models/approvals';
import type { ApprovalSource } from '../src/models/approvals';
import type { IApproval, IApprovalPage } from '../src/protocol';
import { allowed, approval } from './examples';

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
    this.check();
    const found = [...this.approvals.values()].filter(
      item => query.status?.includes(item.status) ?? true
    );
    const start = Number(query.cursor ?? 0);
    const end = start + (query.limit ?? found.length);
    return {
      approvals: found.slice(start, end),
      next: end < found.length ? String(end) : null
    };
  }

  async getApproval(id: string): Promise<IApproval> {
    this.check();
    const found = this.approvals.get(id);
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

  private check(): void {
    if (this.isDown) {
      throw new TypeError('network');
    }
  }

  approvals = new Map<string, IApproval>();
  bodies: IDecisionBody[] = [];
  isDown = false;
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

test('a refresh lists what waits, newest first', async () => {
  const older = approval({ id: 'a1' });
  const newer = approval({ id: 'a2', created_at: '2026-01-01T00:05:00Z' });
  const model = new ApprovalModel(
    new Server(older, newer, allowed({ id: 'z' }))
  );
  await model.refresh();
  expect(model.pending).toEqual([newer, older]);
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
  expect(model.get('a1')).toEqual({ approval: approval(), state: 'loaded' });
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
  await model.refresh();
  await model.decide(approval(), { decision: 'allow_once' });
  expect(server.bodies).toEqual([{ decision: 'allow_once', digest: 'd1' }]);
  expect(model.pending).toEqual([]);
  expect(model.get('a1').approval?.status).toBe('approved');
});

test('a decision that came too late brings the truth', async () => {
  const server = new Server(approval());
  const model = new ApprovalModel(server);
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
  const model = new ApprovalModel(new Server());
  model.remember([allowed()]);
  model.remember([approval()]);
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

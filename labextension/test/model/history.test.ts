import type { IApprovalQuery } from '../../src/api/queries';
import { ApprovalModel } from '../../src/model/approvals';
import { HistoryModel } from '../../src/model/history';
import type { IApproval, IApprovalPage } from '../../src/api/protocol';
import { allowed, approval } from '../examples';

/** A server whose answers come when the test says so. */
class Server {
  async extend(): Promise<IApproval> {
    throw new Error('nobody asks');
  }

  async listApprovals(query: IApprovalQuery): Promise<IApprovalPage> {
    const start = Number(query.cursor ?? 0);
    const end = start + (query.limit ?? this.items.length);
    const next = end < this.items.length ? String(end) : null;
    const page = { approvals: this.items.slice(start, end), next };
    return this.gates.shift()?.then(() => page) ?? page;
  }

  listSummaries = (): Promise<never> => Promise.reject(new Error());
  now = (): number => 0;
  getApproval = (): Promise<IApproval> => Promise.reject(new Error());
  decide = (): Promise<IApproval> => Promise.reject(new Error());
  decideAll = (): Promise<never> => Promise.reject(new Error());
  gates: Promise<void>[] = [];
  items: IApproval[] = [];
}

function setUp(...ids: string[]): {
  server: Server;
  approvals: ApprovalModel;
  history: HistoryModel;
} {
  const server = new Server();
  server.items = ids.map(id => allowed({ id }));
  const approvals = new ApprovalModel(server);
  const history = new HistoryModel(server, approvals);
  history.pageSize = 2;
  return { server, approvals, history };
}

const idsOf = (history: HistoryModel): string[] =>
  history.items.map(({ id }) => id);

test('loading anew keeps the pages that were loaded', async () => {
  const { history, server } = setUp('a4', 'a3', 'a2', 'a1', 'a0');
  await history.load();
  await history.loadMore();
  server.items = [allowed({ id: 'a5' }), ...server.items];
  await history.load();
  expect(idsOf(history)).toEqual(['a5', 'a4', 'a3', 'a2', 'a1']);
  expect(history.hasMore).toBe(true);
});

test('loading anew does not keep a person from loading more', async () => {
  const { history, server } = setUp('a4', 'a3', 'a2', 'a1', 'a0');
  await history.load();
  server.gates.push(Promise.reject(new Error('500')));
  const anew = history.load();
  expect(history.state).toBe('ready');
  await history.loadMore();
  expect(idsOf(history)).toEqual(['a4', 'a3', 'a2', 'a1']);
  await anew;
  expect(history.state).toBe('failing');
});

test('a page that cannot be had is not taken for one that is there', async () => {
  const { history, server } = setUp('a2', 'a1', 'a0');
  server.gates.push(Promise.reject(new Error('500')));
  await history.load();
  expect(history.state).toBe('failing');
  await history.load();
  expect(history.state).toBe('ready');
  server.gates.push(Promise.reject(new Error('500')));
  const more = history.loadMore();
  expect(history.state).toBe('loading');
  await more;
  expect([history.state, idsOf(history)]).toEqual(['failing', ['a2', 'a1']]);
  await history.loadMore();
  expect([history.state, idsOf(history)]).toEqual([
    'ready',
    ['a2', 'a1', 'a0']
  ]);
});

test('a call that a rule decided comes while the history is open', async () => {
  const { history, server, approvals } = setUp('a1');
  await history.load();
  server.items = [allowed({ id: 'a2' }), ...server.items];
  const changed = new Promise<void>(resolve => {
    history.changed.connect(() => {
      resolve();
    });
  });
  approvals.hint('a2', 'approved');
  await changed;
  expect(idsOf(history)).toEqual(['a2', 'a1']);
});

test('an answer to an earlier question does not win', async () => {
  const { history, server } = setUp('a1');
  let open = (): void => undefined;
  server.gates.push(
    new Promise(resolve => {
      open = resolve;
    })
  );
  const early = history.load();
  server.items = [allowed({ id: 'a2' }), ...server.items];
  await history.load();
  open();
  await early;
  expect(idsOf(history)).toEqual(['a2', 'a1']);
});

test('what is listed is kept, and let go at last', async () => {
  const { approvals, history } = setUp('a2', 'a1');
  await history.load();
  expect(approvals.get('a1').approval).not.toBeNull();
  history.dispose();
  expect(approvals.get('a1').approval).toBeNull();
});

test('what ends is not kept before someone opened the history', () => {
  const { approvals, history } = setUp();
  approvals.remember([approval({ id: 'a1' })]);
  approvals.remember([allowed({ id: 'a1' })]);
  expect(history.items).toEqual([]);
  expect(approvals.get('a1').approval).toBeNull();
});

test('a page that is open for a week lists no more than it can show, and knows what comes after it', async () => {
  const { approvals, history, server } = setUp('b3', 'b2', 'b1');
  await history.load();
  expect(history.hasMore).toBe(true);
  for (let number = 0; number < 1100; number++) {
    const id = `a${number}`;
    approvals.remember([approval({ id })]);
    approvals.remember([allowed({ id })]);
  }
  expect(history.items.length).toBeLessThanOrEqual(152);
  expect(history.items[0]?.id).toBe('a1099');
  server.items = ['a1099', 'a1098', 'a1097'].map(id => allowed({ id }));
  await history.load();
  expect(history.hasMore).toBe(true);
  await history.loadMore();
  expect(idsOf(history)).toContain('a1097');
});

import type { AuditQuery } from '../../src/api/queries';
import type { IAuditPage, IAuditRecord } from '../../src/api/protocol';
import { AuditLogModel } from '../../src/model/auditLog';

const NOON = new Date(2026, 10, 22, 12);

/** A server that answers as the test says, and keeps what it was asked. */
class Server {
  async listAudit(query: AuditQuery): Promise<IAuditPage> {
    this.asked.push(query);
    const page = this.pages.shift();
    if (!page) {
      throw new Error('unreachable');
    }
    return page;
  }

  auditUrl(query: AuditQuery, format: string): string {
    return `${format}:${query.tool}`;
  }

  asked: AuditQuery[] = [];
  pages: (IAuditPage | Promise<IAuditPage>)[] = [];
}

function page(next: string | null, ...ids: string[]): IAuditPage {
  const records = ids.map(id => ({ id }) as IAuditRecord);
  return { records, next, searched_until: null };
}

function setUp(...pages: (IAuditPage | Promise<IAuditPage>)[]): {
  server: Server;
  log: AuditLogModel;
} {
  const server = new Server();
  server.pages = pages;
  return { server, log: new AuditLogModel(server, () => new Date(NOON)) };
}

const idsOf = (log: AuditLogModel): string[] => log.records.map(({ id }) => id);

test('pages follow each other', async () => {
  const { server, log } = setUp(page('c', 'r3', 'r2'), page(null, 'r1'));
  await log.load();
  expect(log.hasMore).toBe(true);
  await log.loadMore();
  await log.loadMore();

  expect(idsOf(log)).toEqual(['r3', 'r2', 'r1']);
  expect(server.asked.map(({ cursor }) => cursor)).toEqual(['', 'c']);
  expect([log.hasMore, log.state]).toEqual([false, 'ready']);
});

test('a search goes on through pages without a record', async () => {
  const { log } = setUp(page('a'), page('b'), page('c', 'r1'), page(null));
  await log.setFilter({ text: 'needle' });

  expect(idsOf(log)).toEqual(['r1']);
  expect(log.hasMore).toBe(true);
});

test('a filter is asked of the server', async () => {
  const { server, log } = setUp(page(null), page(null));
  await log.setFilter({
    period: 'week',
    result: 'lapsed',
    tool: 'order',
    reviewer: 'ada',
    notebook: 'a.ipynb',
    text: ' two words '
  });
  await log.setFilter({ tool: 'delete_*', period: 'today' });

  expect(server.asked[0]).toEqual({
    status: 'expired,cancelled,orphaned',
    since: new Date(2026, 10, 16).toISOString(),
    tool: '*order*',
    reviewer: 'ada',
    notebook_path: 'a.ipynb',
    q: 'two words',
    limit: '100',
    cursor: ''
  });
  expect(server.asked[1].tool).toBe('delete_*');
  expect(server.asked[1].since).toBe(new Date(2026, 10, 22).toISOString());
  expect(log.url('csv')).toBe('csv:delete_*');
});

test('a reviewer is asked for by the name that the server knows', async () => {
  const server = new Server();
  const log = new AuditLogModel(
    server,
    () => NOON,
    name => `the user ${name}`
  );
  await log.setFilter({ reviewer: 'ada' });

  expect(server.asked[0].reviewer).toBe('the user ada');
});

test('yesterday ends where today begins', async () => {
  const { server, log } = setUp(page(null), page(null));
  await log.setFilter({ period: 'yesterday' });
  await log.setFilter({ period: 'all' });

  const [yesterday, all] = server.asked;
  expect(yesterday).toMatchObject({
    since: new Date(2026, 10, 21).toISOString(),
    until: new Date(2026, 10, 22).toISOString()
  });
  expect([all.since, all.until]).toEqual([undefined, undefined]);
});

test('the answer to an earlier filter is not shown', async () => {
  let answer: (page: IAuditPage) => void = () => undefined;
  const late = new Promise<IAuditPage>(resolve => {
    answer = resolve;
  });
  const { log } = setUp(late, page(null, 'new'));
  const first = log.load();
  await log.setFilter({ text: 'new' });
  answer(page(null, 'old'));
  await first;

  expect(idsOf(log)).toEqual(['new']);
});

test('what was found stays when the server does not answer', async () => {
  const { log } = setUp(page('c', 'r1'));
  await log.load();
  await log.loadMore();

  expect([idsOf(log), log.state]).toEqual([['r1'], 'failing']);
});

test('news come before what was loaded, which stays with what follows it', async () => {
  const { server, log } = setUp(
    page('c', 'r3', 'r2'),
    page('d', 'r1', 'r0'),
    page('e', 'r4', 'r3')
  );
  await log.load();
  await log.loadMore();
  const shown = log.records.slice(1);
  await log.update();

  expect(idsOf(log)).toEqual(['r4', 'r3', 'r2', 'r1', 'r0']);
  expect(log.records.slice(2)).toEqual(shown);
  expect(log.state).toBe('ready');
  server.pages = [page(null)];
  await log.loadMore();
  expect(server.asked.at(-1)?.cursor).toBe('d');
});

test('a record that has changed is replaced, and one that no longer matches goes', async () => {
  const before = page(null, 'r3', 'r2', 'r1');
  const after = page(null, 'r3', 'r1');
  after.records[1].status = 'rejected';
  const { log } = setUp(before, after);
  await log.load();
  await log.update();

  expect(idsOf(log)).toEqual(['r3', 'r1']);
  expect(log.records[1].status).toBe('rejected');
});

test('if more were added than a page has, there is no gap in between', async () => {
  const { log } = setUp(page('c', 'r1', 'r0'), page('d', 'r9', 'r8'));
  await log.load();
  await log.update();

  expect(idsOf(log)).toEqual(['r9', 'r8']);
  expect(log.hasMore).toBe(true);
});

test('news that cannot be had, or come after another filter was chosen, change nothing', async () => {
  let answer: (page: IAuditPage) => void = () => undefined;
  const late = new Promise<IAuditPage>(resolve => {
    answer = resolve;
  });
  const { log } = setUp(page(null, 'r1'), late, page(null, 'r2'));
  await log.load();
  const news = log.update();
  await log.setFilter({ tool: 'other' });
  answer(page(null, 'r3', 'r1'));
  await news;
  expect(idsOf(log)).toEqual(['r2']);
  await log.update(); // the server has no more answers
  expect(idsOf(log)).toEqual(['r2']);
  expect(log.state).toBe('ready');
});

test('what happens while a page is fetched is fetched after it', async () => {
  const { server, log } = setUp(page(null, 'r1'), page(null, 'r2', 'r1'));
  const loading = log.load();
  await log.update();
  await loading;
  await Promise.resolve();
  await Promise.resolve();

  expect(idsOf(log)).toEqual(['r2', 'r1']);
  expect(server.asked).toHaveLength(2);
});

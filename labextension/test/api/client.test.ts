import type { ServerConnection } from '@jupyterlab/services';

import { AgentBoxClient } from '../../src/api/client';
import { RequestError } from '../../src/api/errors';
import { stringify } from '../../src/api/json';
import { allowed, approval, summaryOf } from '../examples';

/** A server with one answer, which keeps what it was asked. */
class Server {
  answer(status: number, body: string, date?: Date, tag?: string): void {
    this._answer = { status, body, date, tag };
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    const { pathname, search } = new URL(request.url);
    // JupyterLab adds the time to what must not be cached.
    const query = search.replace(/[?&]\d{10,}$/, '');
    this.asked.push(
      `${request.method} ${pathname}${query} ${await request.text()}`.trim()
    );
    this.tags.push(request.headers.get('If-None-Match'));
    const { status, body, date, tag } = this._answer;
    const headers = new Headers(date ? { Date: date.toUTCString() } : {});
    if (tag !== undefined) {
      headers.set('ETag', tag);
    }
    const response = {
      ok: status >= 200 && status < 300,
      status,
      statusText: 'as the status says',
      headers,
      text: () => Promise.resolve(body),
      clone: () => response
    } as Response;
    return response;
  };

  readonly asked: string[] = [];
  /** The `If-None-Match` of each question. */
  readonly tags: (string | null)[] = [];
  private _answer: {
    status: number;
    body: string;
    date?: Date;
    tag?: string;
  } = {
    status: 200,
    body: '{}'
  };
}

/** As much of the browser's class as the client uses; jsdom has none. */
class Request {
  constructor(
    readonly url: string,
    private readonly _init: RequestInit
  ) {
    this.headers = new Headers(_init.headers);
  }

  readonly headers: Headers;

  get method(): string {
    return this._init.method ?? 'GET';
  }

  text(): Promise<string> {
    return Promise.resolve(String(this._init.body ?? ''));
  }
}

let server: Server;
let client: AgentBoxClient;

beforeEach(() => {
  server = new Server();
  // `makeSettings` wants a `fetch` of the browser, which jsdom has not.
  client = new AgentBoxClient({
    baseUrl: 'http://localhost/base/',
    fetch: server.fetch,
    Request,
    Headers,
    init: {},
    token: '',
    appendToken: false
  } as unknown as ServerConnection.ISettings);
});

test('lists the requests that are asked for', async () => {
  const one = approval();
  server.answer(200, JSON.stringify({ approvals: [one], next: 'c2' }));
  const page = await client.listApprovals({
    status: ['pending', 'approved'],
    limit: 3,
    cursor: 'c1'
  });
  expect(page).toEqual({ approvals: [one], next: 'c2' });
  await client.listApprovals({ ids: ['a1', 'a2'] });
  expect(server.asked).toEqual([
    'GET /base/jupyter-agentbox/approvals?status=pending%2Capproved&limit=3&cursor=c1',
    'GET /base/jupyter-agentbox/approvals?ids=a1%2Ca2'
  ]);
});

test('lists which requests there are and how they stand', async () => {
  const one = summaryOf(approval());
  const page = { approvals: [one], next: null, at_hub: ['a2', 3] };
  server.answer(200, JSON.stringify(page));
  expect(await client.listSummaries({ status: ['pending'] })).toEqual({
    summaries: [one],
    next: null,
    atHub: ['a2'],
    tag: null
  });
  expect(server.asked).toEqual([
    'GET /base/jupyter-agentbox/approvals?status=pending&summary=true'
  ]);
});

test('a page of summaries that is as it was is not sent again', async () => {
  const one = summaryOf(approval());
  const body = JSON.stringify({ approvals: [one], next: 'c2' });
  server.answer(200, body, undefined, '"t1"');
  const page = await client.listSummaries({});
  server.answer(304, '');
  expect(await client.listSummaries({}, page)).toBe(page);
  server.answer(
    200,
    JSON.stringify({ approvals: [], next: null }),
    undefined,
    '"t2"'
  );
  const after = await client.listSummaries({}, page);
  expect(after).toEqual({ summaries: [], next: null, atHub: [], tag: '"t2"' });
  expect(server.tags).toEqual([null, '"t1"', '"t1"']);
});

test('a proxy that takes the tag of a page away has it sent again', async () => {
  server.answer(200, JSON.stringify({ approvals: [], next: null }));
  const page = await client.listSummaries({});
  await client.listSummaries({}, page);
  expect(server.tags).toEqual([null, null]);
  // Nothing was asked that this would answer.
  server.answer(304, '');
  await expect(client.listSummaries({}, page)).rejects.toThrow(RequestError);
});

test('a list that is none is empty', async () => {
  server.answer(200, '[]');
  expect(await client.listApprovals({})).toEqual({ approvals: [], next: null });
});

test('arguments keep every digit, those of the decision too', async () => {
  const one = allowed({ id: 'a/1' });
  const body = JSON.stringify(one)
    .replace(
      /"arguments":\{[^}]*\}/,
      '"arguments":{"wei":1000000000000000000001}'
    )
    .replace('"arguments":null', '"arguments":{"price":149.0}');
  server.answer(200, body);
  const { call, decision } = await client.getApproval('a/1');
  expect(stringify(call.arguments)).toBe('{"wei":1000000000000000000001}');
  expect(decision?.arguments && stringify(decision.arguments)).toBe(
    '{"price":149.0}'
  );
  expect(server.asked).toEqual(['GET /base/jupyter-agentbox/approvals/a%2F1']);
});

test('a decision is posted as JSON, with the digest of what was shown', async () => {
  server.answer(200, JSON.stringify(allowed()));
  await client.decide('a1', {
    decision: 'reject_once',
    digest: 'd',
    reason: ''
  });
  expect(server.asked).toEqual([
    'POST /base/jupyter-agentbox/approvals/a1/decision {"decision":"reject_once","digest":"d","reason":""}'
  ]);
});

test('an error says what the server said, and what the request is now', async () => {
  const now = allowed();
  server.answer(
    409,
    JSON.stringify({
      message: 'too late',
      parameter: 'id',
      reason: 'r',
      approval: now
    })
  );
  const error: unknown = await client.getApproval('a1').catch(e => e);
  expect(error).toBeInstanceOf(RequestError);
  expect(error).toMatchObject({
    status: 409,
    message: 'too late',
    parameter: 'id',
    reason: 'r',
    approval: now
  });
});

test.each([
  [503, '<html>', 503],
  [500, '', 500],
  [200, '<html>', 502]
])('status %d with %j is an error %d', async (status, body, expected) => {
  server.answer(status, body);
  await expect(client.listServers()).rejects.toMatchObject({
    status: expected,
    message: 'as the status says'
  });
});

test.each([
  [503, '<html>', true],
  [424, '{"status":424,"message":"Your server is not running"}', true],
  [503, '{"message":"the store is locked","reason":"storage"}', false],
  [502, '{"message":"shop does not start","reason":"tool_server"}', false],
  [409, '{"message":"no"}', false],
  [200, '<html>', false]
])(
  'whether it is stopped, a server is believed only in its absence: %d with %j',
  async (status, body, isStopped) => {
    server.answer(status, body);
    await client.listServers().catch(() => null);
    expect(client.isStopped).toBe(isStopped);
  }
);

test('the clock is the server’s if the two differ by more than a moment', async () => {
  jest.useFakeTimers({ now: 1_000_000_000_000 });
  try {
    server.answer(200, '{}', new Date(Date.now() + 60_000));
    await client.listServers();
    expect(client.now()).toBe(Date.now() + 60_500);
    server.answer(200, '{}', new Date(Date.now() + 1000));
    await client.listServers();
    expect(client.now()).toBe(Date.now());
  } finally {
    jest.useRealTimers();
  }
});

test('the clock does not jump to and fro where the two differ by about a moment', async () => {
  jest.useFakeTimers({ now: 1_000_000_000_000 });
  try {
    const seen = [];
    for (const ahead of [2000, 1000, 2000]) {
      server.answer(200, '{}', new Date(Date.now() + ahead));
      await client.listServers();
      seen.push(client.now() - Date.now());
    }
    expect(seen).toEqual([2500, 2500, 2500]);
  } finally {
    jest.useRealTimers();
  }
});

test('asks of a kernel how far it is kept away, and how it ended', async () => {
  server.answer(
    200,
    '{"isolation":"bubblewrap","content_security_policy":"p"}'
  );
  expect(await client.getIsolation('k1')).toEqual({
    level: 'bubblewrap',
    policy: 'p'
  });
  expect(await client.getLastExit('k1')).toBeNull();
  server.answer(200, '[]');
  expect(await client.getIsolation('k1')).toEqual({
    level: null,
    policy: null
  });
});

test('restarts a server by its name', async () => {
  await client.runServer('a b', 'restart');
  expect(server.asked).toEqual([
    'POST /base/jupyter-agentbox/servers/a%20b/restart {}'
  ]);
});

test('threads are listed, changed and left as the reference has it', async () => {
  server.answer(200, '{"threads": [{"id": "a"}], "next": "c"}');
  const page = await client.listThreads({ isArchived: true, cursor: 'b' });
  expect(page).toEqual({ threads: [{ id: 'a' }], next: 'c' });
  server.answer(200, '{}');
  await client.updateThread('a/b', { name: 'n' });
  await client.forkThread('a');
  await client.steerTurn('t', 'words');
  await client.interruptTurn('t');
  server.answer(200, '{"messages": [{"role": "user", "text": "a"}]}');
  expect(await client.getMessages('a')).toEqual([{ role: 'user', text: 'a' }]);
  server.answer(204, '');
  await client.deleteThread('a');
  const base = '/base/jupyter-agentbox/';
  expect(server.asked.map(line => line.replace(base, ''))).toEqual([
    'GET threads?archived=1&cursor=b',
    'PATCH threads/a%2Fb {"name":"n"}',
    'POST threads/a/fork {}',
    'POST turns/t/steer {"text":"words"}',
    'POST turns/t/interrupt {}',
    'GET threads/a/messages',
    'DELETE threads/a'
  ]);
});

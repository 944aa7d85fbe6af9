import type { IServer, IServerList } from '../../src/api/protocol';
import { ServersModel } from '../../src/model/servers';

function listOf(...names: string[]): IServerList {
  const servers = names.map(name => ({ name, state: 'running' }) as IServer);
  return { servers, problems: [] };
}

/** A server whose answers come when the test gives them. */
class Server {
  listServers(): Promise<IServerList> {
    return new Promise((resolve, reject) => {
      this.questions.push({ resolve, reject });
    });
  }

  readonly runServer = jest.fn(() => Promise.reject(new Error('broken')));
  readonly reviewServer = jest.fn(() => Promise.resolve('a1'));
  readonly distrustServer = jest.fn(() => Promise.resolve());
  readonly beginSignIn = jest.fn(() => Promise.reject(new Error('none')));
  readonly cancelSignIn = jest.fn(() => Promise.resolve());
  readonly signOut = jest.fn(() => Promise.resolve());
  readonly listTools = jest.fn(() => Promise.resolve(null));
  readonly getTool = jest.fn(() => Promise.reject(new Error('none')));
  readonly callTool = jest.fn(() => Promise.reject(new Error('none')));
  readonly lookAtTools = jest.fn(() => Promise.resolve());
  readonly getCallEnd = jest.fn(() => Promise.reject(new Error('none')));
  readonly previewServer = jest.fn(() => Promise.reject(new Error('none')));
  readonly addServer = jest.fn(() => Promise.resolve());
  readonly listOtherServers = jest.fn(() => Promise.resolve([]));
  readonly questions: {
    resolve: (list: IServerList) => void;
    reject: (error: Error) => void;
  }[] = [];
}

function setUp(): { server: Server; model: ServersModel; changes: number[] } {
  const server = new Server();
  const model = new ServersModel(server);
  const changes: number[] = [];
  model.changed.connect(() => changes.push(model.list?.servers.length ?? -1));
  return { server, model, changes };
}

test('an answer that says nothing new changes nothing', async () => {
  const { server, model, changes } = setUp();
  for (const names of [['shop'], ['shop'], ['shop', 'mail']]) {
    const refreshing = model.refresh();
    server.questions.pop()?.resolve(listOf(...names));
    await refreshing;
  }
  expect(changes).toEqual([1, 2]);
});

test('an answer to an earlier question does not win', async () => {
  const { server, model } = setUp();
  const both = [model.refresh(), model.refresh()];
  const [early, late] = server.questions;
  late.resolve(listOf('new'));
  early.resolve(listOf('old'));
  await Promise.all(both);
  expect(model.list).toEqual(listOf('new'));
});

test('what is known stays while the server does not answer', async () => {
  const { server, model, changes } = setUp();
  const first = model.refresh();
  server.questions.pop()?.resolve(listOf('shop'));
  await first;
  const second = model.refresh();
  server.questions.pop()?.reject(new TypeError('network'));
  await second;
  expect(model.list).toEqual(listOf('shop'));
  expect(changes).toEqual([1]);
});

test('a restart that fails says so, and the servers are asked for all the same', async () => {
  const { server, model } = setUp();
  const restarting = model.run('shop', 'restart');
  await Promise.resolve();
  await Promise.resolve();
  server.questions.pop()?.resolve(listOf('shop'));
  await expect(restarting).rejects.toThrow('broken');
  expect(model.list).toEqual(listOf('shop'));
});

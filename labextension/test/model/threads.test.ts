import type { IThreadQuery } from '../../src/api/queries';
import type { IThread, IThreadPage } from '../../src/api/threads';
import { ThreadsModel } from '../../src/model/threads';
import type { ThreadsSource } from '../../src/model/threads';
import { thread } from '../threads';

/** A server that has some threads, two on a page. */
class Server implements ThreadsSource {
  constructor(public threads: IThread[] = []) {}

  listThreads({ isArchived, cursor }: IThreadQuery): Promise<IThreadPage> {
    this.asked.push(`${isArchived ? 'archived' : 'listed'} ${cursor ?? ''}`);
    if (this.isDown) {
      return Promise.reject(new Error('down'));
    }
    const all = this.threads.filter(one => one.is_archived === isArchived);
    const start = Number(cursor ?? 0);
    const isMore = all.length > start + 2;
    return Promise.resolve({
      threads: all.slice(start, start + 2),
      next: isMore ? String(start + 2) : null
    });
  }

  readonly updateThread = jest.fn(() => Promise.resolve());
  readonly forkThread = jest.fn(() => Promise.resolve());
  readonly deleteThread = jest.fn(() => Promise.reject(new Error('in use')));
  readonly steerTurn = jest.fn(() => Promise.resolve());
  readonly interruptTurn = jest.fn(() => Promise.resolve());
  readonly asked: string[] = [];
  isDown = false;
}

function names(model: ThreadsModel): string[] {
  return (model.threads ?? []).map(({ id }) => id);
}

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test('archived threads are asked for once someone wants to see them', async () => {
  const server = new Server([thread('a'), thread('b', { is_archived: true })]);
  const model = new ThreadsModel(server);
  await model.refresh();
  expect(names(model)).toEqual(['a']);
  await model.setShowsArchived(true);
  expect(names(model)).toEqual(['a', 'b']);
  await model.setShowsArchived(false);
  expect(names(model)).toEqual(['a']);
});

test('pages that were loaded are refreshed together, and a thread is never twice there', async () => {
  const server = new Server(['a', 'b', 'c'].map(id => thread(id)));
  const model = new ThreadsModel(server);
  await model.refresh();
  expect([names(model), model.hasMore]).toEqual([['a', 'b'], true]);
  server.threads = ['a', 'b', 'a', 'c'].map(id => thread(id));
  await model.loadMore();
  expect([names(model), model.hasMore]).toEqual([['a', 'b', 'c'], false]);
});

test('an answer that says nothing new changes nothing', async () => {
  const server = new Server([thread('a')]);
  const model = new ThreadsModel(server);
  let changes = 0;
  model.changed.connect(() => changes++);
  await model.refresh();
  await model.refresh();
  expect(changes).toBe(1);
});

test('what is listed stays while the server does not answer', async () => {
  const server = new Server([thread('a')]);
  const model = new ThreadsModel(server);
  await model.refresh();
  server.isDown = true;
  await model.refresh();
  expect(names(model)).toEqual(['a']);
});

test('while an agent works its steps are asked for, and no longer', async () => {
  const server = new Server([thread('a', { turn_id: 't1' })]);
  const model = new ThreadsModel(server);
  await model.refresh();
  server.threads = [thread('a', { steps: 2 })];
  await jest.advanceTimersByTimeAsync(3000);
  expect(model.threads?.[0].steps).toBe(2);
  await jest.advanceTimersByTimeAsync(60_000);
  expect(server.asked).toHaveLength(2);
  model.dispose();
});

test('what was refused is told, and the threads are asked for all the same', async () => {
  const server = new Server([thread('a')]);
  const model = new ThreadsModel(server);
  await expect(model.delete('a')).rejects.toThrow('in use');
  expect(names(model)).toEqual(['a']);
});

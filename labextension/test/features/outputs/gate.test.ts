import { Notebook, Server, settle } from '../../sessions';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

test('a server that does not say is asked again, less and less often', async () => {
  const server = new Server();
  server.say('k1', null);
  const notebook = new Notebook(server);
  notebook.connect('k1');
  await settle();
  const times: number[] = [];
  for (let second = 1; second <= 300; second++) {
    const before = server.asked.length;
    jest.advanceTimersByTime(1000);
    await settle();
    if (server.asked.length > before) {
      times.push(second);
    }
  }

  expect(times).toEqual([2, 6, 14, 30, 62, 122, 182, 242]);
  expect(notebook.gate.verdict).toBe('closed');
});

test('another kernel of the same page does not know more than the server said', async () => {
  const server = new Server();
  server.say('k1', 'none');
  const one = new Notebook(server);
  one.connect('k1');
  const two = new Notebook(server, one.page);
  two.connect('k2');
  await settle();

  expect(one.gate.verdict).toBe('open');
  expect(two.gate.verdict).toBe('unknown');
  expect(one.gate.elsewhere).toBe('unknown');
  server.say('k2', 'none');
  await settle();
  expect(one.gate.elsewhere).toBe('open');
});

test('the page stays closed when the notebook of a sandboxed kernel is closed', async () => {
  const server = new Server();
  server.say('k1', 'bubblewrap');
  const notebook = new Notebook(server);
  notebook.connect('k1');
  await settle();
  notebook.disposed.emit();

  expect(notebook.page.verdict).toBe('closed');
});

test('an unknown widget manager gives widgets to plain kernels only', async () => {
  const server = new Server();
  server.say('k1', 'none');
  server.say('k2', 'landlock');
  const notebook = new Notebook(server);
  notebook.gate.refuseWidgets();
  const handled = (): unknown =>
    Reflect.get(notebook.kernel ?? {}, 'handleComms');

  notebook.connect('k1');
  expect(handled()).toBe(false);
  await settle();
  expect(handled()).toBe(true);
  notebook.connect('k2');
  await settle();
  expect(handled()).toBe(false);
});

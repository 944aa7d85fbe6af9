import type { Event } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { EventRouter } from '../../src/api/events';

const SCHEMA = 'https://example.org/a/v1';

function setUp(): { router: EventRouter; say: (event: object) => void } {
  const manager = {} as { stream: Signal<unknown, Event.Emission> };
  manager.stream = new Signal(manager);
  const router = new EventRouter(
    manager as unknown as Pick<Event.IManager, 'stream'>
  );
  const say = (event: object): void => {
    manager.stream.emit(event as Event.Emission);
  };
  return { router, say };
}

test('an event goes to those who asked for its schema', () => {
  const { router, say } = setUp();
  const heard: unknown[] = [];
  router.on(SCHEMA, ({ id }) => heard.push(['first', id]));
  router.on(SCHEMA, ({ id }) => heard.push(['second', id]));
  router.on('https://example.org/b/v1', ({ id }) => heard.push(['b', id]));
  say({ schema_id: SCHEMA, id: 1 });
  say({ schema_id: 'https://example.org/c/v1', id: 2 });
  expect(heard).toEqual([
    ['first', 1],
    ['second', 1]
  ]);
});

test('one who fails keeps no event from the others', () => {
  const { router, say } = setUp();
  const complain = jest.spyOn(console, 'error').mockImplementation();
  const heard: unknown[] = [];
  router.on(SCHEMA, () => {
    throw new Error('broken');
  });
  router.on(SCHEMA, ({ id }) => heard.push(id));
  say({ schema_id: SCHEMA, id: 1 });
  expect(heard).toEqual([1]);
  expect(complain).toHaveBeenCalledTimes(1);
  complain.mockRestore();
});

test('a registration that was disposed hears nothing more, and others do', () => {
  const { router, say } = setUp();
  const heard: string[] = [];
  const both = (): void => {
    heard.push('both');
  };
  const first = router.on(SCHEMA, both);
  router.on(SCHEMA, both);
  first.dispose();
  say({ schema_id: SCHEMA });
  expect(heard).toEqual(['both']);
  router.dispose();
  say({ schema_id: SCHEMA });
  expect(heard).toEqual(['both']);
});

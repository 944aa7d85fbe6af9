import { NotificationManager } from '@jupyterlab/apputils/lib/notification';
import type { Event } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { EventRouter } from '../../../src/api/events';
import { ExitNotifier } from '../../../src/features/kernels/exitNotifier';
import { KernelExitsModel } from '../../../src/model/kernelExits';
import type { IExitedKernel } from '../../../src/model/kernelExits';
import { KERNEL_EVENT } from '../../../src/api/protocol';
import type { IKernelExit } from '../../../src/api/protocol';
import type { Place } from '../../../src/internalTokens';
import { tail } from '../../../src/ui/text/visibleText';
import { trans } from '../../examples';

function anEnd(fields: Partial<IKernelExit> = {}): IKernelExit {
  return {
    id: 'e1',
    at: '2026-01-01T00:00:00Z',
    reason: 'it needed more than 512 MiB of memory',
    limit: 'memory_limit',
    most: 512 * 1024 ** 2,
    signal: null,
    status: null,
    notebook_path: 'analysis.ipynb',
    ...fields
  };
}

/** A server that says events and answers one question a time. */
class Server {
  readonly getLastExit = jest.fn<Promise<IKernelExit | null>, [string]>(
    kernelId => Promise.resolve(this.ends.get(kernelId) ?? null)
  );

  say(event: object): void {
    this._stream.emit(event as Event.Emission);
  }

  readonly ends = new Map<string, IKernelExit>();
  private readonly _stream = new Signal<this, Event.Emission>(this);
  readonly events = new EventRouter({
    stream: this._stream
  } as unknown as Event.IManager);
}

describe('KernelExitsModel', () => {
  let server: Server;
  let model: KernelExitsModel;
  let ended: IExitedKernel[];

  beforeEach(() => {
    jest.useFakeTimers();
    server = new Server();
    model = new KernelExitsModel(server.events, server);
    ended = [];
    model.ended.connect((_, one) => ended.push(one));
  });

  afterEach(() => {
    model.dispose();
    jest.useRealTimers();
  });

  async function hear(...events: object[]): Promise<void> {
    for (const event of events) {
      server.say(event);
    }
    await jest.advanceTimersByTimeAsync(1000);
  }

  test('asks nothing until an event says that a kernel ended', async () => {
    server.ends.set('k1', anEnd());
    await hear(
      { schema_id: 'https://example.org/other/v1', kernel_id: 'k1' },
      { schema_id: KERNEL_EVENT }
    );
    expect(server.getLastExit).not.toHaveBeenCalled();
  });

  test('an event brings what the server says, once', async () => {
    const event = { schema_id: KERNEL_EVENT, kernel_id: 'k1' };
    server.ends.set('k1', anEnd());
    await hear(event, event);
    await hear(event);
    expect(ended).toEqual([{ kernelId: 'k1', end: anEnd() }]);
    server.ends.set('k1', anEnd({ id: 'e2' }));
    await hear(event);
    expect(ended.map(({ end }) => end.id)).toEqual(['e1', 'e2']);
  });

  test('an event that the server does not confirm is nothing', async () => {
    jest.spyOn(console, 'warn').mockImplementation();
    await hear({ schema_id: KERNEL_EVENT, kernel_id: 'k1' });
    server.getLastExit.mockRejectedValueOnce(new TypeError('network'));
    await hear({ schema_id: KERNEL_EVENT, kernel_id: 'k2' });
    expect(ended).toEqual([]);
  });

  test('hears nothing after it was disposed', async () => {
    server.ends.set('k1', anEnd());
    model.dispose();
    await hear({ schema_id: KERNEL_EVENT, kernel_id: 'k1' });
    expect(server.getLastExit).not.toHaveBeenCalled();
  });
});

describe('ExitNotifier', () => {
  let end: (kernelId: string, end: IKernelExit) => void;
  let notifications: NotificationManager;
  let revealed: Place[];

  beforeEach(() => {
    notifications = new NotificationManager();
    revealed = [];
    const model = {} as { ended: Signal<unknown, IExitedKernel> };
    model.ended = new Signal(model);
    const origins = {
      describePlace: (place: Place, length: number) =>
        tail(place.notebook_path ?? 'a notebook', length),
      revealPlace: (place: Place) => {
        revealed.push(place);
        return Promise.resolve(true);
      }
    };
    new ExitNotifier({
      model: model as unknown as KernelExitsModel,
      origins,
      notifications,
      trans
    });
    end = (kernelId, one) => {
      model.ended.emit({ kernelId, end: one });
    };
  });

  const messages = (): string[] =>
    notifications.notifications.map(({ message }) => message);

  test('names the notebook, the reason and the limit, and stays', () => {
    end('k1', anEnd());
    const [shown] = notifications.notifications;
    expect(shown.message).toBe(
      'The sandbox stopped the kernel of analysis.ipynb: it needed more than 512 MiB of memory. ' +
        'Raise `memory_limit` to allow more.'
    );
    expect([shown.type, shown.options.autoClose]).toEqual(['error', false]);
  });

  test('what was no limit is not said to be one', () => {
    end('k1', anEnd({ limit: null, most: null, signal: 'SIGSEGV' }));
    end('k2', anEnd({ limit: null, most: null, status: 3 }));
    expect(messages()).toEqual([
      'The kernel of analysis.ipynb ended: its process exited with status 3.',
      'The kernel of analysis.ipynb ended: its process was killed by SIGSEGV.'
    ]);
  });

  test.each([
    ['process_limit', 1, 'it had more than 1 process or thread'],
    ['process_limit', 2000, 'it had more than 2,000 processes and threads'],
    ['memory_limit', 1000, 'it needed more than 1,000 bytes of memory'],
    ['memory_limit', 1536, 'it needed more than 1.5 KiB of memory'],
    ['memory_limit', 8_000_000_000, 'it needed more than 7.45 GiB of memory'],
    ['memory_limit', 2 ** 51, 'it needed more than 2,048 TiB of memory']
  ])('says that %s is %d', (limit, most, clause) => {
    end('k1', anEnd({ limit, most, reason: 'not these words' }));
    expect(messages()).toEqual([
      `The sandbox stopped the kernel of analysis.ipynb: ${clause}. Raise \`${limit}\` to allow more.`
    ]);
  });

  test('a limit that this page does not know has the server’s words', () => {
    end('k1', anEnd({ limit: 'disk_limit', reason: 'it wrote too much' }));
    expect(messages()).toEqual([
      'The sandbox stopped the kernel of analysis.ipynb: it wrote too much. Raise `disk_limit` to allow more.'
    ]);
  });

  test('a long path keeps its end, and the whole fits', () => {
    end('k1', anEnd({ notebook_path: `${'deep/'.repeat(40)}analysis.ipynb` }));
    const [message] = messages();
    expect(message).toMatch(/of ….*\/analysis\.ipynb: .* to allow more\.$/);
    expect(message).toHaveLength(140);
  });

  test('what cannot be seen in a path is made visible', () => {
    end('k1', anEnd({ notebook_path: 'a\u202eb.ipynb' }));
    expect(messages()[0]).toContain('of a\\u202eb.ipynb:');
  });

  test('has one notification for each kernel, and a new one once it was closed', () => {
    end('k1', anEnd());
    end(
      'k1',
      anEnd({ id: 'e2', reason: 'it failed', limit: null, most: null })
    );
    end('k2', anEnd({ notebook_path: 'other.ipynb' }));
    expect(messages()).toEqual([
      expect.stringContaining('other.ipynb'),
      'The kernel of analysis.ipynb ended: it failed.'
    ]);
    notifications.dismiss();
    end('k1', anEnd({ id: 'e3' }));
    expect(messages()).toEqual([expect.stringContaining('analysis.ipynb')]);
  });

  test('its button shows the notebook', () => {
    end('k1', anEnd());
    const [shown] = notifications.notifications;
    const [action] = shown.options.actions ?? [];
    action.callback(new MouseEvent('click'));
    expect(revealed).toEqual([
      { kernel_id: 'k1', notebook_path: 'analysis.ipynb' }
    ]);
  });
});

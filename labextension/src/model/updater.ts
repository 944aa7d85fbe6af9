/**
 * Keeps the models up to date: by events, when the page is looked at again, and by a slow poll should events fail.
 */
import type { Event } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import { APPROVAL_EVENT, SERVERS_EVENT } from '../api/protocol';
import type { Connection, IServersModel } from '../tokens';
import type { ApprovalModel } from './approvals';

/** Milliseconds between two polls while some request waits or runs. */
const BUSY_INTERVAL = 5_000;

/** Milliseconds between two polls while nothing is going on. */
const IDLE_INTERVAL = 10_000;

/** Milliseconds between two polls of a server that has no extension. */
const ABSENT_INTERVAL = 300_000;

/** What a failed question leaves. */
const FAILURES: readonly Connection[] = ['unreachable', 'forbidden', 'failing'];

/** Connects events, visibility and a poll to the models. */
export class Updater implements IDisposable {
  constructor(
    private readonly _events: Event.IManager,
    private readonly _approvals: ApprovalModel,
    private readonly _servers: IServersModel
  ) {
    this._events.stream.connect(this._onEvent, this);
    document.addEventListener('visibilitychange', this._onVisibility);
    window.addEventListener('online', this._onVisibility);
    this._poll = new Poll({
      name: 'jupyter-agentbox:approvals',
      factory: () => this._refresh(),
      frequency: {
        interval: IDLE_INTERVAL,
        backoff: true,
        max: ABSENT_INTERVAL
      },
      standby: 'when-hidden'
    });
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    this._events.stream.disconnect(this._onEvent, this);
    document.removeEventListener('visibilitychange', this._onVisibility);
    window.removeEventListener('online', this._onVisibility);
    this._poll.dispose();
  }

  private async _refresh(): Promise<void> {
    await this._approvals.refresh();
    let interval = this._approvals.isBusy ? BUSY_INTERVAL : IDLE_INTERVAL;
    if (this._approvals.connection === 'absent') {
      interval = ABSENT_INTERVAL;
    }
    if (!this.isDisposed) {
      this._poll.frequency = { ...this._poll.frequency, interval };
    }
    if (FAILURES.includes(this._approvals.connection)) {
      throw new Error('the server was asked in vain'); // the poll asks less and less often
    }
  }

  private _onEvent(_: unknown, event: Event.Emission): void {
    if (event.schema_id === APPROVAL_EVENT && typeof event.id === 'string') {
      this._approvals.hint(
        event.id,
        typeof event.status === 'string' ? event.status : undefined
      );
    } else if (event.schema_id === SERVERS_EVENT) {
      void this._servers.refresh();
    }
  }

  private readonly _onVisibility = (): void => {
    if (document.visibilityState === 'visible') {
      void this._poll.refresh();
      void this._servers.refresh();
    }
  };

  private readonly _poll: Poll;
}

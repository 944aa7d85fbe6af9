/**
 * Keeps the requests up to date: by events, when the page becomes visible again, and by a slow poll in case events fail.
 */
import type { Event } from '@jupyterlab/services';
import { DisposableSet } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import type { IEventRouter } from '../../api/events';
import { APPROVAL_EVENT } from '../../api/protocol';
import { onPageReturn } from '../../integrations/pageReturn';
import type { PageUser } from '../../integrations/pageReturn';
import { LONGEST_PAUSE, pauseAfter } from '../../integrations/pauses';
import type { ApprovalModel } from '../../model/approvals';
import type { Connection } from '../../internalTokens';

/** Milliseconds between two polls while any request is pending or running. */
const BUSY_INTERVAL = 5_000;

/** Milliseconds between two polls otherwise. */
const IDLE_INTERVAL = 10_000;

/** What the connection is after a poll that failed, which the next one follows soon: the server may be back. */
const FAILURES: readonly Connection[] = ['unreachable', 'failing'];

/** The same if a Hub answered in place of the server, or the server will refuse the next one, too. */
const REFUSALS: readonly Connection[] = [
  'forbidden',
  'not_authorized',
  'stopped',
  'absent'
];

/** Connects events, visibility and a poll to the model of all requests. */
export class ApprovalsUpdater implements IDisposable {
  constructor(
    events: IEventRouter,
    user: PageUser,
    private readonly _approvals: ApprovalModel
  ) {
    this._connections = DisposableSet.from([
      events.on(APPROVAL_EVENT, event => {
        this._onEvent(event);
      }),
      onPageReturn(user, () => {
        void this._poll.refresh();
      })
    ]);
    this._poll = new Poll({
      name: 'jupyter-agentbox:approvals',
      factory: () => this._refresh(),
      frequency: {
        interval: IDLE_INTERVAL,
        backoff: true,
        max: LONGEST_PAUSE
      },
      standby: 'when-hidden'
    });
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    this._connections.dispose();
    this._poll.dispose();
  }

  private async _refresh(): Promise<void> {
    await this._approvals.refresh();
    const { connection, isBusy } = this._approvals;
    this._refusals = REFUSALS.includes(connection) ? this._refusals + 1 : 0;
    let interval = isBusy ? BUSY_INTERVAL : IDLE_INTERVAL;
    // A proxy may answer 404 for the moment in which it has no route to a server: one more poll follows soon.
    const pauses = this._refusals - (connection === 'absent' ? 1 : 0);
    if (pauses > 0) {
      interval = pauseAfter(pauses);
    } else if (this._refusals > 0) {
      interval = IDLE_INTERVAL;
    }
    if (!this.isDisposed) {
      this._poll.frequency = { ...this._poll.frequency, interval };
    }
    if (FAILURES.includes(connection)) {
      throw new Error('the server was asked in vain'); // the poll asks less and less often
    }
  }

  private _onEvent({ id, status }: Event.Emission): void {
    if (typeof id === 'string') {
      this._approvals.hint(id, typeof status === 'string' ? status : undefined);
    }
  }

  private readonly _connections: IDisposable;
  private readonly _poll: Poll;
  private _refusals = 0;
}

/**
 * Keeps what waits at the Hub service up to date: by a poll that asks less often while the service is away.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import { onPageReturn } from '../../integrations/pageReturn';
import type { HubRequestsModel } from '../../model/hubRequests';

/** Milliseconds between two polls, and at most while the service is away. */
const INTERVAL = 15_000;
const LONGEST_INTERVAL = 300_000;

/** Polls while somebody looks at the page. */
export class HubRequestsUpdater implements IDisposable {
  constructor(private readonly _model: HubRequestsModel) {
    this._poll = new Poll({
      name: 'jupyter-agentbox:hub-requests',
      factory: () => this._refresh(),
      frequency: { interval: INTERVAL, backoff: true, max: LONGEST_INTERVAL },
      standby: 'when-hidden'
    });
    this._returns = onPageReturn(() => {
      if (!this._model.isForOthers) {
        void this._poll.refresh();
      }
    });
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    this._returns.dispose();
    this._poll.dispose();
  }

  private async _refresh(): Promise<void> {
    const isAnswered = await this._model.refresh();
    if (this._model.isForOthers) {
      void this._poll.stop();
    } else if (!isAnswered) {
      throw new Error('the Hub service was asked in vain'); // the poll asks less and less often
    }
  }

  private readonly _poll: Poll;
  private readonly _returns: IDisposable;
}

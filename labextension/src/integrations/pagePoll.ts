/**
 * Polls a server while the page is visible.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import { onPageReturn } from './pageReturn';
import type { PageUser } from './pageReturn';
import { LONGEST_PAUSE, pauseAfter } from './pauses';

/** What `PagePoll` needs. */
export interface IPagePollOptions {
  name: string;
  /** Milliseconds between two polls of a server that answers. */
  interval: number;
  /** Asks the server once; resolves to whether it answered. */
  ask: () => Promise<boolean>;
  user: PageUser;
  /** The server, of which another poll may have learned that it does not run. */
  server: { readonly isStopped: boolean };
}

/** A poll whose pauses grow while there is no answer, from a minute. It asks at once when the page becomes visible again. */
export class PagePoll implements IDisposable {
  constructor({ name, interval, ask, user, server }: IPagePollOptions) {
    this._poll = new Poll({
      name,
      factory: async () => {
        const isAsked = this._isReturning || !server.isStopped;
        this._isReturning = false;
        this._refusals = isAsked && (await ask()) ? 0 : this._refusals + 1;
        const { _refusals: refusals } = this;
        // Lumino's own pause after an error is a random one, and may be no longer than any other.
        this._poll.frequency = {
          ...this._poll.frequency,
          interval: refusals === 0 ? interval : pauseAfter(refusals)
        };
      },
      frequency: { interval, backoff: true, max: LONGEST_PAUSE },
      standby: 'when-hidden'
    });
    this._returns = onPageReturn(user, () => {
      this._isReturning = true;
      void this._poll.refresh();
    });
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    this._returns.dispose();
    this._poll.dispose();
  }

  private readonly _poll: Poll;
  private _refusals = 0;
  private _isReturning = false;
  private readonly _returns: IDisposable;
}

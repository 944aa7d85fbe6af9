/**
 * Polls a server while the page is visible.
 */
import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import { onPageReturn } from './pageReturn';
import type { PageUser } from './pageReturn';

/** The longest pause between two polls of a server that does not answer, in milliseconds. */
const LONGEST_INTERVAL = 300_000;

/** What `PagePoll` needs. */
export interface IPagePollOptions {
  name: string;
  /** Milliseconds between two polls of a server that answers. */
  interval: number;
  /** Asks the server once; resolves to whether it answered. */
  ask: () => Promise<boolean>;
  user: PageUser;
}

/** A poll that asks less and less often while there is no answer, and at once when the page becomes visible again. */
export class PagePoll implements IDisposable {
  constructor({ name, interval, ask, user }: IPagePollOptions) {
    this._poll = new Poll({
      name,
      factory: async () => {
        if (!(await ask())) {
          throw new Error(`${name}: there was no answer`); // Lumino's poll waits longer after an error
        }
      },
      frequency: { interval, backoff: true, max: LONGEST_INTERVAL },
      standby: 'when-hidden'
    });
    this._returns = onPageReturn(user, () => {
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
  private readonly _returns: IDisposable;
}

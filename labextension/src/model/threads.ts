/**
 * The threads of agents, most recently changed first.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IThreadChange } from '../api/queries';
import type { IThread } from '../api/threads';
import type { IThreadsModel } from '../internalTokens';

/** The part of the client that is used. */
export type ThreadsSource = Pick<
  IAgentBoxClient,
  | 'listThreads'
  | 'updateThread'
  | 'forkThread'
  | 'deleteThread'
  | 'steerTurn'
  | 'interruptTurn'
>;

/** Milliseconds between two fetches while an agent works: there is no event for each of its steps. */
const BUSY_INTERVAL = 3_000;

/** See `IThreadsModel`. */
export class ThreadsModel implements IThreadsModel, IDisposable {
  constructor(private readonly _source: ThreadsSource) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get threads(): readonly IThread[] | null {
    return this._threads;
  }

  get hasMore(): boolean {
    return this._hasMore;
  }

  get showsArchived(): boolean {
    return this._showsArchived;
  }

  /** Whether the threads were fetched before, which means that someone looks at them. */
  get isUsed(): boolean {
    return this._questions > 0;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    window.clearTimeout(this._timer);
    Signal.clearData(this);
  }

  async setShowsArchived(isShown: boolean): Promise<void> {
    this._showsArchived = isShown;
    this._changed.emit();
    await this.refresh();
  }

  async refresh(): Promise<void> {
    const question = ++this._questions;
    window.clearTimeout(this._timer);
    try {
      const listed = await this._fetch(false);
      const archived = this._showsArchived ? await this._fetch(true) : null;
      if (question < this._answered || this._isDisposed) {
        return; // a later question was answered first
      }
      this._answered = question;
      this._take(
        [...listed.threads, ...(archived?.threads ?? [])],
        listed.hasMore || archived?.hasMore === true
      );
    } catch {
      // The last answer stays; the approvals model says that the server is out of reach.
    }
    this._lookAgain();
  }

  async loadMore(): Promise<void> {
    this._pages += 1;
    await this.refresh();
  }

  async update(id: string, change: IThreadChange): Promise<void> {
    await this._do(this._source.updateThread(id, change));
  }

  async fork(id: string): Promise<void> {
    await this._do(this._source.forkThread(id));
  }

  async delete(id: string): Promise<void> {
    await this._do(this._source.deleteThread(id));
  }

  async steer(turnId: string, text: string): Promise<void> {
    await this._do(this._source.steerTurn(turnId, text));
  }

  async stop(turnId: string): Promise<void> {
    await this._do(this._source.interruptTurn(turnId));
  }

  /** Wait until an action has succeeded or failed, and show its result. */
  private async _do(doing: Promise<void>): Promise<void> {
    try {
      await doing;
    } finally {
      await this.refresh();
    }
  }

  /** All pages fetched so far. */
  private async _fetch(
    isArchived: boolean
  ): Promise<{ threads: IThread[]; hasMore: boolean }> {
    const threads: IThread[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < this._pages; page++) {
      const answer = await this._source.listThreads({ isArchived, cursor });
      threads.push(...answer.threads);
      cursor = answer.next;
      if (cursor === null) {
        break;
      }
    }
    return { threads, hasMore: cursor !== null };
  }

  private _take(threads: readonly IThread[], hasMore: boolean): void {
    // A thread that changes while pages are fetched may be on two of them.
    const unique = [...new Map(threads.map(one => [one.id, one])).values()];
    const isSame =
      hasMore === this._hasMore &&
      JSON.stringify(unique) === JSON.stringify(this._threads);
    if (!isSame) {
      this._threads = unique;
      this._hasMore = hasMore;
      this._changed.emit();
    }
  }

  private _lookAgain(): void {
    const isBusy = this._threads?.some(({ turn_id }) => turn_id !== null);
    window.clearTimeout(this._timer);
    if (isBusy && !this._isDisposed && !document.hidden) {
      this._timer = window.setTimeout(() => {
        void this.refresh();
      }, BUSY_INTERVAL);
    }
  }

  private _answered = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _hasMore = false;
  private _isDisposed = false;
  private _pages = 1;
  private _questions = 0;
  private _showsArchived = false;
  private _threads: readonly IThread[] | null = null;
  private _timer = 0;
}

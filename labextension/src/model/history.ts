/**
 * The final requests, newest first, one page at a time.
 */
import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IApproval, Status } from '../api/protocol';
import type { IApprovalModel, IHistoryModel } from '../internalTokens';

const FINAL: readonly Status[] = [
  'approved',
  'rejected',
  'expired',
  'cancelled',
  'orphaned'
];

/** Milliseconds between two fetches of the newest requests while requests end. */
const NEWEST_INTERVAL = 1_000;

/** The maximum number of requests that are listed besides the fetched pages, however many end meanwhile. */
const MAX_NEW = 150;

/** See `IHistoryModel`. It tracks the requests that it lists; their state is in the approvals model. */
export class HistoryModel implements IHistoryModel, IDisposable {
  constructor(
    private readonly _source: Pick<IAgentBoxClient, 'listApprovals'>,
    private readonly _approvals: IApprovalModel
  ) {
    this._approvals.settled.connect(this._onSettled, this);
    this._approvals.finished.connect(this._onFinished, this);
    this._newest = new Throttler(() => this._fetch(null), {
      limit: NEWEST_INTERVAL,
      edge: 'trailing'
    });
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get items(): readonly IApproval[] {
    return [...this._listed.keys()]
      .map(id => this._approvals.get(id).approval)
      .filter(approval => approval !== null);
  }

  get hasMore(): boolean {
    return this._next !== null;
  }

  get state(): IHistoryModel['state'] {
    return this._state;
  }

  get isDisposed(): boolean {
    return this._newest.isDisposed;
  }

  pageSize = 50;

  dispose(): void {
    this._newest.dispose();
    this._list([]);
    Signal.clearData(this);
  }

  async load(): Promise<void> {
    if (this._state !== 'ready') {
      await this._show(null);
    } else if (!(await this._fetch(null)) && this._state === 'ready') {
      this._setState('failing'); // what is listed, and the button for more, stayed meanwhile
    }
  }

  async loadMore(): Promise<void> {
    if (this._next !== null && this._state !== 'loading') {
      await this._show(this._next);
    }
  }

  /** Fetch a page for which a person waits. */
  private async _show(cursor: string | null): Promise<void> {
    const page = ++this._shown;
    this._setState('loading');
    const isFetched = await this._fetch(cursor);
    if (page === this._shown) {
      this._setState(isFetched ? 'ready' : 'failing');
    }
  }

  private _setState(state: IHistoryModel['state']): void {
    if (state !== this._state) {
      this._state = state;
      this._changed.emit();
    }
  }

  /** Fetch a page. The first page is put before the present ones, which stay. */
  private async _fetch(cursor: string | null): Promise<boolean> {
    const question = ++this._questions;
    try {
      const page = await this._source.listApprovals({
        status: FINAL,
        limit: this.pageSize,
        cursor
      });
      if (cursor === null ? question < this._answered : cursor !== this._next) {
        return true; // a later question was answered first
      }
      const added = page.approvals.map(({ id }) => id);
      const listed = [...this._listed.keys()];
      this._list(
        cursor === null ? [...added, ...listed] : [...listed, ...added]
      );
      this._approvals.remember(page.approvals);
      if (cursor !== null || !this._knowsNext) {
        this._next = page.next;
        this._knowsNext = true;
        this._room = this._listed.size + MAX_NEW;
      }
      this._answered = question;
      this._isLoaded = true;
      this._changed.emit();
      return true;
    } catch {
      return false; // what was loaded stays
    }
  }

  private _onSettled(_: unknown, { id }: IApproval): void {
    if (!this._isLoaded) {
      return; // who opens the history asks for it
    }
    const listed = [...this._listed.keys()];
    if (listed.length >= this._room) {
      // The cursor is of a page that is gone now: begin anew.
      listed.length = Math.min(listed.length, this.pageSize);
      this._next = null;
      this._knowsNext = false;
      this._newest.invoke().catch(() => undefined);
    }
    this._list([id, ...listed]);
    this._changed.emit();
  }

  /** A call that a rule decided, or that ended before this page knew of it. */
  private _onFinished(): void {
    if (this._isLoaded) {
      this._newest.invoke().catch(() => undefined);
    }
  }

  /** List these requests, the first one first, and track them. */
  private _list(ids: readonly string[]): void {
    const before = this._listed;
    this._listed = new Map(
      ids.map(id => [id, before.get(id) ?? this._approvals.track(id)])
    );
    for (const [id, tracking] of before) {
      if (!this._listed.has(id)) {
        tracking.dispose();
      }
    }
  }

  private _answered = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _isLoaded = false;
  private _knowsNext = false;
  private _listed: ReadonlyMap<string, IDisposable> = new Map();
  private readonly _newest: Throttler;
  private _next: string | null = null;
  private _questions = 0;
  private _room = Infinity;
  private _shown = 0;
  private _state: IHistoryModel['state'] = 'loading';
}

/**
 * The requests that are final, newest first, a page at a time.
 */
import { Throttler } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IApproval, Status } from '../api/protocol';
import type { IApprovalModel, IHistoryModel } from '../tokens';

const FINAL: readonly Status[] = [
  'approved',
  'rejected',
  'expired',
  'cancelled',
  'orphaned'
];

/** Milliseconds between two looks at the newest requests while others end. */
const NEWEST_INTERVAL = 1_000;

/** See `IHistoryModel`. Holds ids; what is true of a request is in the approvals model. */
export class HistoryModel implements IHistoryModel {
  constructor(
    private readonly _source: Pick<IAgentBoxClient, 'listApprovals'>,
    private readonly _approvals: IApprovalModel
  ) {
    this._approvals.settled.connect((_, approval) => {
      this._ids = [approval.id, ...this._ids.filter(id => id !== approval.id)];
      this._changed.emit();
    });
    this._newest = new Throttler(() => this._fetch(null), {
      limit: NEWEST_INTERVAL,
      edge: 'trailing'
    });
    // A call that a rule decided, or that ended before this page knew of it.
    this._approvals.finished.connect(() => {
      if (this._isLoaded) {
        this._newest.invoke().catch(() => undefined);
      }
    });
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get items(): readonly IApproval[] {
    return this._ids
      .map(id => this._approvals.get(id).approval)
      .filter(approval => approval !== null);
  }

  get hasMore(): boolean {
    return this._next !== null;
  }

  pageSize = 50;

  async load(): Promise<void> {
    await this._fetch(null);
  }

  async loadMore(): Promise<void> {
    if (this._next !== null) {
      await this._fetch(this._next);
    }
  }

  /** Fetch a page. The first one goes before what is there, whose pages stay. */
  private async _fetch(cursor: string | null): Promise<void> {
    const question = ++this._questions;
    try {
      const page = await this._source.listApprovals({
        status: FINAL,
        limit: this.pageSize,
        cursor
      });
      if (cursor === null ? question < this._answered : cursor !== this._next) {
        return; // a later question was answered first
      }
      this._approvals.remember(page.approvals);
      const added = page.approvals.map(({ id }) => id);
      const both =
        cursor === null ? [...added, ...this._ids] : [...this._ids, ...added];
      if (cursor !== null || !this._isLoaded) {
        this._next = page.next;
      }
      this._ids = [...new Set(both)];
      this._answered = question;
      this._isLoaded = true;
      this._changed.emit();
    } catch {
      // What was loaded stays; the approvals model says that the server is out of reach.
    }
  }

  private _answered = 0;
  private readonly _changed = new Signal<this, void>(this);
  private _ids: readonly string[] = [];
  private _isLoaded = false;
  private readonly _newest: Throttler;
  private _next: string | null = null;
  private _questions = 0;
}

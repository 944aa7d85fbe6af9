/**
 * The requests that are final, newest first, a page at a time.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { AgentBoxClient } from '../client';
import type { IApproval, Status } from '../protocol';
import type { IApprovalModel, IHistoryModel } from '../tokens';

const FINAL: readonly Status[] = [
  'approved',
  'rejected',
  'expired',
  'cancelled',
  'orphaned'
];

/** See `IHistoryModel`. Holds ids; what is true of a request is in the approvals model. */
export class HistoryModel implements IHistoryModel {
  constructor(
    private readonly _source: Pick<AgentBoxClient, 'listApprovals'>,
    private readonly _approvals: IApprovalModel
  ) {
    this._approvals.settled.connect((_, approval) => {
      this._ids = [approval.id, ...this._ids.filter(id => id !== approval.id)];
      this._changed.emit();
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

  private async _fetch(cursor: string | null): Promise<void> {
    try {
      const page = await this._source.listApprovals({
        status: FINAL,
        limit: this.pageSize,
        cursor
      });
      this._approvals.remember(page.approvals);
      const before = cursor === null ? [] : this._ids;
      const added = page.approvals.map(({ id }) => id);
      this._ids = [...new Set([...before, ...added])];
      this._next = page.next;
      this._changed.emit();
    } catch {
      // What was loaded stays; the approvals model says that the server is out of reach.
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _ids: readonly string[] = [];
  private _next: string | null = null;
}

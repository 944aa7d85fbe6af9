/**
 * The record of all calls, as far as it was fetched: newest first, one page at a time.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { AuditQuery } from '../api/queries';
import type { IAuditPage, IAuditRecord } from '../api/protocol';

/** A person's filter; an empty field matches any. */
export interface IAuditFilter {
  period: 'all' | 'today' | 'yesterday' | 'week';
  result: keyof typeof RESULTS;
  tool: string;
  reviewer: string;
  notebook: string;
  text: string;
}

/** The result of a request, in the terms in which people look for it. */
const RESULTS = {
  any: {},
  allowed: { status: 'approved' },
  rejected: { status: 'rejected' },
  failed: { outcome: 'failed' },
  waiting: { status: 'pending' },
  lapsed: { status: 'expired,cancelled,orphaned' }
} as const;

export const NO_FILTER: IAuditFilter = {
  period: 'all',
  result: 'any',
  tool: '',
  reviewer: '',
  notebook: '',
  text: ''
};

/** The number of records in a page. */
const PAGE_SIZE = '100';

/** The number of pages without a match that a search for words goes through by itself. */
const MAX_EMPTY = 100;

/** Fetches records, and keeps those that were found. */
export class AuditLogModel {
  constructor(
    private readonly _source: Pick<IAgentBoxClient, 'listAudit' | 'auditUrl'>,
    private readonly _now: () => Date = () => new Date(),
    private readonly _searched: (reviewer: string) => string = name => name
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get filter(): IAuditFilter {
    return this._filter;
  }

  get records(): readonly IAuditRecord[] {
    return this._records;
  }

  /** `failing` means that the last request failed; earlier results stay. */
  get state(): 'loading' | 'ready' | 'failing' {
    return this._state;
  }

  get hasMore(): boolean {
    return this._next !== null;
  }

  /** How far back a search for words went; `null` if it went through all records. */
  get searchedUntil(): string | null {
    return this._searchedUntil;
  }

  /** The URL for downloading all records that match the filter. */
  url(format: 'csv' | 'jsonl'): string {
    return this._source.auditUrl(this._query(), format);
  }

  /** Show the records that match another filter. */
  async setFilter(change: Partial<IAuditFilter>): Promise<void> {
    this._filter = { ...this._filter, ...change };
    await this.load();
  }

  /** Start again with the newest records. */
  async load(): Promise<void> {
    await this._fetch('');
  }

  async loadMore(): Promise<void> {
    if (this._next !== null && this._state !== 'loading') {
      await this._fetch(this._next);
    }
  }

  /**
   * Fetch the newest records again, because some were added or have changed. What was loaded besides them stays. After a
   * failure, too, everything stays as it is.
   */
  async update(): Promise<void> {
    if (this._state === 'loading') {
      this._isOutdated = true; // what is being fetched may be older than what is known now
      return;
    }
    const question = this._question;
    try {
      const page = await this._source.listAudit({
        ...this._query(),
        limit: PAGE_SIZE,
        cursor: ''
      });
      if (question === this._question) {
        this._merge(page);
        this._changed.emit();
      }
    } catch {
      // nobody asked for it, and the next event or *Refresh* tries again
    }
  }

  /** Replace the newest records by a page of them. */
  private _merge({ records, next }: IAuditPage): void {
    const before = this._records;
    const last = before.findIndex(({ id }) => id === records.at(-1)?.id);
    if (next === null) {
      this._records = records;
      this._next = null;
    } else if (last >= 0) {
      this._records = [...records, ...before.slice(last + 1)];
    } else if (records.length > 0) {
      // so many were added that what follows the page is not known
      this._records = records;
      this._next = next;
    }
  }

  private async _fetch(cursor: string): Promise<void> {
    const question = ++this._question;
    this._state = 'loading';
    this._changed.emit();
    try {
      let records: readonly IAuditRecord[] = cursor ? this._records : [];
      const before = records.length;
      let next: string | null = cursor;
      for (let pages = 0; pages < MAX_EMPTY && next !== null; pages++) {
        const page = await this._source.listAudit({
          ...this._query(),
          limit: PAGE_SIZE,
          cursor: next
        });
        if (question !== this._question) {
          return; // another filter was chosen
        }
        records = [...records, ...page.records];
        next = page.next;
        this._records = records;
        this._next = next;
        this._searchedUntil = page.searched_until;
        this._changed.emit();
        if (records.length > before) {
          break;
        }
      }
      this._state = 'ready';
    } catch {
      if (question !== this._question) {
        return;
      }
      this._state = 'failing';
    }
    this._changed.emit();
    if (this._isOutdated) {
      this._isOutdated = false;
      void this.update();
    }
  }

  private _query(): AuditQuery {
    const { period, result, tool, reviewer, notebook, text } = this._filter;
    return {
      ...RESULTS[result],
      ...this._within(period),
      tool: tool && !/[*?[]/.test(tool) ? `*${tool}*` : tool,
      reviewer: this._searched(reviewer),
      notebook_path: notebook,
      q: text.trim()
    };
  }

  private _within(period: IAuditFilter['period']): AuditQuery {
    const midnight = (daysAgo: number): string => {
      const day = this._now();
      day.setHours(0, 0, 0, 0);
      day.setDate(day.getDate() - daysAgo);
      return day.toISOString();
    };
    switch (period) {
      case 'all':
        return {};
      case 'today':
        return { since: midnight(0) };
      case 'yesterday':
        return { since: midnight(1), until: midnight(0) };
      case 'week':
        return { since: midnight(6) };
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _filter = NO_FILTER;
  private _isOutdated = false;
  private _next: string | null = null;
  private _question = 0;
  private _records: readonly IAuditRecord[] = [];
  private _searchedUntil: string | null = null;
  private _state: 'loading' | 'ready' | 'failing' = 'loading';
}

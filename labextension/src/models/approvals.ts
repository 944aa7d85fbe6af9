/**
 * The state of all requests that this page knows. An event is a hint; only a REST answer says what is true.
 */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import { RequestError } from '../client';
import type { AgentBoxClient } from '../client';
import type { IApproval } from '../protocol';
import type {
  Connection,
  IApprovalModel,
  IKnownApproval,
  PersonalAnswer
} from '../tokens';

/** What the model needs of a client; a test gives its own. */
export type ApprovalSource = Pick<
  AgentBoxClient,
  'listApprovals' | 'getApproval' | 'decide' | 'now'
>;

/** How many requests to ask for at once. */
const PAGE_SIZE = 200;

/** Hinted requests are asked for one by one up to here, then all at once. */
const MAX_SINGLE_FETCHES = 5;

/** Events within this time (milliseconds) are answered with one round of questions. */
const HINT_INTERVAL = 100;

/** See `IApprovalModel`. */
export class ApprovalModel implements IApprovalModel, IDisposable {
  constructor(private readonly _source: ApprovalSource) {
    this._hints = new Throttler(() => this._follow(), {
      limit: HINT_INTERVAL,
      edge: 'trailing'
    });
  }

  get changed(): ISignal<this, string | null> {
    return this._changed;
  }

  get arrived(): ISignal<this, readonly IApproval[]> {
    return this._arrived;
  }

  get settled(): ISignal<this, IApproval> {
    return this._settled;
  }

  get connection(): Connection {
    return this._connection;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  get pending(): readonly IApproval[] {
    return [...this._known.values()]
      .filter(approval => approval.status === 'pending')
      .sort(newestFirst);
  }

  /** Whether some request may still change. */
  get isBusy(): boolean {
    return [...this._known.values()].some(approval => !isEnded(approval));
  }

  dispose(): void {
    this._isDisposed = true;
    this._hints.dispose();
    Signal.clearData(this);
  }

  now(): number {
    return this._source.now();
  }

  get(id: string): IKnownApproval {
    const approval = this._known.get(id) ?? null;
    if (approval) {
      return { approval, state: 'loaded' };
    }
    return { approval, state: this._failed.get(id) ?? 'loading' };
  }

  track(id: string): IDisposable {
    this._tracked.set(id, (this._tracked.get(id) ?? 0) + 1);
    if (!this._known.has(id) && !this._fetching.has(id)) {
      void this._fetch(id);
    }
    return new DisposableDelegate(() => {
      const count = (this._tracked.get(id) ?? 1) - 1;
      if (count > 0) {
        this._tracked.set(id, count);
      } else {
        this._tracked.delete(id);
      }
    });
  }

  async decide(shown: IApproval, answer: PersonalAnswer): Promise<void> {
    try {
      const { digest } = shown.call;
      this._put([await this._source.decide(shown.id, { ...answer, digest })]);
    } catch (error) {
      if (error instanceof RequestError && error.approval) {
        this._put([error.approval]);
      } else {
        // Whether the answer came through is not known: ask what is true now.
        void this._fetch(shown.id);
      }
      throw error;
    }
  }

  remember(approvals: readonly IApproval[]): void {
    this._put(approvals);
  }

  /** Take an event's word that a request changed. */
  hint(id: string): void {
    this._hinted.add(id);
    // A call that waits in the throttler when the page goes is rejected.
    this._hints.invoke().catch(() => undefined);
  }

  async refresh(): Promise<void> {
    const before = new Set(this._unended());
    let pages: IApproval[];
    try {
      pages = await this._listPending();
    } catch (error) {
      this._setConnection(
        error instanceof RequestError && error.status === 404
          ? 'absent'
          : 'unreachable'
      );
      return;
    }
    this._setConnection('connected');
    this._put(pages);
    // What was open and is not pending any more became something else: ask what.
    const pending = new Set(pages.map(approval => approval.id));
    const others = [...before].filter(id => !pending.has(id));
    const retries = [...this._tracked.keys()].filter(
      id => this._failed.get(id) === 'unreachable'
    );
    await Promise.all([...others, ...retries].map(id => this._fetch(id)));
  }

  private async _listPending(): Promise<IApproval[]> {
    const all: IApproval[] = [];
    let cursor: string | null = null;
    do {
      const page = await this._source.listApprovals({
        status: ['pending'],
        limit: PAGE_SIZE,
        cursor
      });
      all.push(...page.approvals);
      cursor = page.next;
    } while (cursor);
    return all;
  }

  private async _follow(): Promise<void> {
    const ids = [...this._hinted];
    this._hinted.clear();
    if (ids.length > MAX_SINGLE_FETCHES) {
      await this.refresh();
    } else {
      await Promise.all(ids.map(id => this._fetch(id)));
    }
  }

  private async _fetch(id: string): Promise<void> {
    const running = this._fetching.get(id);
    if (running) {
      // The answer under way may be older than the reason to ask: ask once more after it.
      this._again.add(id);
      return running;
    }
    const fetching = this._fetchOnce(id).finally(() => {
      this._fetching.delete(id);
    });
    this._fetching.set(id, fetching);
    await fetching;
    if (this._again.delete(id) && this._known.has(id)) {
      await this._fetch(id);
    }
  }

  private async _fetchOnce(id: string): Promise<void> {
    try {
      const approval = await this._source.getApproval(id);
      this._failed.delete(id);
      this._put([approval]);
    } catch (error) {
      if (!this._known.has(id)) {
        const isUnknown = error instanceof RequestError && error.status === 404;
        this._failed.set(id, isUnknown ? 'unknown' : 'unreachable');
        this._emitChanged(id);
      }
    }
  }

  private _put(approvals: readonly IApproval[]): void {
    const arrived: IApproval[] = [];
    for (const approval of approvals) {
      const before = this._known.get(approval.id);
      if (this._isDisposed || (before && stage(approval) < stage(before))) {
        continue; // an answer that was overtaken
      }
      this._known.set(approval.id, approval);
      this._failed.delete(approval.id);
      if (approval.status === 'pending' && !this._seen.has(approval.id)) {
        this._seen.add(approval.id);
        arrived.push(approval);
      }
      if (before?.status === 'pending' && approval.status !== 'pending') {
        this._settled.emit(approval);
      }
      if (approvals.length === 1) {
        this._emitChanged(approval.id);
      }
    }
    if (approvals.length !== 1) {
      this._emitChanged(null);
    }
    if (arrived.length > 0) {
      this._arrived.emit(arrived.sort(newestFirst));
    }
  }

  private _unended(): string[] {
    return [...this._known.values()]
      .filter(approval => !isEnded(approval))
      .map(approval => approval.id);
  }

  private _emitChanged(id: string | null): void {
    if (!this._isDisposed) {
      this._changed.emit(id);
    }
  }

  private _setConnection(connection: Connection): void {
    if (this._connection !== connection) {
      this._connection = connection;
      this._emitChanged(null);
    }
  }

  private readonly _again = new Set<string>();
  private readonly _arrived = new Signal<this, readonly IApproval[]>(this);
  private readonly _changed = new Signal<this, string | null>(this);
  private _connection: Connection = 'connecting';
  private readonly _failed = new Map<string, 'unknown' | 'unreachable'>();
  private readonly _fetching = new Map<string, Promise<void>>();
  private readonly _hinted = new Set<string>();
  private readonly _hints: Throttler;
  private _isDisposed = false;
  private readonly _known = new Map<string, IApproval>();
  private readonly _seen = new Set<string>();
  private readonly _settled = new Signal<this, IApproval>(this);
  private readonly _tracked = new Map<string, number>();
}

/** Whether nothing more can happen to a request and its call. */
export function isEnded(approval: IApproval): boolean {
  return stage(approval) === 3;
}

/** How far a request is on its way; it never goes back. */
function stage(approval: IApproval): number {
  if (approval.status === 'pending') {
    return 0;
  }
  if (approval.status !== 'approved') {
    return 3;
  }
  if (!approval.outcome) {
    return 1;
  }
  return approval.outcome.state === 'running' ? 2 : 3;
}

function newestFirst(a: IApproval, b: IApproval): number {
  return (
    Date.parse(b.created_at) - Date.parse(a.created_at) ||
    (a.id < b.id ? 1 : -1)
  );
}

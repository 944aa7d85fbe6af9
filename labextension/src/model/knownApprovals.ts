/**
 * What this page knows about requests: the newest response about each, which are tracked, and which cannot be fetched.
 */
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';

import type { IApproval } from '../api/protocol';
import { waitsAtHub } from '../api/protocol';
import {
  isEnded,
  isOvertaken,
  isWorthFetching,
  merged,
  oldestFirst
} from './entry';
import type { IEntry } from './entry';
import type { IKnownApproval } from '../internalTokens';

/** Is notified of changes. */
export interface IApprovalListener {
  /** A request changed; several if it is `null`. */
  changed(id: string | null): void;
  /** There are new pending requests; each is reported once. */
  arrived(approvals: readonly IApproval[]): void;
  /** A request is no longer pending. */
  settled(approval: IApproval): void;
}

/** Accepts responses in whichever order they arrive, and forgets what nobody needs any more. */
export class KnownApprovals implements IDisposable {
  constructor(private readonly _listener: IApprovalListener) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** The requests that wait, oldest first. */
  get pending(): readonly IApproval[] {
    // Each view asks for them at each change.
    this._pending ??= this._approvals()
      .filter(approval => approval.status === 'pending')
      .sort(oldestFirst);
    return this._pending;
  }

  /** The requests that may still change. */
  get open(): readonly IApproval[] {
    return this._approvals().filter(approval => !isEnded(approval));
  }

  /** The calls that wait for approvers at the Hub service, oldest first. */
  get atHub(): readonly IApproval[] {
    this._atHub ??= this._approvals().filter(waitsAtHub).sort(oldestFirst);
    return this._atHub;
  }

  /** The ids of tracked requests for which the server could not be asked. */
  get unreachable(): readonly string[] {
    return [...this._tracked.keys()].filter(
      id => this._failed.get(id) === 'unreachable'
    );
  }

  dispose(): void {
    this._isDisposed = true;
  }

  /** The present knowledge about a request. */
  get(id: string): IKnownApproval {
    const entry = this._known.get(id);
    if (entry) {
      const state = entry.isWhole ? 'whole' : 'loaded';
      return { approval: entry.approval, state };
    }
    return { approval: null, state: this._failed.get(id) ?? 'loading' };
  }

  /** A known request; `undefined` if it is unknown. */
  find(id: string): IApproval | undefined {
    return this._known.get(id)?.approval;
  }

  /** Whether a request must be fetched: it is unknown, or lacks arguments that are not too long. */
  isLacking(id: string): boolean {
    const entry = this._known.get(id);
    return !entry || isWorthFetching(entry);
  }

  isTracked(id: string): boolean {
    return this._tracked.has(id);
  }

  /** Keep a request, even when it has ended, until the result is disposed. */
  track(id: string): IDisposable {
    this._tracked.set(id, (this._tracked.get(id) ?? 0) + 1);
    return new DisposableDelegate(() => {
      const count = (this._tracked.get(id) ?? 1) - 1;
      if (count > 0) {
        this._tracked.set(id, count);
      } else {
        this._tracked.delete(id);
        this._failed.delete(id);
        this._forget();
      }
    });
  }

  /** Fetch something from the server; the number tells which of two fetches began first. */
  async ask<T>(ask: (question: number) => Promise<T>): Promise<T> {
    this._questions += 1;
    this._unanswered += 1;
    try {
      return await ask(this._questions);
    } finally {
      this._unanswered -= 1;
      this._forget();
    }
  }

  /** Add requests from the response to a request of another part. */
  remember(approvals: readonly IApproval[]): void {
    this._questions += 1;
    this.put(approvals, this._questions);
    this._forget();
  }

  /** Add requests from a response; what is known from a later one stays. */
  put(
    approvals: readonly IApproval[],
    question: number,
    isWhole = false
  ): void {
    if (this._isDisposed) {
      return;
    }
    const arrived: IApproval[] = [];
    const changed: string[] = [];
    for (const approval of approvals) {
      const before = this._known.get(approval.id);
      if (before && isOvertaken(approval, question, before)) {
        continue;
      }
      const isWanted = !isEnded(approval) || this._tracked.has(approval.id);
      const after = merged({ approval, question, isWhole }, before, isWanted);
      this._know(approval.id, after);
      this._failed.delete(approval.id);
      if (after.approval === before?.approval) {
        continue;
      }
      changed.push(approval.id);
      if (approval.status === 'pending' && !before) {
        arrived.push(after.approval);
      }
      if (
        before?.approval.status === 'pending' &&
        approval.status !== 'pending'
      ) {
        this._listener.settled(after.approval);
      }
    }
    const [first] = changed;
    if (first !== undefined) {
      this._listener.changed(changed.length === 1 ? first : null);
    }
    if (arrived.length > 0) {
      this._listener.arrived(arrived.sort(oldestFirst));
    }
  }

  /** Note that the server does not have a request. */
  lose(id: string): void {
    const wasKnown = this._known.delete(id);
    this._pending = null;
    this._atHub = null;
    const wasSaid = this._failed.get(id) === 'unknown';
    if (this._tracked.has(id)) {
      this._failed.set(id, 'unknown');
    }
    if (wasKnown || !wasSaid) {
      this._listener.changed(id);
    }
  }

  /** Note that a request could not be fetched. */
  fail(id: string): void {
    const isNews = this._failed.get(id) !== 'unreachable';
    if (!this._known.has(id) && this._tracked.has(id) && isNews) {
      this._failed.set(id, 'unreachable');
      this._listener.changed(id);
    }
  }

  /**
   * Forget what neither waits, here or at the Hub, nor is tracked; not during a fetch, whose response may be older than
   * what is known.
   */
  private _forget(): void {
    if (this._unanswered > 0) {
      return;
    }
    for (const [id, { approval }] of this._known) {
      const waits = approval.status === 'pending' || waitsAtHub(approval);
      if (!waits && !this._tracked.has(id)) {
        this._known.delete(id);
      }
    }
  }

  private _know(id: string, entry: IEntry): void {
    if (this._known.get(id)?.approval !== entry.approval) {
      this._pending = null;
      this._atHub = null;
    }
    this._known.set(id, entry);
  }

  private _approvals(): IApproval[] {
    return [...this._known.values()].map(({ approval }) => approval);
  }

  private _atHub: readonly IApproval[] | null = null;
  private readonly _failed = new Map<string, 'unknown' | 'unreachable'>();
  private _isDisposed = false;
  private readonly _known = new Map<string, IEntry>();
  private _pending: readonly IApproval[] | null = null;
  private _questions = 0;
  private readonly _tracked = new Map<string, number>();
  private _unanswered = 0;
}

/**
 * Keeps the loaded record of calls up to date while it is shown.
 */
import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';
import { Signal } from '@lumino/signaling';

import type { IApprovalModel } from '../internalTokens';
import type { AuditLogModel } from './auditLog';

/** Milliseconds between two fetches of the newest records while calls begin and end. */
const INTERVAL = 1_000;

/** Fetches the newest records again when a request arrives, changes or ends. */
export class AuditFollower implements IDisposable {
  constructor(
    private readonly _log: AuditLogModel,
    private readonly _approvals: Pick<
      IApprovalModel,
      'arrived' | 'changed' | 'finished' | 'settled' | 'track'
    >
  ) {
    this._update = new Throttler(() => this._log.update(), {
      limit: INTERVAL,
      edge: 'trailing'
    });
    this._log.changed.connect(this._trackOpen, this);
    this._approvals.arrived.connect(this._follow, this);
    this._approvals.settled.connect(this._follow, this);
    this._approvals.finished.connect(this._follow, this);
    this._approvals.changed.connect(this._onChanged, this);
  }

  get isDisposed(): boolean {
    return this._update.isDisposed;
  }

  /** Whether somebody sees the records; those who do not have no need of news. */
  get isActive(): boolean {
    return this._isActive;
  }

  set isActive(isActive: boolean) {
    const isBack = isActive && !this._isActive;
    this._isActive = isActive;
    this._trackOpen();
    if (isBack && this._isMissing) {
      this._follow();
    }
  }

  dispose(): void {
    this._isActive = false;
    this._trackOpen();
    this._update.dispose();
    Signal.clearData(this);
  }

  private _follow(): void {
    this._isMissing = !this._isActive;
    if (this._isActive) {
      this._update.invoke().catch(() => undefined);
    }
  }

  private _onChanged(_: unknown, id: string | null): void {
    if (id === null || this._tracked.has(id)) {
      this._follow();
    }
  }

  /** Follow the calls that wait or run: the page hears of the end of those only that it tracks. */
  private _trackOpen(): void {
    const before = this._tracked;
    const open = this._isActive ? this._log.records.filter(isOpen) : [];
    this._tracked = new Map(
      open.map(({ id }) => [id, before.get(id) ?? this._approvals.track(id)])
    );
    for (const [id, tracking] of before) {
      if (!this._tracked.has(id)) {
        tracking.dispose();
      }
    }
  }

  private _isActive = false;
  /** Whether something happened that nobody saw. */
  private _isMissing = false;
  private _tracked: ReadonlyMap<string, IDisposable> = new Map();
  private readonly _update: Throttler;
}

/** Whether a record may still change. */
function isOpen({
  status,
  outcome
}: AuditLogModel['records'][number]): boolean {
  return (
    status === 'pending' ||
    (status === 'approved' && (!outcome || outcome.state === 'running'))
  );
}

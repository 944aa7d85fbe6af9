/**
 * The requests, as other extensions see them.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IApproval } from '../../api/protocol';
import type { IApprovalModel } from '../../internalTokens';
import type { IApprovals, IApprovalSummary } from '../../tokens';

/** See `IApprovals`. It returns copies: no other extension can change what a card shows. */
export class PublicApprovals implements IApprovals, IDisposable {
  readonly #model: IApprovalModel;

  constructor(model: IApprovalModel) {
    this.#model = model;
    model.changed.connect(this._onChanged, this);
    model.arrived.connect(this._onArrived, this);
  }

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get arrived(): ISignal<this, readonly IApprovalSummary[]> {
    return this._arrived;
  }

  get isConnected(): boolean {
    return this.#model.connection === 'connected';
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  get pending(): readonly IApprovalSummary[] {
    return this.#model.pending.map(summaryOf);
  }

  get(id: string): IApprovalSummary | null {
    const { approval } = this.#model.get(id);
    return approval && summaryOf(approval);
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _onChanged(): void {
    this._changed.emit();
  }

  private _onArrived(_: unknown, arrived: readonly IApproval[]): void {
    this._arrived.emit(arrived.map(summaryOf));
  }

  private readonly _arrived = new Signal<this, readonly IApprovalSummary[]>(
    this
  );
  private readonly _changed = new Signal<this, void>(this);
  private _isDisposed = false;
}

function summaryOf(approval: IApproval): IApprovalSummary {
  const { id, status, call, created_at, expires_at } = approval;
  return {
    id,
    status,
    server: call.server,
    tool: call.tool,
    kernelId: call.kernel_id,
    notebookPath: call.notebook_path,
    cellId: call.cell_id,
    createdAt: created_at,
    expiresAt: expires_at
  };
}

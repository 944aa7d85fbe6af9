/**
 * Announces pending requests to screen readers, politely.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

import { qualifiedName } from '../../api/protocol';
import type { IApproval } from '../../api/protocol';
import type { IApprovalModel } from '../../internalTokens';
import { label } from '../../ui/text/visibleText';

/** A live region at the end of the page. */
export class Announcer implements IDisposable {
  constructor(
    private readonly _model: IApprovalModel,
    private readonly _trans: TranslationBundle
  ) {
    this._node.className = 'jp-AgentBox-announcer';
    this._node.setAttribute('role', 'status');
    this._node.setAttribute('aria-live', 'polite');
    document.body.append(this._node);
    this._model.arrived.connect(this._onArrived, this);
  }

  get isDisposed(): boolean {
    return !this._node.isConnected;
  }

  dispose(): void {
    this._model.arrived.disconnect(this._onArrived, this);
    this._node.remove();
  }

  private _onArrived(_: unknown, arrived: readonly IApproval[]): void {
    const name = label(qualifiedName(arrived[0].call));
    this._node.textContent =
      arrived.length === 1
        ? this._trans.__('New approval request: %1', name)
        : this._trans._n(
            '%1 new approval request',
            '%1 new approval requests',
            arrived.length
          );
  }

  private readonly _node = document.createElement('div');
}

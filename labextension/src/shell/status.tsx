/**
 * The status bar item.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { useSignal } from '../ui/hooks/useSignal';
import { approvalIcon } from '../ui/icons';
import type {
  IApprovalModel,
  IApprovalPanel,
  IHubRequestsModel
} from '../internalTokens';

/** What the status bar item needs. */
export interface IStatusOptions {
  model: IApprovalModel;
  panel: IApprovalPanel;
  hub: IHubRequestsModel;
  trans: TranslationBundle;
}

/** How many requests wait, here and at the Hub service; a click shows them. */
export class ApprovalStatus extends ReactWidget {
  constructor(private readonly _options: IStatusOptions) {
    super();
    this.addClass('jp-AgentBox-status');
  }

  protected override render(): JSX.Element {
    return <StatusButton {...this._options} />;
  }
}

function StatusButton(options: IStatusOptions): JSX.Element {
  const { model, panel, hub, trans } = options;
  useSignal(model.changed);
  useSignal(hub.changed);
  const count = model.pending.length + hub.list.total;
  const name = trans._n(
    '%1 request awaiting approval',
    '%1 requests awaiting approval',
    count
  );
  return (
    <button
      type="button"
      className={count > 0 ? 'jp-mod-waiting' : undefined}
      title={trans._n(
        '%1 request awaiting approval. Show the panel.',
        '%1 requests awaiting approval. Show the panel.',
        count
      )}
      aria-label={name}
      onClick={() => {
        panel.open();
      }}
    >
      <approvalIcon.react tag="span" stylesheet="statusBar" />
      {count > 0 ? <span>{count}</span> : null}
    </button>
  );
}

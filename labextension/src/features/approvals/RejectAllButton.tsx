/**
 * The button in the panel's toolbar that leads to the form which rejects all that wait.
 */
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { CardProvider, useCardContext, useTrans } from '../../ui/context';
import type { ICardContext } from '../../ui/context';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { useSignal } from '../../ui/hooks/useSignal';
import { describeLoss } from '../../ui/text/connection';
import type { PendingFilter } from './pendingFilter';

export interface IRejectAllButtonProps {
  filter: PendingFilter;
  onActivate: () => void;
}

/** Is there if several wait, unless a filter chooses from them: then the list has a button for those that it shows. */
export function RejectAllButton(
  props: IRejectAllButtonProps
): JSX.Element | null {
  const trans = useTrans();
  const { model } = useCardContext();
  useSignal(model.changed);
  useSignal(props.filter.changed);
  const count = model.pending.length;
  return count > 1 &&
    !props.filter.isActive &&
    describeLoss(model.connection, trans) === null ? (
    <PersonButton
      label={trans._n('Reject all (%1)…', 'Reject all (%1)…', count)}
      onActivate={props.onActivate}
    />
  ) : null;
}

/** The button as an item of a toolbar. */
export class RejectAllItem extends ReactWidget {
  constructor(
    private readonly _context: ICardContext,
    private readonly _props: IRejectAllButtonProps
  ) {
    super();
    this.addClass('jp-AgentBox-rejectAllItem');
  }

  protected override render(): JSX.Element {
    return (
      <CardProvider value={this._context}>
        <RejectAllButton {...this._props} />
      </CardProvider>
    );
  }
}

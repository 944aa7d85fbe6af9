/**
 * Stands for arguments that are too long for a list, or are no longer stored.
 */
import React from 'react';

import { useTrans } from '../context';
import type { IApproval, IOmission } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { localeOf } from '../text/language';
import { label } from '../text/visibleText';
import { LinkButton, VisibleText } from '../components/VisibleText';

/** The number of characters that are shown from the beginning. */
const SHOWN = 200;

export interface ILongArgumentsProps {
  omitted: IOmission;
  /** Fetches all of them; without it, they are no longer stored. */
  onShow?: () => void;
}

export function LongArguments(props: ILongArgumentsProps): JSX.Element {
  const trans = useTrans();
  const { omitted, onShow } = props;
  const size = omitted.size.toLocaleString(localeOf(trans));
  return (
    <div className="jp-AgentBox-arguments">
      <p className="jp-AgentBox-note">
        {onShow
          ? trans._n(
              'Long arguments (%2 byte). They begin:',
              'Long arguments (%2 bytes). They begin:',
              omitted.size,
              size
            )
          : trans._n(
              'These arguments (%2 byte) are no longer kept. They began:',
              'These arguments (%2 bytes) are no longer kept. They began:',
              omitted.size,
              size
            )}
      </p>
      <VisibleText text={label(omitted.head, SHOWN)} />{' '}
      {onShow ? (
        <LinkButton label={trans.__('Show all arguments')} onClick={onShow} />
      ) : null}
    </div>
  );
}

/** A pending request until all of its arguments are fetched: it has no buttons that decide. */
export function LongRequest(props: {
  approval: IApproval;
  onShow: () => void;
}): JSX.Element | null {
  const trans = useTrans();
  const { approval, onShow } = props;
  const name = label(qualifiedName(approval.call));
  return approval.call.omitted ? (
    <div
      className="jp-AgentBox-card jp-mod-neutral"
      data-request-id={approval.id}
      role="group"
      aria-label={trans.__('Approval request: %1', name)}
      tabIndex={-1}
    >
      <span className="jp-AgentBox-name">{name}</span>
      <LongArguments omitted={approval.call.omitted} onShow={onShow} />
      <p className="jp-AgentBox-note">
        {trans.__('You can decide once you have seen them all.')}
      </p>
    </div>
  ) : null;
}

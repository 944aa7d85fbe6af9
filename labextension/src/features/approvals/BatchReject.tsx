/**
 * The form that rejects several requests, and names their number.
 */
import React from 'react';

import { RejectForm } from '../../ui/card/RejectForm';
import { useTrans } from '../../ui/context';
import { Guarded } from '../../ui/guarded/GuardedCard';
import type { PersonalAnswer } from '../../internalTokens';
import { useKeptReason } from './keptReasons';

export interface IBatchRejectProps {
  /** The number of requests that are rejected. */
  count: number;
  /** The key under which the typed reason is kept until the answer is accepted. */
  reasonKey: string;
  isBusy: boolean;
  describedBy: string;
  /** Sends the answer, and resolves to whether nothing is left to answer again. */
  onReject: (answer: PersonalAnswer) => Promise<boolean>;
  onCancel: () => void;
}

/** It is on a card, which guards its buttons. */
export function BatchReject(props: IBatchRejectProps): JSX.Element {
  const trans = useTrans();
  const { count } = props;
  const [reason, setReason] = useKeptReason(props.reasonKey);
  const reject = async (): Promise<void> => {
    const text = reason.trim();
    if (await props.onReject({ decision: 'reject_once', reason: text })) {
      setReason('');
    }
  };
  return (
    <Guarded>
      <RejectForm
        reason={reason}
        rejectLabel={trans._n('Reject %1', 'Reject %1', count)}
        isFocused={true}
        isBusy={props.isBusy}
        describedBy={props.describedBy}
        onChange={setReason}
        onReject={() => {
          void reject();
        }}
        onCancel={props.onCancel}
      />
    </Guarded>
  );
}

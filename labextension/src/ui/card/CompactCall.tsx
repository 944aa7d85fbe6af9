/**
 * A request that waits in a list, in two lines: its call, its risk and the time left. Going to it opens the whole card.
 */
import React from 'react';

import type { IApproval } from '../../api/protocol';
import { useTrans } from '../context';
import { callLine } from '../text/callLine';
import { describeRisk } from '../text/risk';
import { label } from '../text/visibleText';
import { Countdown } from './Countdown';
import { RiskMark } from './RiskMark';

export interface ICompactCallProps {
  approval: IApproval;
  now: () => number;
}

export function CompactCall(props: ICompactCallProps): JSX.Element {
  const trans = useTrans();
  const { approval, now } = props;
  const { risk, text } = describeRisk(approval, trans);
  return (
    <>
      <code className="jp-AgentBox-compactLine">
        {label(approval.call.server)}.{callLine(approval, trans)}
      </code>
      <div className="jp-AgentBox-subline">
        <RiskMark risk={risk} text={text} />
        {approval.expires_at ? (
          <Countdown expiresAt={approval.expires_at} now={now} />
        ) : null}
      </div>
    </>
  );
}

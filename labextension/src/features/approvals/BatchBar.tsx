/**
 * The buttons that decide all selected rows of a table, and name their number.
 */
import React from 'react';

import { useTrans } from '../../ui/context';
import { DecisionButton } from '../../ui/guarded/DecisionButton';
import { KeyHelp } from '../../ui/guarded/cardKeys';
import { Guarded } from '../../ui/guarded/GuardedCard';
import type { PersonalAnswer } from '../../internalTokens';
import { BatchReject } from './BatchReject';

export interface IBatchBarProps {
  /** The number of selected rows. */
  count: number;
  /** Whether allowing them must not look like the obvious choice. */
  isGrave: boolean;
  isBusy: boolean;
  describedBy: string;
  /** The key under which the reason of a rejection is kept. */
  reasonKey: string;
  /** Sends an answer, and resolves to whether nothing is left to answer again. */
  onDecide: (answer: PersonalAnswer) => Promise<boolean>;
}

/** There is no button before something is selected, so that none can be pressed that decides nothing. */
export function BatchBar(props: IBatchBarProps): JSX.Element {
  const trans = useTrans();
  const { count, isBusy, describedBy, onDecide } = props;
  const [isRejecting, setRejecting] = React.useState(false);
  /** Whether the form was closed without an answer, so that its button gets the focus back. */
  const [isBack, setBack] = React.useState(false);
  const close = (isCancelled: boolean): void => {
    setRejecting(false);
    setBack(isCancelled);
  };
  React.useEffect(() => {
    if (count === 0) {
      setRejecting(false); // or it would take the focus as soon as a row is selected again
    }
  }, [count]);
  const others = [
    [trans.__('Tab'), trans.__('To a row, then to the buttons')],
    [trans.__('Up, Down'), trans.__('To another row')],
    [trans.__('Space'), trans.__('Select the row, or deselect it')],
    [trans.__('Ctrl+A'), trans.__('Select all rows')],
    [trans.__('Enter'), trans.__('Open or close the row’s card')]
  ] as const;
  if (count === 0) {
    return (
      <>
        <p className="jp-AgentBox-note">
          {trans.__('Select rows to decide them together.')}
        </p>
        <KeyHelp others={others} />
      </>
    );
  }
  if (isRejecting) {
    return (
      <BatchReject
        count={count}
        reasonKey={props.reasonKey}
        isBusy={isBusy}
        describedBy={describedBy}
        onReject={answer => {
          close(false);
          return onDecide(answer);
        }}
        onCancel={() => {
          close(true);
        }}
      />
    );
  }
  return (
    <Guarded keys={{ others }}>
      <div className="jp-AgentBox-buttons">
        <DecisionButton
          kind={props.isGrave ? 'caution' : 'allow'}
          label={trans._n('Allow %1', 'Allow %1', count)}
          describedBy={describedBy}
          isBusy={isBusy}
          onActivate={() => {
            void onDecide({ decision: 'allow_once' });
          }}
        />
        <DecisionButton
          kind="reject"
          label={trans._n('Reject %1…', 'Reject %1…', count)}
          describedBy={describedBy}
          isBusy={isBusy}
          isFocused={isBack}
          onActivate={() => {
            setRejecting(true);
          }}
        />
      </div>
    </Guarded>
  );
}

/**
 * The end of a form in which a call is edited: the problems, the changes, and the buttons.
 */
import React from 'react';

import type { IJsonObject } from '../../api/json';
import type { IApproval } from '../../api/protocol';
import { useTrans } from '../context';
import { describeRisk, isGrave } from '../text/risk';
import { DecisionButton } from '../guarded/DecisionButton';

export interface IEditFooterProps {
  approval: IApproval;
  /** What is wrong and has no field of its own to be said at; empty texts do not count. */
  errors: readonly (string | null | undefined)[];
  /** The number of fields that are marked as wrong. */
  marked?: number;
  /** The values that would be sent; `null` if the form has no valid values. */
  values: IJsonObject | null;
  isBusy: boolean;
  describedBy: string;
  onAllow: (values: IJsonObject) => void;
  onCancel: () => void;
  /** Goes to what is wrong, while something is. */
  correct?: () => void;
  /** The changes. */
  children?: React.ReactNode;
}

export function EditFooter(props: IEditFooterProps): JSX.Element {
  const trans = useTrans();
  const { values, marked = 0 } = props;
  const errorsId = React.useId();
  const whyId = React.useId();
  return (
    <>
      <div id={errorsId} role="alert">
        {props.errors.filter(Boolean).map(error => (
          <p key={error} className="jp-AgentBox-error">
            {error}
          </p>
        ))}
      </div>
      {props.children}
      <div className="jp-AgentBox-buttons">
        <DecisionButton
          kind={
            isGrave(describeRisk(props.approval, trans).risk)
              ? 'caution'
              : 'allow'
          }
          label={trans.__('Allow once with edits')}
          describedBy={`${props.describedBy} ${errorsId} ${whyId}`}
          isBusy={props.isBusy}
          correct={props.correct}
          onActivate={() => {
            if (values) {
              props.onAllow(values);
            }
          }}
        />
        <DecisionButton
          kind="neutral"
          label={trans.__('Cancel')}
          onActivate={props.onCancel}
        />
        <span id={whyId} className="jp-AgentBox-why" role="status">
          {marked > 0
            ? trans._n(
                'Correct the marked field first.',
                'Correct the %1 marked fields first.',
                marked
              )
            : null}
        </span>
      </div>
    </>
  );
}

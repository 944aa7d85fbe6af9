/**
 * Asks until when, and for how many calls, an answer lasts, in place.
 */
import React from 'react';

import type { IApproval, IGrantTerms } from '../../api/protocol';
import { useTrans } from '../context';
import { DecisionButton } from '../guarded/DecisionButton';
import { chosenAnswer } from '../text/lasting';
import type { IChosenEnd, LastingKind, Unit } from '../text/lasting';

export interface ILastingFormProps {
  approval: IApproval;
  kind: LastingKind;
  isCautious: boolean;
  describedBy: string;
  isBusy: boolean;
  now?: () => number;
  onAnswer: (terms: IGrantTerms) => void;
  onCancel: () => void;
}

/** The button names the whole answer; there is none for impossible input. */
export function LastingForm(props: ILastingFormProps): JSX.Element {
  const trans = useTrans();
  const { approval, kind } = props;
  const first = React.useRef<HTMLInputElement>(null);
  const [chosen, setChosen] = React.useState<IChosenEnd>({
    time: '',
    unit: 'minutes',
    calls: ''
  });
  React.useEffect(() => {
    first.current?.focus();
  }, []);
  const answer = chosenAnswer(approval, kind, chosen, trans);
  const units: [Unit, string][] = [
    ['minutes', trans.__('minutes')],
    ['hours', trans.__('hours')],
    ['days', trans.__('days')]
  ];
  return (
    <div className="jp-AgentBox-lastingForm">
      <div className="jp-AgentBox-lastingEnds">
        <label>
          {trans.__('Time')}{' '}
          <Digits
            ref={first}
            text={chosen.time}
            onChange={time => {
              setChosen({ ...chosen, time });
            }}
          />
        </label>
        <select
          className="jp-AgentBox-field"
          aria-label={trans.__('Unit of time')}
          value={chosen.unit}
          onChange={event => {
            setChosen({ ...chosen, unit: event.target.value as Unit });
          }}
        >
          {units.map(([unit, name]) => (
            <option key={unit} value={unit}>
              {name}
            </option>
          ))}
        </select>
        {kind === 'allow' ? (
          <label>
            {trans.__('Maximum number of calls')}{' '}
            <Digits
              text={chosen.calls}
              onChange={calls => {
                setChosen({ ...chosen, calls });
              }}
            />
          </label>
        ) : null}
      </div>
      <p className="jp-AgentBox-note" role="status">
        {typeof answer === 'string' ? answer : ''}
      </p>
      {typeof answer === 'string' ? null : (
        <DecisionButton
          key={answer.label} // what it answers is on screen for a while before it can be pressed
          kind={props.isCautious ? 'caution' : 'neutral'}
          label={answer.label}
          describedBy={props.describedBy}
          isBusy={props.isBusy}
          onActivate={() => {
            props.onAnswer(answer.terms((props.now ?? Date.now)()));
          }}
        />
      )}
      <DecisionButton
        kind="neutral"
        label={trans.__('Back')}
        onActivate={props.onCancel}
      />
    </div>
  );
}

interface IDigitsProps {
  text: string;
  onChange: (text: string) => void;
}

const Digits = React.forwardRef<HTMLInputElement, IDigitsProps>(
  ({ text, onChange }, ref) => (
    <input
      ref={ref}
      className="jp-AgentBox-field"
      inputMode="numeric"
      autoComplete="off"
      size={4}
      maxLength={6}
      value={text}
      onChange={event => {
        onChange(event.target.value);
      }}
    />
  )
);
Digits.displayName = 'Digits';

/**
 * Asks for the reason for a rejection, in place.
 */
import React from 'react';

import { useTrans } from '../context';
import { DecisionButton } from '../guarded/DecisionButton';
import { CardGuard } from '../guarded/GuardedCard';
import { useFirstFocus } from '../hooks/useFirstFocus';
import { useScrollIntoView } from '../hooks/useScrollIntoView';

export interface IRejectFormProps {
  reason: string;
  /** The label of the button that rejects, if it is not the usual one. */
  rejectLabel?: string;
  /** Whether the field takes the focus when it appears; not if the form reappears by itself. */
  isFocused: boolean;
  isBusy: boolean;
  describedBy: string;
  onChange: (reason: string) => void;
  onReject: () => void;
  onCancel: () => void;
}

/** Enter rejects, Shift+Enter inserts a line, Escape goes back. */
export function RejectForm(props: IRejectFormProps): JSX.Element {
  const trans = useTrans();
  const id = React.useId();
  const { confirm } = React.useContext(CardGuard);
  const field = React.useRef<HTMLTextAreaElement>(null);
  useFirstFocus(field, props.isFocused);
  const root = React.useRef<HTMLDivElement>(null);
  useScrollIntoView(root, props.isFocused);

  const onKeyDown = (event: React.KeyboardEvent): void => {
    const { isTrusted, isComposing } = event.nativeEvent;
    if (event.key === 'Escape') {
      event.stopPropagation();
      props.onCancel();
    } else if (event.key === 'Enter' && !event.shiftKey && !isComposing) {
      event.preventDefault();
      if (isTrusted && !event.repeat && !props.isBusy && confirm()) {
        props.onReject();
      }
    }
  };

  return (
    <div ref={root} className="jp-AgentBox-form">
      <label htmlFor={id}>{trans.__('Reason (optional)')}</label>
      <textarea
        id={id}
        ref={field}
        className="jp-AgentBox-field"
        rows={2}
        enterKeyHint="send"
        maxLength={4000}
        value={props.reason}
        placeholder={trans.__('Sent to the calling code')}
        onChange={event => {
          props.onChange(event.target.value);
        }}
        onKeyDown={onKeyDown}
      />
      <div className="jp-AgentBox-buttons">
        <DecisionButton
          kind="reject"
          label={props.rejectLabel ?? trans.__('Reject')}
          describedBy={props.describedBy}
          isBusy={props.isBusy}
          onActivate={props.onReject}
        />
        <DecisionButton
          kind="neutral"
          label={trans.__('Cancel')}
          onActivate={props.onCancel}
        />
      </div>
    </div>
  );
}

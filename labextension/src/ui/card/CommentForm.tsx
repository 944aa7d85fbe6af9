/**
 * Asks for a comment on allowing, in place.
 */
import React from 'react';

import { useTrans } from '../context';
import { DecisionButton } from '../guarded/DecisionButton';
import { useFirstFocus } from '../hooks/useFirstFocus';
import { useScrollIntoView } from '../hooks/useScrollIntoView';
import type { IComment } from './forms';

export interface ICommentFormProps {
  comment: IComment;
  /** What the button that allows says. */
  allowLabel: string;
  isGrave: boolean;
  /** Whether the field takes the focus when it appears; not if the form reappears by itself. */
  isFocused: boolean;
  isBusy: boolean;
  describedBy: string;
  onChange: (comment: IComment) => void;
  onAllow: () => void;
  onCancel: () => void;
}

/** Escape goes back. Enter inserts a line: only the button allows, and typing does not press it. */
export function CommentForm(props: ICommentFormProps): JSX.Element {
  const trans = useTrans();
  const id = React.useId();
  const { comment } = props;
  const root = React.useRef<HTMLDivElement>(null);
  const field = React.useRef<HTMLTextAreaElement>(null);
  useScrollIntoView(root, props.isFocused);
  useFirstFocus(field, props.isFocused);
  return (
    <div
      ref={root}
      className="jp-AgentBox-form"
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.onCancel();
        }
      }}
    >
      <label htmlFor={id}>{trans.__('Comment')}</label>
      <textarea
        id={id}
        ref={field}
        className="jp-AgentBox-field"
        rows={2}
        maxLength={4000}
        value={comment.text}
        placeholder={trans.__('Kept in the history')}
        onChange={event => {
          props.onChange({ ...comment, text: event.target.value });
        }}
      />
      <label className="jp-AgentBox-check">
        <input
          type="checkbox"
          checked={comment.isTold}
          onChange={event => {
            props.onChange({ ...comment, isTold: event.target.checked });
          }}
        />{' '}
        {trans.__('Show it to the calling code')}
      </label>
      <div className="jp-AgentBox-buttons">
        <DecisionButton
          kind={props.isGrave ? 'caution' : 'allow'}
          label={props.allowLabel}
          describedBy={props.describedBy}
          isBusy={props.isBusy}
          onActivate={props.onAllow}
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

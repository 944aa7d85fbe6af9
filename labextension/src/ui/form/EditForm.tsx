/**
 * Edits the arguments of a call, in a form or as JSON.
 */
import React from 'react';

import { useTrans } from '../context';
import { changedNames, draftArguments, switchMode } from './draft';
import type { IDraft } from './draft';
import type { IJsonObject } from '../../api/json';
import type { IApproval } from '../../api/protocol';
import { useFirstFocus } from '../hooks/useFirstFocus';
import { useScrollIntoView } from '../hooks/useScrollIntoView';
import { Changes } from './Changes';
import { EditFooter } from './EditFooter';
import { CardGuard } from '../guarded/GuardedCard';
import { FormFields } from './FormFields';
import type { IArgumentError } from '../card/useSending';
import { useRefusal, useWrong, whatIsWrong } from './wrongFields';

export interface IEditFormProps {
  /** Whether a field may take the focus when it appears; not if the form reappears by itself. */
  isFocused: boolean;
  approval: IApproval;
  draft: IDraft;
  error: IArgumentError | null;
  isBusy: boolean;
  describedBy: string;
  onChange: (draft: IDraft) => void;
  onAllow: (values: IJsonObject) => void;
  onCancel: () => void;
}

/** Nothing that was typed is lost, even if it is invalid. */
export function EditForm(props: IEditFormProps): JSX.Element {
  const trans = useTrans();
  const { approval, draft } = props;
  const read = draftArguments(draft, trans);
  const { marked, unplaced } = useWrong(
    approval.tool.input_schema,
    draft,
    props.error,
    trans
  );
  const isWrong = marked > 0 || unplaced.length > 0 || read.error !== null;
  const changed = read.values
    ? changedNames(approval.call.arguments, read.values)
    : [];
  const { confirm } = React.useContext(CardGuard);
  const root = React.useRef<HTMLDivElement>(null);
  const isFocused = React.useRef(props.isFocused);
  React.useEffect(() => {
    if (isFocused.current) {
      root.current
        ?.querySelector<HTMLElement>('input, select, textarea')
        ?.focus();
    }
  }, []);
  useScrollIntoView(root, props.isFocused);
  const correct = (): void => {
    whatIsWrong(root.current, draft.mode)?.focus();
  };
  useRefusal(root, props.error, correct);

  return (
    <div
      ref={root}
      className="jp-AgentBox-form"
      onKeyDown={event => {
        if (event.key === 'Escape') {
          event.stopPropagation();
          props.onCancel();
        } else if (isSending(event)) {
          event.preventDefault();
          if (isWrong) {
            correct();
          } else if (read.values && !props.isBusy && confirm()) {
            props.onAllow(read.values);
          }
        }
      }}
    >
      <Modes {...props} />
      {draft.mode === 'form' ? (
        <FormFields
          source={approval.tool.input_schema}
          draft={draft}
          error={props.error}
          onChange={props.onChange}
        />
      ) : (
        <JsonField {...props} isWrong={isWrong} />
      )}
      <EditFooter
        {...props}
        errors={[draft.problem, read.error, ...unplaced]}
        marked={marked}
        values={read.values}
        correct={isWrong ? correct : undefined}
      >
        {read.values ? (
          <Changes
            names={changed}
            before={approval.call.arguments}
            after={read.values}
          />
        ) : null}
      </EditFooter>
    </div>
  );
}

/** Whether a person, and not a held key, submits the form from a field. */
function isSending({ nativeEvent: event }: React.KeyboardEvent): boolean {
  const isEnter = event.key === 'Enter' && (event.ctrlKey || event.metaKey);
  return isEnter && event.isTrusted && !event.repeat && !event.isComposing;
}

function Modes({ approval, draft, onChange }: IEditFormProps): JSX.Element {
  const trans = useTrans();
  const schema = approval.tool.input_schema;
  const modes: [IDraft['mode'], string][] = [
    ['form', trans.__('Form')],
    ['json', trans.__('JSON')]
  ];
  return (
    <div
      className="jp-AgentBox-modes"
      role="group"
      aria-label={trans.__('Edit the arguments as')}
    >
      {modes.map(([mode, name]) => (
        <button
          key={mode}
          type="button"
          aria-pressed={draft.mode === mode}
          onClick={() => {
            onChange(switchMode(draft, mode, schema, trans));
          }}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

function JsonField(props: IEditFormProps & { isWrong: boolean }): JSX.Element {
  const trans = useTrans();
  const { draft } = props;
  const field = React.useRef<HTMLTextAreaElement>(null);
  const rows = Math.min(20, Math.max(5, draft.text.split('\n').length + 1));
  useFirstFocus(field, props.isFocused);
  return (
    <textarea
      ref={field}
      className="jp-AgentBox-field jp-mod-code"
      aria-label={trans.__('Arguments as JSON')}
      aria-invalid={props.isWrong}
      rows={rows}
      spellCheck={false}
      autoComplete="off"
      value={draft.text}
      onChange={event => {
        props.onChange({ ...draft, text: event.target.value, problem: null });
      }}
    />
  );
}

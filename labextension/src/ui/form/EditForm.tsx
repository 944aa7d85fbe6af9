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
import { hasField, toFormSchema } from './formSchema';
import type { IArgumentError } from '../card/useSending';
import { countWrong } from './validation';

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
  const { marked, unplaced } = useWrong(props);
  const isWrong = marked > 0 || Boolean(unplaced ?? read.error);
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
        errors={[draft.problem, read.error, unplaced]}
        marked={marked}
        values={read.values}
        correct={isWrong ? correct : undefined}
      >
        <Changes
          names={changed}
          before={approval.call.arguments}
          after={read.values ?? {}}
        />
      </EditFooter>
    </div>
  );
}

/** What is known to be wrong: in how many fields of the form, and what the server says that is about none of them. */
function useWrong({ approval, draft, error }: IEditFormProps): {
  marked: number;
  unplaced: string | null;
} {
  const source = approval.tool.input_schema;
  const form = React.useMemo(
    () => toFormSchema(source, draft.start),
    [source, draft.start]
  );
  const found = React.useMemo(
    () => (form ? countWrong(draft.values, form.schema) : 0),
    [form, draft.values]
  );
  if (draft.mode === 'json' || !form) {
    return { marked: 0, unplaced: error?.message ?? null };
  }
  const isPlaced = error !== null && hasField(form.schema, error.parameter);
  return {
    // The form sends only what it takes for right, so that the server's objection stands alone.
    marked: isPlaced ? Math.max(found, 1) : found,
    unplaced: isPlaced ? null : (error?.message ?? null)
  };
}

/** The first field that is wrong or, if that is known of none, the one with the JSON or the way there. */
function whatIsWrong(
  form: HTMLElement | null,
  mode: IDraft['mode']
): HTMLElement | null {
  if (mode === 'json') {
    return form?.querySelector('textarea') ?? null;
  }
  const group = form
    ?.querySelector('.jp-errorIndicator')
    ?.closest('div.form-group');
  return (
    group?.querySelector<HTMLElement>('input, select, textarea, button') ??
    form?.querySelector('button[aria-pressed="false"]') ??
    null
  );
}

/** Go to what the server has just refused, if the person is still in the form. */
function useRefusal(
  root: React.RefObject<HTMLElement>,
  error: IArgumentError | null,
  correct: () => void
): void {
  const first = React.useRef(error);
  const latest = React.useRef(correct);
  React.useEffect(() => {
    latest.current = correct;
  });
  React.useEffect(() => {
    if (!error || error === first.current) {
      return;
    }
    // The library marks the field in a pass of its own.
    const timer = window.setTimeout(() => {
      if (root.current?.contains(document.activeElement)) {
        latest.current();
      }
    });
    return () => {
      window.clearTimeout(timer);
    };
  }, [root, error]);
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

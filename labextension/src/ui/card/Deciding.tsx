/**
 * The three answers, and the forms that two of them open.
 */
import React from 'react';

import { useTrans } from '../context';
import type { IJsonObject } from '../../api/json';
import { codeOf, isOnlyCode } from '../code/findings';
import { CodeForm } from '../form/CodeForm';
import { CommentForm } from './CommentForm';
import { OpenForms, typedIn } from './forms';
import type { IComment, IForm } from './forms';
import { openDraft } from '../form/draft';
import type { IDraft } from '../form/draft';
import type { IApproval, IGrantTerms } from '../../api/protocol';
import { DecisionButton } from '../guarded/DecisionButton';
import { describeRisk, isGrave } from '../text/risk';
import { LockedButton, useWhyLocked } from '../locks';
import { allowLabel, projectFile } from '../text/projectTrust';
import { label } from '../text/visibleText';
import { LastingAnswers, LastingToggle } from './LastingAnswers';
import type { LastingKind } from '../text/lasting';
import { RejectForm } from './RejectForm';
import type { ISending } from './useSending';

export interface IDecidingProps {
  approval: IApproval;
  sending: ISending;
  describedBy: string;
  /** Whether a part of the arguments was never shown. */
  hasUnseen: boolean;
  /** Opens the form of a rule, prefilled from the request. */
  onMakeRule?: (effect: 'allow' | 'deny') => void;
}

// The form library is large, and few requests are edited.
const EditForm = React.lazy(async () => {
  const { EditForm } = await import('../form/EditForm');
  return { default: EditForm };
});

type Mode = IForm['mode'];

/** Whether a request would run code, and has nothing else to edit. */
function isCode({ call }: IApproval): boolean {
  return codeOf(call) !== null && isOnlyCode(call.arguments);
}

/** Keeps what was typed when a form is closed or the server refuses it. */
export function Deciding(props: IDecidingProps): JSX.Element {
  const trans = useTrans();
  const { approval, describedBy } = props;
  const { send, isBusy, argumentError } = props.sending;
  const forms = React.useContext(OpenForms);
  const [kept] = React.useState(forms.get(approval.id));
  const [mode, setMode] = React.useState<Mode>(kept?.mode ?? 'choose');
  const [reason, setReason] = React.useState(kept?.reason ?? '');
  const [draft, setDraft] = React.useState<IDraft | null>(kept?.draft ?? null);
  const [comment, setComment] = React.useState<IComment>(
    kept?.comment ?? { text: '', isTold: false }
  );
  React.useEffect(() => {
    forms.set(approval.id, { mode, reason, draft, comment });
  }, [forms, approval.id, mode, reason, draft, comment]);
  useInterruption(mode !== 'choose' && !isBusy, () => {
    const form = { mode, reason, draft, comment };
    props.sending.interrupt(typedIn(form, isCode(approval)));
  });
  const [isKept, setKept] = React.useState(kept !== undefined);
  const before = React.useRef<Mode>('choose');
  const open = (next: Mode): void => {
    before.current = mode;
    setKept(false);
    setMode(next);
  };

  const base = { describedBy, isBusy };
  const cancel = (): void => {
    open('choose');
  };
  const edit = (): void => {
    const { call, tool } = approval;
    setDraft(draft ?? openDraft(call.arguments, tool.input_schema));
    open('edit');
  };
  if (mode === 'reject') {
    return (
      <RejectForm
        {...base}
        reason={reason}
        isFocused={!isKept}
        onChange={setReason}
        onReject={() => {
          send({ decision: 'reject_once', reason: reason.trim() });
        }}
        onCancel={cancel}
      />
    );
  }
  if (mode === 'comment') {
    return (
      <CommentForm
        {...base}
        comment={comment}
        allowLabel={allowLabel(approval, trans)}
        isGrave={isGrave(describeRisk(approval, trans).risk)}
        isFocused={!isKept}
        onChange={setComment}
        onAllow={() => {
          const text = comment.text.trim();
          const said = text ? { reason: text, tell: comment.isTold } : {};
          send({ decision: 'allow_once', ...said });
        }}
        onCancel={cancel}
      />
    );
  }
  const form = {
    ...base,
    approval,
    isFocused: !isKept,
    error: argumentError,
    onChange: (changed: IDraft) => {
      // As JSON, the same arguments would be refused again.
      if (!(draft?.mode === 'form' && changed.mode === 'json')) {
        props.sending.forget();
      }
      setDraft(changed);
    },
    onAllow: (values: IJsonObject) => {
      send({ decision: 'allow_once', arguments: values });
    },
    onCancel: cancel
  };
  if (mode === 'edit' && draft && isCode(approval)) {
    return <CodeForm {...form} draft={draft} />;
  }
  if (mode === 'edit' && draft) {
    return (
      <React.Suspense fallback={<p>{trans.__('Opening the form…')}</p>}>
        <EditForm {...form} draft={draft} />
      </React.Suspense>
    );
  }
  return (
    <Choices
      {...base}
      isGrave={isGrave(describeRisk(approval, trans).risk)}
      approval={approval}
      hasUnseen={props.hasUnseen}
      onMakeRule={props.onMakeRule}
      onLasting={(kind, grant) => {
        const isAllowed = kind === 'allow';
        send({ decision: isAllowed ? 'allow_always' : 'reject_always', grant });
      }}
      closed={before.current}
      onAllow={() => {
        send({ decision: 'allow_once' });
      }}
      onEdit={edit}
      onComment={() => {
        open('comment');
      }}
      onReject={() => {
        open('reject');
      }}
    />
  );
}

interface IChoicesProps {
  describedBy: string;
  isBusy: boolean;
  isGrave: boolean;
  approval: IApproval;
  hasUnseen: boolean;
  onLasting: (kind: LastingKind, grant: IGrantTerms) => void;
  /** The form that was closed; its button gets the focus back. */
  closed: Mode;
  onAllow: () => void;
  onEdit: () => void;
  onComment: () => void;
  onMakeRule?: (effect: 'allow' | 'deny') => void;
  onReject: () => void;
}

function Choices(props: IChoicesProps): JSX.Element {
  const trans = useTrans();
  const { describedBy, isBusy, closed } = props;
  const base = { describedBy, isBusy };
  const lasting = useLasting(props);
  const whyLocked = useWhyLocked('edit');
  const file = projectFile(props.approval);
  const whyNoEdit =
    whyLocked ||
    (file
      ? trans.__(
          'Edit the file %1 instead, and look at the server again.',
          label(file, 200)
        )
      : '');
  return (
    <>
      <div className="jp-AgentBox-buttons">
        <span className="jp-AgentBox-split">
          <DecisionButton
            {...base}
            kind={props.isGrave ? 'caution' : 'allow'}
            letter="A"
            label={allowLabel(props.approval, trans)}
            isFocused={closed === 'comment'}
            onActivate={props.onAllow}
          />
          {lasting.toggle('allow')}
        </span>
        {whyNoEdit ? (
          <LockedButton
            label={trans.__('Edit')}
            why={whyNoEdit}
            isFocused={closed === 'edit'}
          />
        ) : (
          <DecisionButton
            {...base}
            kind="neutral"
            letter="E"
            label={trans.__('Edit')}
            isFocused={closed === 'edit'}
            onActivate={props.onEdit}
          />
        )}
        <span className="jp-AgentBox-split">
          <DecisionButton
            {...base}
            kind="reject"
            letter="R"
            label={trans.__('Reject')}
            isFocused={closed === 'reject'}
            onActivate={props.onReject}
          />
          {lasting.toggle('reject')}
        </span>
      </div>
      {lasting.answers}
    </>
  );
}

/** The arrows beside the buttons, and the lasting answers of the open one. */
function useLasting(props: IChoicesProps): {
  toggle: (kind: LastingKind) => JSX.Element;
  answers: JSX.Element | null;
} {
  const id = React.useId();
  const [kind, setKind] = React.useState<LastingKind | null>(null);
  const [closed, setClosed] = React.useState<LastingKind | null>(null);
  const toggle = (own: LastingKind): JSX.Element => (
    <LastingToggle
      kind={own}
      isOpen={kind === own}
      isClosedByKey={closed === own}
      controls={id}
      onToggle={() => {
        setClosed(null);
        setKind(kind === own ? null : own);
      }}
    />
  );
  const answers = kind && (
    <LastingAnswers
      key={kind}
      {...props}
      id={id}
      kind={kind}
      onAnswer={terms => {
        props.onLasting(kind, terms);
      }}
      onClose={() => {
        setClosed(kind);
        setKind(null);
      }}
    />
  );
  return { toggle, answers };
}

/** Call back if the component is unmounted while something is open in it. */
function useInterruption(isOpen: boolean, onInterruption: () => void): void {
  const latest = React.useRef<(() => void) | null>(null);
  React.useEffect(() => {
    latest.current = isOpen ? onInterruption : null;
  });
  React.useEffect(
    () => () => {
      latest.current?.();
    },
    []
  );
}

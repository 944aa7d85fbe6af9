/**
 * A request: what would run, and the buttons that decide; after the decision, its outcome.
 */
import React from 'react';

import { useNameOf, useTrans } from '../context';
import type { IMissingValue } from '../context';
import { describeIsolation } from '../text/isolation';
import type { IApproval } from '../../api/protocol';
import { isChange, isCodeRun, qualifiedName } from '../../api/protocol';
import { describeRisk } from '../text/risk';
import { allowLabel } from '../text/projectTrust';
import { summarize } from '../text/summary';
import type { PersonalAnswer } from '../../internalTokens';
import { label } from '../text/visibleText';
import { codeOf, findingsOf } from '../code/findings';
import { Arguments } from './Arguments';
import type { IArgumentsProps } from './Arguments';
import { Changes } from '../form/Changes';
import { changedNames } from '../form/draft';
import { CompactCall } from './CompactCall';
import { Countdown } from './Countdown';
import { Deciding } from './Deciding';
import { LongArguments } from './LongArguments';
import { Guarded, GuardedCard } from '../guarded/GuardedCard';
import { HubReview } from './HubReview';
import { OpenForms } from './forms';
import { useKeptWaiting } from './useKeptWaiting';
import { LookAlikes } from './LookAlikes';
import { Outcome } from './Outcome';
import { askedBy, Facts, Mark, RiskLine, RuleSays, Says } from './ToolFacts';
import { UnseenNote, UnseenReport, useUnseen } from '../components/Unseen';
import { TypedText } from './TypedText';
import { useSending } from './useSending';
import { useOnOpened } from '../hooks/useOnOpened';
import { useTogetherLetter } from './together';
import { VoidedNote } from './VoidedNote';
import type { ISending } from './useSending';
import { LinkButton, VisibleText } from '../components/VisibleText';

export interface ICardProps {
  approval: IApproval;
  /** The origin of the request, in words; the link goes there. */
  origin: string;
  now: () => number;
  onDecide: (shown: IApproval, answer: PersonalAnswer) => Promise<void>;
  /** Inserts a cell that shows the value of a call whose cell has no output here. */
  missingValue?: IMissingValue;
  /** Offers to update the code of the cell; without it, there is no offer. */
  cellUpdate?: React.ReactNode;
  /** Extends the request's waiting time; returns whether it did. */
  onExtend?: () => Promise<boolean>;
  onReveal?: (approval: IApproval) => void;
  /** Whether there is no cell to go to. */
  isWithoutCell?: boolean;
  /** Fetches omitted arguments; without it, they are no longer stored. */
  onShowArguments?: () => void;
  /** Opens the form of a rule, prefilled from the request. */
  onMakeRule?: (effect: 'allow' | 'deny') => void;
  /** Goes to the same request in the panel, whose buttons no kernel can cover. */
  onOpenInPanel?: (approval: IApproval) => void;
  /** Whether the line above the card already shows the call, and a person has opened it to see the rest. */
  isCallAbove?: boolean;
  /** Whether the card is in a widget. */
  isInWidget?: boolean;
  /** Whether a pending request is shown in two lines, until somebody goes to it. */
  isCompact?: boolean;
  /** Moves the focus on from a card that was decided; without it, the focus stays. */
  onLeave?: (card: HTMLElement) => void;
  /** The present request, even when the card is gone. */
  present?: () => IApproval | null;
  /** Is told why an answer was not accepted, and what was typed for nothing, to show them where they outlive the card. */
  onFailure?: (text: string, typed: string) => void;
}

/** The component is the same in an output, a widget and the panel. */
export function Card(props: ICardProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { approval } = props;
  const root = React.useRef<HTMLDivElement>(null);
  const isPending = approval.status === 'pending';
  const isCompact = isPending && (props.isCompact ?? false);
  const sending = useSending(
    approval,
    props.onDecide,
    props.present ?? (() => approval),
    props.onFailure
  );
  const forms = React.useContext(OpenForms);
  React.useEffect(() => {
    if (!isPending) {
      forms.delete(approval.id);
    }
  }, [forms, isPending, approval.id]);
  const isHolding = useFocusMoved(root, isPending, sending, props.onLeave);
  useOnOpened(!isCompact, () => {
    if (root.current?.contains(document.activeElement)) {
      root.current.scrollIntoView({ block: 'nearest' });
    }
    return undefined;
  });
  const name = label(qualifiedName(approval.call));
  const { mood } = summarize(approval, nameOf, trans);

  return (
    <GuardedCard
      ref={root}
      className={`jp-mod-${mood}${isCompact ? ' jp-mod-compact' : ''}`}
      tabIndex={isCompact ? 0 : -1}
      isGuarded={isPending}
      isInWidget={props.isInWidget}
      data-request-id={approval.id}
      data-risk={isPending ? describeRisk(approval, trans).risk : undefined}
      data-status={approval.status}
      data-lm-suppress-shortcuts={
        isPending || isHolding ? withoutShortcuts(props) : undefined
      }
      aria-label={trans.__('Approval request: %1', name)}
    >
      {isCompact ? (
        <CompactCall approval={approval} now={props.now} />
      ) : isPending ? (
        <Pending {...props} sending={sending} />
      ) : (
        <>
          <Final {...props} />
          <MissingValue root={root} missing={props.missingValue} />
        </>
      )}
      <div role="alert">
        {sending.failure ? (
          <p className="jp-AgentBox-error">{sending.failure}</p>
        ) : null}
      </div>
      <TypedText text={sending.typed} />
    </GuardedCard>
  );
}

/** Under a cell, the notebook's shortcuts would take Enter from the buttons and letters from the fields. */
function withoutShortcuts(props: ICardProps): 'true' | undefined {
  return props.onReveal ? undefined : 'true';
}

function Pending(props: ICardProps & { sending: ISending }): JSX.Element {
  const trans = useTrans();
  const { approval, onOpenInPanel } = props;
  const titleId = React.useId();
  const [unseen, report] = useUnseen();
  const form = React.useRef<HTMLDivElement>(null);
  useKeptWaiting(form, props);
  const elsewhere = onOpenInPanel && {
    label: trans.__('Decide in the panel'),
    open: () => {
      onOpenInPanel(approval);
    }
  };
  return (
    <>
      <Header {...props} titleId={titleId} />
      <VoidedNote approval={approval} />
      <UnseenReport.Provider value={report}>
        <Arguments
          values={approval.call.arguments}
          schema={approval.tool.input_schema}
          python={pythonOf(approval)}
        />
      </UnseenReport.Provider>
      <Facts approval={approval} isSaid={true} />
      <Guarded
        elsewhere={elsewhere}
        keys={{ allowLabel: allowLabel(approval, trans) }}
      >
        <TogetherLetter />
        <UnseenNote unseen={unseen} />
        <div ref={form}>
          <Deciding
            approval={approval}
            sending={props.sending}
            describedBy={titleId}
            hasUnseen={unseen.size > 0}
            onMakeRule={props.onMakeRule}
          />
        </div>
      </Guarded>
    </>
  );
}

/** It is inside the card, to whose keys it adds. */
function TogetherLetter(): null {
  useTogetherLetter();
  return null;
}

/** The marks in the code of a request; `null` if the request does not run code. */
function pythonOf(approval: IApproval): IArgumentsProps['python'] {
  return codeOf(approval.call) === null
    ? null
    : {
        findings: findingsOf(approval),
        lookAlikes: approval.call.look_alikes
      };
}

function Header(props: ICardProps & { titleId: string }): JSX.Element {
  const { approval } = props;
  const { call, tool } = approval;
  return (
    <div className="jp-AgentBox-header">
      <div className="jp-AgentBox-headline">
        <span id={props.titleId} className="jp-AgentBox-name">
          <VisibleText text={call.server} />.<VisibleText text={call.tool} />
        </span>
        {approval.expires_at ? (
          <Countdown
            expiresAt={approval.expires_at}
            now={props.now}
            onExtend={props.onExtend}
          />
        ) : null}
      </div>
      <div className="jp-AgentBox-subline">
        {tool.title && tool.title !== call.tool ? (
          <span className="jp-AgentBox-title">
            <VisibleText text={label(tool.title, 200)} />
          </span>
        ) : null}
        <RiskLine approval={approval} />
      </div>
      <Says approval={approval} />
      <RuleSays approval={approval} />
      <Mark approval={approval} />
      <LookAlikes found={call.look_alikes} />
      <Origin {...props} />
    </div>
  );
}

function Origin(props: ICardProps): JSX.Element | null {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { approval, origin, onReveal, isWithoutCell = false } = props;
  const { kernel_id, notebook_path, askers = [] } = approval.call;
  const isByCode =
    kernel_id !== null || notebook_path !== null || askers.length === 0;
  if (isChange(approval.call)) {
    return null;
  }
  return (
    <div className="jp-AgentBox-origin">
      <span>
        {isByCode
          ? trans.__('From %1', origin)
          : trans.__('Asked by %1', label(askedBy(askers, nameOf, trans)))}
      </span>
      {isByCode ? (
        <span className="jp-AgentBox-isolation">
          {describeIsolation(approval.call, trans)}
        </span>
      ) : null}
      {onReveal && !isWithoutCell ? (
        <LinkButton
          label={trans.__('Go to cell')}
          title={trans.__('Go to the source of this call: %1', origin)}
          onClick={() => {
            onReveal(approval);
          }}
        />
      ) : null}
    </div>
  );
}

function Final(props: ICardProps): JSX.Element {
  const trans = useTrans();
  const { approval } = props;
  const edited = approval.decision?.arguments;
  const review = approval.outcome?.review;
  // Who decided a moment ago is offered it at once; who looks at an old card finds it with the rest.
  const isFresh =
    Date.parse(approval.decision?.decided_at ?? '') > performance.timeOrigin;
  return (
    <>
      <details
        className="jp-AgentBox-final"
        open={props.isCallAbove}
        data-lm-suppress-shortcuts={withoutShortcuts(props)}
      >
        <summary>
          <Outcome approval={approval} isCallAbove={props.isCallAbove} />
        </summary>
        <Says approval={approval} />
        <LookAlikes found={approval.call.look_alikes} />
        <Origin {...props} />
        <EditChanges approval={approval} />
        {edited ? (
          <h4>
            {isCodeRun(approval.call)
              ? trans.__('Edited code')
              : trans.__('Edited arguments')}
          </h4>
        ) : null}
        {edited ? (
          <Arguments
            values={edited}
            schema={approval.tool.input_schema}
            python={codeOf(approval.call) === null ? null : {}}
          />
        ) : null}
        {edited ? (
          <h4>
            {isCodeRun(approval.call)
              ? trans.__('Original code')
              : trans.__('Original arguments')}
          </h4>
        ) : null}
        {approval.call.omitted ? (
          <LongArguments
            omitted={approval.call.omitted}
            onShow={props.onShowArguments}
          />
        ) : (
          <Arguments
            values={approval.call.arguments}
            schema={approval.tool.input_schema}
            python={pythonOf(approval)}
          />
        )}
        <Facts approval={approval} isSaid={true} />
        <MakeRule {...props} />
        {isFresh ? null : props.cellUpdate}
      </details>
      {review?.status === 'pending' && approval.outcome?.state === 'running' ? (
        <HubReview review={review} now={props.now} />
      ) : null}
      {isFresh ? props.cellUpdate : null}
    </>
  );
}

/** What an edit changed, unless the original arguments are not there or have the same secrets removed. */
function EditChanges({
  approval
}: {
  approval: IApproval;
}): JSX.Element | null {
  const trans = useTrans();
  const { call, decision } = approval;
  const after = decision?.arguments;
  const before = call.arguments;
  const names = after && !call.omitted ? changedNames(before, after) : [];
  return after && names.length > 0 ? (
    <>
      <h4>{trans.__('Changes')}</h4>
      <Changes names={names} before={before} after={after} />
    </>
  ) : null;
}

/** Leads from a decided request to a rule for such requests. */
function MakeRule({ approval, onMakeRule }: ICardProps): JSX.Element | null {
  const trans = useTrans();
  return onMakeRule ? (
    <p className="jp-AgentBox-note">
      <LinkButton
        label={trans.__('Make a rule…')}
        title={trans.__('Write a rule that decides calls like this one')}
        onClick={() => {
          onMakeRule(approval.status === 'rejected' ? 'deny' : 'allow');
        }}
      />
    </p>
  ) : null;
}

interface IMissingValueProps {
  root: React.RefObject<HTMLElement>;
  missing: IMissingValue | undefined;
}

/** Says where the value is if it is not below the cell. */
function MissingValue(props: IMissingValueProps): JSX.Element | null {
  const trans = useTrans();
  const { root, missing } = props;
  const [isDone, setDone] = React.useState(false);
  const [name, setName] = React.useState<string | null>(null);
  React.useEffect(() => {
    setName((root.current && missing?.nameFor(root.current)) ?? null);
  }, [missing, root]);
  if (!missing || isDone) {
    return null;
  }
  const where =
    name === null
      ? trans.__('Which variable has its value depends on the code.')
      : name === '_'
        ? trans.__(
            'Its value is in the variable “_” until another cell has one.'
          )
        : trans.__('Its value is in the variable “%1”.', name);
  return (
    <p className="jp-AgentBox-note">
      {trans.__(
        'This page was loaded while the cell ran, so the output of the cell is not shown here.'
      )}{' '}
      {where}{' '}
      {name === null ? null : (
        <LinkButton
          label={trans.__('Insert a cell with “%1”', name)}
          onClick={() => {
            if (root.current) {
              missing.insert(root.current, name);
              setDone(true);
            }
          }}
        />
      )}
    </p>
  );
}

/**
 * When the focused element disappears because its request is final, the focus moves to the card.
 *
 * After the person's own answer it goes on from there. If the request ended by itself, the person may be in the middle of
 * a word: the card holds the focus and says so, and keeps the keys from the notebook until the focus leaves it.
 */
function useFocusMoved(
  root: React.RefObject<HTMLElement>,
  isPending: boolean,
  sending: ISending,
  onLeave?: (card: HTMLElement) => void
): boolean {
  const hadFocus = root.current?.contains(document.activeElement) ?? false;
  const wasPending = React.useRef(isPending);
  const isAnswered = React.useRef(false);
  const [isHolding, setHolding] = React.useState(false);
  const hold = (node: HTMLElement): void => {
    setHolding(true);
    const release = (): void => {
      setHolding(false);
    };
    node.addEventListener('blur', release, { once: true });
  };
  React.useLayoutEffect(() => {
    const node = root.current;
    isAnswered.current =
      sending.isBusy || (isAnswered.current && !sending.failure);
    // Between drawing and now the person may have gone elsewhere.
    const isLost =
      document.activeElement === document.body ||
      node?.contains(document.activeElement);
    if (wasPending.current && !isPending && hadFocus && isLost && node) {
      node.focus({ preventScroll: true });
      if (isAnswered.current) {
        onLeave?.(node);
      } else {
        hold(node);
      }
    }
    wasPending.current = isPending;
  });
  return isHolding;
}

/**
 * The requests of a cell's calls, in one output: decided ones as lines that fold, pending ones as cards.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import React from 'react';

import type { IApproval } from '../../api/protocol';
import { waitsAtHub } from '../../api/protocol';
import type { IKnownApproval, IQuestionsModel } from '../../internalTokens';
import { LinkButton } from '../components/VisibleText';
import { useCardContext, useNameOf } from '../context';
import { useSignal } from '../hooks/useSignal';
import { callLine } from '../text/callLine';
import { summarize } from '../text/summary';

import { visible } from '../text/visibleText';
import { SIGNS } from './Outcome';
import { RequestCard } from './RequestCard';
import { Together } from './together';

/** Up to this number, each request has a card, decided or not. */
const FEW = 3;

export interface IRequestGroupProps {
  requestIds: readonly string[];
  /** The output's text in a front end without this extension, one line for each request. */
  fallback: string;
  /** Is told of a request when nothing can change it any more. */
  onFinal: (approval: IApproval) => void;
}

/** Shows a few requests as cards; of many, the first pending ones as cards, and all of them as lines. */
export function RequestGroup(props: IRequestGroupProps): JSX.Element {
  const { requestIds } = props;
  const { model, trans, openTogether } = useCardContext();
  const root = React.useRef<HTMLDivElement>(null);
  useSignal(model.changed, id => id === null || requestIds.includes(id));
  useTracked(requestIds, props.onFinal);
  const isMany = requestIds.length > FEW;

  const known = requestIds.map(id => model.get(id));
  // What is being fetched may wait; of what the server does not know, only a line is left.
  const open = requestIds.filter((_, index) => isOpen(known[index]));
  const shown = new Set(open.slice(0, FEW));
  const [later] = open.slice(FEW);
  const together = React.useMemo(
    () =>
      openTogether && later !== undefined
        ? () => {
            openTogether(later);
          }
        : null,
    [openTogether, later]
  );
  const last = useLastDecided(root, shown, open.length > 0);
  const asking = useAsking();
  const atHub = requestIds
    .filter((_, index) => isAtHub(known[index]))
    .slice(0, FEW - shown.size);
  const cards = requestIds.filter(
    id =>
      !isMany ||
      shown.has(id) ||
      id === last ||
      asking.has(id) ||
      atHub.includes(id)
  );
  return (
    <div
      ref={root}
      className="jp-AgentBox-calls"
      role={isMany ? 'group' : undefined}
      aria-label={isMany ? trans.__('Calls of this cell') : undefined}
    >
      {isMany ? <Calls {...props} known={known} /> : null}
      <Together.Provider value={together}>
        {cards.map(id => (
          <RequestCard
            key={id}
            requestId={id}
            fallback={fallbackOf(props, requestIds.indexOf(id))}
            isUnderCell={
              open.length === 0 && id === requestIds[requestIds.length - 1]
            }
            onFinal={props.onFinal}
          />
        ))}
      </Together.Provider>
      <Later count={open.length - FEW} onTogether={together} />
    </div>
  );
}

interface ICallsProps extends IRequestGroupProps {
  known: readonly IKnownApproval[];
}

/** The number of calls and their outcomes; when expanded, one line for each. */
function Calls(props: ICallsProps): JSX.Element {
  const { requestIds, known } = props;
  const { trans } = useCardContext();
  const [areShown, setShown] = React.useState(false);
  return (
    <details
      className="jp-AgentBox-callLines"
      data-lm-suppress-shortcuts="true"
      open={areShown}
      onToggle={event => {
        setShown(event.currentTarget.open);
      }}
    >
      <summary>
        {describeGroup(
          known.map(({ approval }) => approval),
          trans
        )}
      </summary>
      {areShown ? (
        <ol>
          {requestIds.map((id, index) => (
            <Line
              key={id}
              id={id}
              approval={known[index]?.approval ?? null}
              fallback={fallbackOf(props, index)}
            />
          ))}
        </ol>
      ) : null}
    </details>
  );
}

interface ILaterProps {
  count: number;
  onTogether: (() => void) | null;
}

/** Says that requests without a card are waiting, and leads to where they can be decided together. */
function Later(props: ILaterProps): JSX.Element | null {
  const { trans } = useCardContext();
  const { count, onTogether } = props;
  if (count <= 0) {
    return null;
  }
  return (
    <p className="jp-AgentBox-note">
      {trans._n(
        '%1 more request is waiting.',
        '%1 more requests are waiting.',
        count
      )}{' '}
      {onTogether ? (
        <LinkButton
          label={trans.__('Decide them together in the panel')}
          onClick={onTogether}
        />
      ) : null}
    </p>
  );
}

/** What never changes. */
const NOTHING: IQuestionsModel['changed'] = new Signal({} as IQuestionsModel);

/** The requests of calls whose servers ask a question: the question's card is under theirs. */
function useAsking(): ReadonlySet<string> {
  const { questions } = useCardContext();
  useSignal(questions?.changed ?? NOTHING);
  return new Set(questions?.questions.map(one => one.request_id));
}

/** Whether a person may still have to decide. */
function isOpen(known: IKnownApproval | undefined): boolean {
  const { approval, state } = known ?? { approval: null, state: 'unknown' };
  return approval ? approval.status === 'pending' : state !== 'unknown';
}

/** Whether others still have to decide, at the Hub: the card says who. */
function isAtHub(known: IKnownApproval | undefined): boolean {
  return known?.approval ? waitsAtHub(known.approval) : false;
}

/** Keep requests in the store while they are shown, and report when nothing can change one any more. */
function useTracked(
  ids: readonly string[],
  onFinal: (approval: IApproval) => void
): void {
  const { model } = useCardContext();
  const tracked = React.useRef(new Map<string, IDisposable>());
  React.useEffect(() => {
    for (const id of ids) {
      if (!tracked.current.has(id)) {
        tracked.current.set(id, model.track(id));
      }
    }
    for (const id of ids) {
      const { approval } = model.get(id);
      if (approval) {
        onFinal(approval);
      }
    }
  });
  React.useEffect(() => {
    const all = tracked.current;
    return () => {
      all.forEach(each => {
        each.dispose();
      });
      all.clear();
    };
  }, []);
}

/**
 * The request of which a card was shown, and that was decided last. Its card stays until another is decided, so that a
 * person sees that their answer counted; when nothing waits any more and the focus is elsewhere, it goes into its line.
 */
function useLastDecided(
  root: React.RefObject<HTMLElement>,
  shown: ReadonlySet<string>,
  isWaiting: boolean
): string | null {
  const before = React.useRef<ReadonlySet<string>>(new Set());
  const [last, setLast] = React.useState<string | null>(null);
  const [, renderAgain] = React.useReducer((count: number) => count + 1, 0);
  const left = [...before.current].filter(id => !shown.has(id)).pop();
  const current = left ?? last;
  React.useEffect(() => {
    before.current = shown;
    const hasFocus = root.current?.contains(document.activeElement) ?? false;
    const kept = isWaiting || hasFocus ? current : null;
    setLast(kept);
    if (kept !== current) {
      // What was never kept is no change of the state, and if all ended at once, nothing else renders this again.
      renderAgain();
    }
  }, [root, shown, isWaiting, current]);
  React.useEffect(() => {
    const node = root.current;
    const release = (event: FocusEvent): void => {
      const to = event.relatedTarget;
      if (!(to instanceof Node && node?.contains(to)) && !isWaiting) {
        setLast(null);
      }
    };
    node?.addEventListener('focusout', release);
    return () => {
      node?.removeEventListener('focusout', release);
    };
  }, [root, isWaiting]);
  return current;
}

interface ILineProps {
  id: string;
  /** `null` until it is fetched. */
  approval: IApproval | null;
  fallback: string;
}

/** A call in one line, which expands to its card if it is not pending. */
function Line({ id, approval, fallback }: ILineProps): JSX.Element {
  const { trans } = useCardContext();
  const nameOf = useNameOf();
  const [isOpen, setOpen] = React.useState(false);
  if (!approval) {
    return <li>{visible(fallback) || '…'}</li>;
  }
  const { mood, text } = summarize(approval, nameOf, trans);
  const line = callLine(approval, trans);
  return (
    <li className={`jp-mod-${mood}`}>
      <span className="jp-AgentBox-sign" aria-hidden="true">
        {SIGNS[mood]}
      </span>{' '}
      {mood === 'waiting' ? (
        <code>{line}</code>
      ) : (
        <LinkButton
          label={line}
          isPressed={isOpen}
          onClick={() => {
            setOpen(!isOpen);
          }}
        />
      )}{' '}
      <span>{text}</span>
      {isOpen ? <RequestCard requestId={id} isCallAbove={true} /> : null}
    </li>
  );
}

/** The number of calls and their outcomes: “60 calls, 58 allowed, 2 rejected”. */
function describeGroup(
  known: readonly (IApproval | null)[],
  trans: TranslationBundle
): string {
  const count = (of: (approval: IApproval) => boolean): number =>
    known.filter(approval => approval && of(approval)).length;
  const is = (status: IApproval['status']): number =>
    count(approval => approval.status === status);
  const lapsed = is('expired') + is('cancelled') + is('orphaned');
  const failed = count(
    one => one.outcome?.state === 'failed' && !isRejectedAtHub(one)
  );
  const atHub = count(waitsAtHub);
  const refused = count(isRejectedAtHub);
  const allowed = is('approved') - atHub - refused;
  const waiting = is('pending');
  const rejected = is('rejected');
  const parts: [number, string][] = [
    [waiting, trans._n('%1 waiting', '%1 waiting', waiting)],
    [atHub, trans._n('%1 waiting at the Hub', '%1 waiting at the Hub', atHub)],
    [allowed, trans._n('%1 allowed', '%1 allowed', allowed)],
    [rejected, trans._n('%1 rejected', '%1 rejected', rejected)],
    [
      refused,
      trans._n('%1 rejected at the Hub', '%1 rejected at the Hub', refused)
    ],
    [lapsed, trans._n('%1 not decided', '%1 not decided', lapsed)],
    [failed, trans._n('%1 failed', '%1 failed', failed)]
  ];
  return [
    trans._n('%1 call', '%1 calls', known.length),
    ...parts.filter(([number]) => number > 0).map(([, text]) => text)
  ].join(', ');
}

/** Whether a call was allowed here, and then rejected at the Hub. */
function isRejectedAtHub({ outcome }: IApproval): boolean {
  return outcome?.review?.status === 'rejected';
}

/** The output's text about one request; none if the text does not have one line for each. */
function fallbackOf(props: IRequestGroupProps, index: number): string {
  const { fallback, requestIds } = props;
  if (requestIds.length === 1) {
    return fallback;
  }
  const lines = fallback.split('\n');
  return lines.length === requestIds.length ? (lines[index] ?? '') : '';
}

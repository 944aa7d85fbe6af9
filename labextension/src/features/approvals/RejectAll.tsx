/**
 * Rejects all requests that wait or are shown, of whatever tool. There is nothing of the kind that allows them.
 */
import React from 'react';

import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { GuardedCard } from '../../ui/guarded/GuardedCard';
import { useCardContext, useTrans } from '../../ui/context';
import { callLine } from '../../ui/text/callLine';
import { describeLoss } from '../../ui/text/connection';
import { label } from '../../ui/text/visibleText';
import { BatchReject } from './BatchReject';
import { useKeptReason } from './keptReasons';
import { useBatchSending } from './useBatchSending';
import { useFilledIn } from './useFilledIn';

/** The key of the reason; no table has an empty one. */
export const ALL = '';

/** The most tools and failures that are listed. */
const MAX_LINES = 8;

export interface IRejectAllProps {
  /** The pending requests that are shown, oldest first. */
  shown: readonly IApproval[];
  /** All pending requests that match the filter, whether they are rendered or not. */
  all: readonly IApproval[];
  /** Whether a filter chooses: then there is a button for those that are shown, and no form for all. */
  isFiltered: boolean;
  /** Changes each time that a person wants the form for all. */
  wanted: number;
  /** Is told that the form closes, and the focus needs another place. */
  onClose: () => void;
  /** Is told what became of answers that did not count, and what was typed for them. */
  onFailure: (text: string, typed?: string) => void;
}

/**
 * A button and, once it is pressed, a form for the requests that were shown then. Those that end, or that the filter hides,
 * leave it for good; nothing comes in. The form for all closes when a filter begins; whoever wants it while it is open is led to it.
 */
export function RejectAll(props: IRejectAllProps): JSX.Element | null {
  const trans = useTrans();
  const { model } = useCardContext();
  const { shown, onFailure } = props;
  const isFilledIn = useFilledIn();
  const [isForAll, setForAll] = React.useState(false);
  const some = isForAll ? props.all : shown;
  const free = some.filter(({ id }) => !isFilledIn(id));
  const [ids, setIds] = React.useState<ReadonlySet<string> | null>(null);
  const open = (approvals: readonly IApproval[], forAll: boolean): void => {
    const chosenNow = approvals.filter(({ id }) => !isFilledIn(id));
    setForAll(forAll);
    setIds(
      chosenNow.length > 0 ? new Set(chosenNow.map(({ id }) => id)) : null
    );
  };
  const [lastWanted, setLastWanted] = React.useState(props.wanted);
  const isOpenForAll = isForAll && ids !== null;
  const [isBack, setBack] = React.useState(false);
  React.useEffect(() => {
    setBack(false); // the button that appears later must not take the focus
  }, [isBack]);
  const [reason, setReason] = useKeptReason(ALL);
  const chosen = free.filter(({ id }) => ids?.has(id));
  const { isBusy, failures, send } = useBatchSending(onFailure);
  if (props.wanted !== lastWanted) {
    setLastWanted(props.wanted);
    if (!isOpenForAll) {
      open(props.all, true);
    }
  } else if (isOpenForAll && props.isFiltered) {
    setIds(null);
    setForAll(false);
  } else if (ids !== null && chosen.length > 0 && chosen.length < ids.size) {
    setIds(new Set(chosen.map(({ id }) => id)));
  }
  const isOver = ids !== null && chosen.length === 0;
  const end = React.useRef<() => void>();
  end.current = () => {
    setIds(null);
    setForAll(false);
    setReason('');
    onFailure(
      trans.__(
        'Nothing is left to reject: these requests have ended or are hidden.'
      ),
      reason.trim()
    );
  };
  React.useLayoutEffect(() => {
    if (isOver) {
      end.current?.();
    }
  }, [isOver]);
  const close = (isCancelled: boolean): void => {
    setIds(null);
    setForAll(false);
    setBack(isCancelled);
    props.onClose();
  };

  if (ids === null) {
    return (
      <>
        <Failures shown={shown} failures={failures} />
        {props.isFiltered &&
        free.length > 1 &&
        describeLoss(model.connection, trans) === null ? (
          <div className="jp-AgentBox-rejectAll">
            <PersonButton
              label={trans._n(
                'Reject all shown (%1)…',
                'Reject all shown (%1)…',
                free.length
              )}
              isDisabled={isBusy}
              isFocused={isBack}
              onActivate={() => {
                open(shown, false);
              }}
            />
          </div>
        ) : null}
      </>
    );
  }
  return (
    <Form
      key={`${isForAll} ${props.wanted}`} // it takes the focus anew
      chosen={chosen}
      others={some.length - chosen.length}
      isForAll={isForAll}
      isBusy={isBusy}
      onReject={answer => {
        close(false);
        return send(
          chosen.filter(({ id }) => !isFilledIn(id)),
          answer
        );
      }}
      onCancel={() => {
        close(true);
      }}
    />
  );
}

interface IFormProps {
  chosen: readonly IApproval[];
  /** How many requests are shown, or wait, that are not included. */
  others: number;
  /** Whether the form is for all that waited, and not only for those that were shown. */
  isForAll: boolean;
  isBusy: boolean;
  onReject: React.ComponentProps<typeof BatchReject>['onReject'];
  onCancel: () => void;
}

function Form(props: IFormProps): JSX.Element {
  const trans = useTrans();
  const { model } = useCardContext();
  const { chosen, others, isForAll } = props;
  const titleId = React.useId();
  const loss = describeLoss(model.connection, trans);
  return (
    <GuardedCard
      className="jp-mod-waiting jp-AgentBox-rejectAll"
      isGuarded={true}
      data-status="pending"
      aria-labelledby={titleId}
    >
      <div id={titleId} className="jp-AgentBox-name">
        {trans._n('Reject %1 request', 'Reject %1 requests', chosen.length)}
      </div>
      <Tools approvals={chosen} />
      <p className="jp-AgentBox-note">
        {isForAll
          ? trans.__(
              'These are all requests that were waiting when you opened this form. Requests that arrive later are not included.'
            )
          : trans.__(
              'These requests were shown when you opened this form. Requests that arrive or are shown later are not included.'
            )}
      </p>
      <div role="status">
        {others > 0 ? (
          <p className="jp-AgentBox-note">
            {isForAll
              ? trans._n(
                  '%1 other request is waiting now, and is not included.',
                  '%1 other requests are waiting now, and are not included.',
                  others
                )
              : trans._n(
                  '%1 other request is shown now, and is not included.',
                  '%1 other requests are shown now, and are not included.',
                  others
                )}
          </p>
        ) : null}
      </div>
      {loss ? (
        <p className="jp-AgentBox-note" role="status">
          {loss}
        </p>
      ) : (
        <BatchReject
          count={chosen.length}
          reasonKey={ALL}
          isBusy={props.isBusy}
          describedBy={titleId}
          onReject={props.onReject}
          onCancel={props.onCancel}
        />
      )}
    </GuardedCard>
  );
}

/** How many requests there are of each tool, and from how many notebooks. */
function Tools(props: { approvals: readonly IApproval[] }): JSX.Element {
  const trans = useTrans();
  const { approvals } = props;
  const counts = new Map<string, number>();
  for (const { call } of approvals) {
    const name = qualifiedName(call);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const more = counts.size - MAX_LINES;
  const notebooks = new Set(approvals.map(({ call }) => call.notebook_path));
  return (
    <ul className="jp-AgentBox-rejectTools">
      {[...counts].slice(0, MAX_LINES).map(([name, count]) => (
        <li key={name}>
          {label(name)} × {count}
        </li>
      ))}
      {more > 0 ? (
        <li>{trans._n('and %1 more tool', 'and %1 more tools', more)}</li>
      ) : null}
      {notebooks.size > 1 ? (
        <li>
          {trans._n('from %1 notebook', 'from %1 notebooks', notebooks.size)}
        </li>
      ) : null}
    </ul>
  );
}

interface IFailuresProps {
  shown: readonly IApproval[];
  failures: ReadonlyMap<string, string>;
}

/** What was not rejected and still waits, and why. */
function Failures({ shown, failures }: IFailuresProps): JSX.Element {
  const trans = useTrans();
  const left = shown.filter(({ id }) => failures.has(id));
  const more = left.length - MAX_LINES;
  return (
    <div role="alert">
      {left.length > 0 ? (
        <ul className="jp-AgentBox-error">
          {left.slice(0, MAX_LINES).map(approval => (
            <li key={approval.id}>
              <code>{callLine(approval, trans)}</code>{' '}
              {failures.get(approval.id)}
            </li>
          ))}
          {more > 0 ? (
            <li>
              {trans._n('and %1 more request', 'and %1 more requests', more)}
            </li>
          ) : null}
        </ul>
      ) : null}
    </div>
  );
}

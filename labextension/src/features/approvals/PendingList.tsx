/**
 * The requests that wait, oldest first, by notebook.
 */
import React from 'react';

import { useCardContext, useTrans } from '../../ui/context';
import type { IApproval } from '../../api/protocol';
import { qualifiedName } from '../../api/protocol';
import { label } from '../../ui/text/visibleText';
import { RequestCard } from '../../ui/card/RequestCard';
import { useSignal } from '../../ui/hooks/useSignal';
import { LinkButton } from '../../ui/components/VisibleText';

/** Cards that are made at first; a thousand at once would make the page wait. */
const MAX_SHOWN = 50;

export interface IPendingListProps {
  /** The id of a request that is shown even if many older ones wait. */
  wanted: string | null;
}

export function PendingList(props: IPendingListProps): JSX.Element {
  const trans = useTrans();
  const { wanted } = props;
  const { model } = useCardContext();
  useSignal(model.changed);
  const [limit, setLimit] = React.useState(MAX_SHOWN);
  const [notice, setNotice] = React.useState('');
  const { pending } = model;
  const groups = byNotebook(
    pending.filter(({ id }, index) => index < limit || id === wanted)
  );
  const section = React.useRef<HTMLElement>(null);
  useFocusInList(section);

  return (
    <section
      ref={section}
      tabIndex={-1}
      className="jp-AgentBox-pending"
      aria-label={trans.__('Approval requests')}
    >
      <ConnectionNote />
      <Notice
        text={notice}
        onClose={() => {
          setNotice('');
        }}
      />
      {pending.length === 0 && model.connection === 'connected' ? (
        <Empty />
      ) : null}
      {[...groups].map(([path, approvals]) => (
        <Group
          key={path}
          path={path}
          approvals={approvals}
          onFailure={setNotice}
        />
      ))}
      {pending.length > limit ? (
        <LinkButton
          label={trans._n(
            'Show %1 more (%2 in total)',
            'Show %1 more (%2 in total)',
            Math.min(MAX_SHOWN, pending.length - limit),
            pending.length
          )}
          onClick={() => {
            setLimit(limit + MAX_SHOWN);
          }}
        />
      ) : null}
    </section>
  );
}

function ConnectionNote(): JSX.Element | null {
  const { model } = useCardContext();
  const trans = useTrans();
  const texts = {
    connecting: null,
    connected: null,
    unreachable: trans.__(
      'The server cannot be reached. This list may be out of date.'
    ),
    forbidden: trans.__(
      'The server refused to list the requests. Log in again.'
    ),
    failing: trans.__(
      'The server could not list the requests; its log says why. This list may be out of date.'
    ),
    absent: trans.__(
      'The server extension is not enabled: run “jupyter server extension enable jupyter_agentbox” and restart the server.'
    )
  };
  const text = texts[model.connection];
  return text ? <p className="jp-AgentBox-error">{text}</p> : null;
}

function Empty(): JSX.Element {
  const trans = useTrans();
  return (
    <div className="jp-AgentBox-empty">
      <p>{trans.__('No requests are waiting.')}</p>
      <p>
        {trans.__(
          'When notebook code calls a tool, the request appears here and under its cell until you allow, edit or reject it.'
        )}
      </p>
    </div>
  );
}

interface INoticeProps {
  text: string;
  onClose: () => void;
}

/** Why an answer was not taken, after its card has left the list. */
function Notice({ text, onClose }: INoticeProps): JSX.Element {
  const trans = useTrans();
  return (
    <div role="alert">
      {text ? (
        <p className="jp-AgentBox-error">
          {text} <LinkButton label={trans.__('Close')} onClick={onClose} />
        </p>
      ) : null}
    </div>
  );
}

interface IGroupProps {
  path: string;
  approvals: readonly IApproval[];
  /** Hears of an answer that came too late, with the name of its request. */
  onFailure: (text: string) => void;
}

function Group(props: IGroupProps): JSX.Element {
  const trans = useTrans();
  const { path, approvals, onFailure } = props;
  const { model } = useCardContext();
  const title = path ? label(path) : trans.__('Outside a notebook');
  const headingId = React.useId();
  return (
    <section className="jp-AgentBox-group">
      <h4 id={headingId} title={title}>
        <bdi>{title}</bdi>
      </h4>
      <ul role="list" aria-labelledby={headingId}>
        {approvals.map(approval => (
          <li
            key={approval.id}
            className="jp-AgentBox-item"
            aria-label={label(qualifiedName(approval.call))}
          >
            <RequestCard
              requestId={approval.id}
              hasLink={true}
              onFailure={text => {
                const { approval: present } = model.get(approval.id);
                if (present?.status !== 'pending') {
                  onFailure(`${label(qualifiedName(approval.call))}: ${text}`);
                }
              }}
            />
          </li>
        ))}
      </ul>
    </section>
  );
}

/**
 * When the request with the focus leaves the list, the card that takes its place gets the focus: a card, not a button,
 * so that a key that comes late decides nothing.
 */
function useFocusInList(section: React.RefObject<HTMLElement>): void {
  const cards = (): HTMLElement[] => [
    ...(section.current?.querySelectorAll<HTMLElement>('.jp-AgentBox-card') ??
      [])
  ];
  const before = cards().findIndex(card =>
    card.contains(document.activeElement)
  );
  React.useLayoutEffect(() => {
    if (before >= 0 && !section.current?.contains(document.activeElement)) {
      const rest = cards();
      const next = rest[Math.min(before, rest.length - 1)] ?? section.current;
      next?.focus({ preventScroll: true });
    }
  });
}

/** Requests by notebook; the notebook with the oldest request comes first. */
export function byNotebook(
  approvals: readonly IApproval[]
): Map<string, IApproval[]> {
  const groups = new Map<string, IApproval[]>();
  for (const approval of approvals) {
    const path = approval.call.notebook_path ?? '';
    groups.set(path, [...(groups.get(path) ?? []), approval]);
  }
  return groups;
}

/**
 * The requests at the Hub service that the user can decide, each with a button that opens the service's page.
 *
 * Nothing is decided here. This page is that of the user's own server; the service takes an answer from its own page only.
 */
import React from 'react';

import type { IHubRequest } from '../../api/protocol';
import type { IHubRequestsModel } from '../../internalTokens';
import { Countdown } from '../../ui/card/Countdown';
import { VisibleText } from '../../ui/components/VisibleText';
import { useTrans } from '../../ui/context';
import { PersonButton } from '../../ui/guarded/PersonButton';
import { useSignal } from '../../ui/hooks/useSignal';
import { openPage } from '../../ui/question/Address';
import { label } from '../../ui/text/visibleText';
import { localeOf } from '../../ui/text/language';

const CLOCK = { hour: '2-digit', minute: '2-digit' } as const;

export interface IHubRequestListProps {
  hub: IHubRequestsModel;
}

export function HubRequestList({ hub }: IHubRequestListProps): JSX.Element {
  const trans = useTrans();
  useSignal(hub.changed);
  const { requests, total, url, problem } = hub.list;
  return (
    <section
      className="jp-AgentBox-hubRequests"
      aria-label={trans.__('Waiting for you at the Hub')}
    >
      {problem ? (
        <p className="jp-AgentBox-hubProblem" role="status" title={problem}>
          {total > 0
            ? trans.__(
                'The Hub service is not answering, so this may be out of date.'
              )
            : trans.__(
                'The Hub service is not answering, so it is not known what waits for you there.'
              )}
        </p>
      ) : null}
      <ul role="list">
        {requests.map(request => (
          <li key={request.id} className="jp-AgentBox-hubRequest">
            <Row request={request} now={() => hub.now()} />
          </li>
        ))}
      </ul>
      {url && total > 1 ? (
        <PersonButton
          isLink
          label={trans._n(
            'Show all %1 at the Hub',
            'Show all %1 at the Hub',
            total
          )}
          onActivate={() => {
            openPage(url);
          }}
        />
      ) : null}
    </section>
  );
}

interface IRowProps {
  request: IHubRequest;
  now: () => number;
}

function Row({ request, now }: IRowProps): JSX.Element {
  const trans = useTrans();
  const { asked_by: asker, created_at: created, expires_at: end } = request;
  const since = new Date(created);
  const name = `${request.server}.${request.tool}`;
  return (
    <>
      <div className="jp-AgentBox-hubRequestName">
        <VisibleText text={label(name, 200)} />
      </div>
      <div className="jp-AgentBox-hubRequestFacts">
        <span>{trans.__('%1 asks', label(asker, 60))}</span>
        <time dateTime={created} title={since.toLocaleString(localeOf(trans))}>
          {trans.__(
            'since %1',
            since.toLocaleTimeString(localeOf(trans), CLOCK)
          )}
        </time>
        {end ? <Countdown expiresAt={end} now={now} /> : null}
      </div>
      <PersonButton
        label={trans.__('Review at the Hub')}
        name={trans.__(
          'Review at the Hub, in a new tab: %1, %2 asks',
          label(name, 60),
          label(asker, 60)
        )}
        onActivate={() => {
          openPage(request.url);
        }}
      />
    </>
  );
}

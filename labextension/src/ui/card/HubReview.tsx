/**
 * The pending review of a running call at the Hub: who is asked, who has approved, and until when.
 */
import React from 'react';

import type { IHubReview } from '../../api/protocol';
import { useNameOf, useTrans } from '../context';
import { PersonButton } from '../guarded/PersonButton';
import { openPage } from '../question/Address';
import { countVotes, whoIsAsked } from '../text/hubReview';
import { Countdown } from './Countdown';

export interface IHubReviewProps {
  review: IHubReview;
  now: () => number;
}

/** Shows the state of the review. People answer on the service’s own page, not here. */
export function HubReview({ review, now }: IHubReviewProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { groups, expires_at: end, url } = review;
  return (
    <div
      className="jp-AgentBox-hubReview"
      role="group"
      aria-label={trans.__('Approval at the Hub')}
    >
      <span role="status">
        {trans.__('Asked at the Hub: %1.', whoIsAsked(review, trans))}{' '}
        {groups.length > 0 ? countVotes(review, nameOf, trans) : null}
      </span>
      {end ? <Countdown expiresAt={end} now={now} /> : null}
      {url ? (
        <PersonButton
          isLink
          label={
            groups.length > 0
              ? trans.__('Show it at the Hub')
              : trans.__('Review at the Hub')
          }
          onActivate={() => {
            openPage(new URL(url, document.baseURI).href);
          }}
        />
      ) : null}
    </div>
  );
}

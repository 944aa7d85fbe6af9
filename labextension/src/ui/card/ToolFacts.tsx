/**
 * The facts about a tool and a request besides the arguments. The tool's own words are marked as such.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { useNameOf, useTrans } from '../context';
import { isChange } from '../../api/protocol';
import type {
  IApproval,
  IAsker,
  IDecidingRule,
  IQuestionRecord
} from '../../api/protocol';
import type { IRulePlace } from '../../api/rules';
import { firstSentence, isOneSentence } from '../text/firstSentence';
import { describeRisk, isOwn } from '../text/risk';
import type { Risk } from '../text/risk';
import { describeUse } from '../text/grants';
import { describeReview, whoApproved, whoIsAsked } from '../text/hubReview';
import type { NameOf } from '../text/reviewers';
import { decidedBy } from '../text/summary';
import { label } from '../text/visibleText';
import { TextBlock, VisibleText } from '../components/VisibleText';
import { RiskMark } from './RiskMark';
import { localeOf } from '../text/language';

/** The number of characters of a description's first sentence that are shown. */
const MAX_SENTENCE = 300;

export interface IRiskLineProps {
  approval: IApproval;
}

/** The risk of the call: what the server claims, unchecked, or that it claims nothing. */
export function RiskLine({ approval }: IRiskLineProps): JSX.Element {
  const trans = useTrans();
  const { risk, text, isClaim } = describeRisk(approval, trans);
  const isOpen = approval.tool.annotations['openWorldHint'] === true;
  return (
    <span className="jp-AgentBox-hints" title={explain(risk, isClaim, trans)}>
      {isClaim ? <span>{trans.__('Server says:')}</span> : null}
      <RiskMark risk={risk} text={text} />
      {isOpen ? (
        <span className="jp-AgentBox-hint">
          {trans.__('accesses external systems')}
        </span>
      ) : null}
    </span>
  );
}

function explain(
  risk: Risk,
  isClaim: boolean,
  trans: TranslationBundle
): string | undefined {
  if (isClaim) {
    return trans.__('Claimed by the server; not verified.');
  }
  return risk === 'unsaid'
    ? trans.__('It may change or delete anything that it can reach.')
    : undefined;
}

/** The first sentence of the description, marked as the server's if it is. */
export function Says({ approval }: IRiskLineProps): JSX.Element | null {
  const trans = useTrans();
  const { description } = approval.tool;
  const sentence = label(firstSentence(description), MAX_SENTENCE);
  if (!sentence) {
    return null;
  }
  return (
    <p className="jp-AgentBox-says">
      {isOwn(approval, trans) ? (
        <VisibleText text={sentence} />
      ) : (
        <>
          <span>{trans.__('Server’s words:')}</span> “
          <VisibleText text={sentence} />”
        </>
      )}
    </p>
  );
}

/** The words that the author of a rule has for the people whom the rule asks. */
export function RuleSays({ approval }: IRiskLineProps): JSX.Element | null {
  const trans = useTrans();
  const { effect, reason, layer } = approval.evaluation;
  const words = label(reason ?? '', MAX_SENTENCE);
  return effect === 'ask' && layer !== 'session' && words ? (
    <p className="jp-AgentBox-says">
      <span>{trans.__('Rule’s words:')}</span> “<VisibleText text={words} />”
    </p>
  ) : null;
}

/** Says of a new or changed tool that nobody has reviewed it. */
export function Mark({ approval }: IRiskLineProps): JSX.Element | null {
  const trans = useTrans();
  const { mark } = approval.tool;
  return mark ? (
    <p className="jp-AgentBox-warning" role="note">
      {mark === 'new'
        ? trans.__(
            'This tool is new since somebody looked at the tools of its server.'
          )
        : trans.__('This tool has changed since somebody looked at it.')}
    </p>
  ) : null;
}

export interface IFactsProps {
  approval: IApproval;
  /** Whether the first sentence of the description is shown elsewhere. */
  isSaid?: boolean;
}

/** The description and the record, behind a disclosure. */
export function Facts(props: IFactsProps): JSX.Element {
  const trans = useTrans();
  const { approval } = props;
  const { description } = approval.tool;
  const isSaid =
    props.isSaid === true &&
    isOneSentence(description) &&
    description.length <= MAX_SENTENCE;
  return (
    <>
      {description && !isSaid ? (
        <details className="jp-AgentBox-details">
          <summary>
            {isOwn(approval, trans)
              ? trans.__('Description')
              : trans.__('Server’s description')}
          </summary>
          <TextBlock text={description} name={trans.__('Description')} />
        </details>
      ) : null}
      <details className="jp-AgentBox-details">
        <summary>{trans.__('Details')}</summary>
        <Record {...props} />
      </details>
    </>
  );
}

function Record({ approval }: IFactsProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { call, decision, outcome } = approval;
  const review = outcome?.review;
  const rows: [string, string | null | undefined][] = [
    [trans.__('Requested'), time(approval.created_at, trans)],
    [
      approval.evaluation.effect === 'ask'
        ? trans.__('Why you were asked')
        : trans.__('Why you were not asked'),
      isChange(call) ? null : whyOf(approval, nameOf, trans) // nobody is asked
    ],
    [
      trans.__('Called in the panel by'),
      call.person && nameOf({ ...PERSON, reviewer: call.person })
    ],
    [trans.__('Asked by'), askedBy(call.askers ?? [], nameOf, trans)],
    [trans.__('Notebook'), call.notebook_path],
    [trans.__('Cell'), call.cell_id],
    [trans.__('Kernel'), call.kernel_id],
    [trans.__('Agent thread'), call.thread_id],
    [trans.__('Decided by'), decision && decidedBy(approval, nameOf, trans)],
    [trans.__('Rule'), placeOf(decision?.rule)],
    [trans.__('Decided'), decision && time(decision.decided_at, trans)],
    [reasonName(approval, trans), decision?.reason],
    ...(outcome?.questions ?? []).map((question): [string, string] => [
      trans.__('The server asked'),
      describeQuestion(question, nameOf, trans)
    ]),
    [trans.__('Asked at the Hub'), review && whoIsAsked(review, trans)],
    [
      trans.__('Approved at the Hub by'),
      review && whoApproved(review, nameOf, trans)
    ],
    [
      trans.__('At the Hub'),
      review?.status === 'approved' || !review
        ? null
        : describeReview(review, nameOf, trans)
    ],
    [
      trans.__('Finished'),
      outcome?.finished_at && time(outcome.finished_at, trans)
    ],
    [trans.__('Error'), outcome?.error],
    [trans.__('Request'), approval.id],
    [trans.__('Digest'), call.digest]
  ];
  return (
    <dl className="jp-AgentBox-record">
      {rows.map(([name, value], index) =>
        value ? (
          <div key={index}>
            <dt>{name}</dt>
            <dd>
              <VisibleText text={value} />
            </dd>
          </div>
        ) : null
      )}
    </dl>
  );
}

/** Somebody who made a call with the browser. */
const PERSON = {
  reviewer_kind: 'user' as const,
  reviewer_name: null,
  via: 'browser' as const
};

/** Who may have made the call: any of several people who use a kernel. */
export function askedBy(
  askers: readonly IAsker[],
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const names = askers.map(asker =>
    asker.name
      ? nameOf({
          reviewer: asker.name,
          reviewer_kind: asker.kind,
          reviewer_name: asker.display_name,
          via: asker.via,
          token_note: asker.token_note
        })
      : asker.via === 'api_token'
        ? trans.__('a program with a token')
        : trans.__('somebody unknown')
  );
  return [...new Set(names)].reduce(
    (some, name) => (some ? trans.__('%1 or %2', some, name) : name),
    ''
  );
}

/** What a server asked while its tool ran, and the answer. */
function describeQuestion(
  { message, url, action, reviewer }: IQuestionRecord,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const asked = url === null ? `“${message}”` : `“${message}” ${url}`;
  if (reviewer === null) {
    return trans.__('%1 Nobody answered.', asked);
  }
  const name = nameOf({ ...PERSON, reviewer });
  switch (action) {
    case 'accept':
      return trans.__('%1 Answered by %2.', asked, name);
    case 'decline':
      return trans.__('%1 Declined by %2.', asked, name);
    case 'cancel':
      return trans.__('%1 Closed by %2.', asked, name);
  }
}

function reasonName(approval: IApproval, trans: TranslationBundle): string {
  if (approval.status === 'rejected') {
    return trans.__('Reason');
  }
  return approval.decision?.tell
    ? trans.__('Comment, shown to the code')
    : trans.__('Comment');
}

/** Why a person was asked, or was not. */
function whyOf(
  approval: IApproval,
  nameOf: NameOf,
  trans: TranslationBundle
): string {
  const evaluation: IApproval['evaluation'] & IRulePlace = approval.evaluation;
  const { effect, rule, file, line, grant, reason } = evaluation;
  if (grant) {
    const use = describeUse(grant, nameOf, trans);
    return effect === 'deny'
      ? trans.__('Rejected by %1.', use)
      : trans.__('Allowed by %1.', use);
  }
  if (rule) {
    const effects = {
      allow: trans.__('Rule “%1” allows this call.', rule),
      ask: trans.__('Rule “%1” asks for approval.', rule),
      deny: trans.__('Rule “%1” denies this call.', rule)
    };
    // An older server does not say where its rules stand.
    const place = placeOf({ rule, file: file ?? null, line: line ?? null });
    const why = place ? `${effects[effect]} (${place})` : effects[effect];
    // Of a rejection, they are the reason, which has a line of its own.
    const words = effect === 'deny' ? '' : label(reason ?? '', MAX_SENTENCE);
    return words ? trans.__('%1 Its words: “%2”', why, words) : why;
  }
  return trans.__(
    'No rule covers this call, nor does an earlier answer, such as one for an hour.'
  );
}

/** The location of a rule; empty if it is in no file, or there is none. */
function placeOf(rule: IDecidingRule | null | undefined): string {
  return rule?.file ? `${rule.file}:${rule.line ?? 1}` : '';
}

function time(iso: string, trans: TranslationBundle): string {
  return new Date(iso).toLocaleString(localeOf(trans));
}

/**
 * What is known about a tool and a request beside the arguments. The tool's own words are marked as such.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { useNameOf, useTrans } from '../context';
import type { IJsonObject } from '../../api/json';
import type { IApproval } from '../../api/protocol';
import { decidedBy } from '../text/summary';
import { TextBlock, VisibleText } from '../components/VisibleText';

export interface IHintsProps {
  annotations: IJsonObject;
}

/** The server's annotations: claims that nothing checks. */
export function Hints({ annotations }: IHintsProps): JSX.Element | null {
  const trans = useTrans();
  const hints: [string, string][] = [];
  const readOnly = annotations['readOnlyHint'];
  const destructive = annotations['destructiveHint'];
  if (readOnly === true) {
    hints.push(['readonly', trans.__('read-only')]);
  } else if (readOnly === false && destructive === false) {
    hints.push(['writes', trans.__('adds or changes data')]);
  }
  if (destructive === true && readOnly !== true) {
    hints.push(['destructive', trans.__('destructive')]);
  }
  if (annotations['openWorldHint'] === true) {
    hints.push(['open', trans.__('accesses external systems')]);
  }
  if (hints.length === 0) {
    return null;
  }
  return (
    <span
      className="jp-AgentBox-hints"
      title={trans.__('Claimed by the server; not verified.')}
    >
      <span>{trans.__('Server says:')}</span>
      {hints.map(([kind, text]) => (
        <span key={kind} className={`jp-AgentBox-hint jp-mod-${kind}`}>
          {text}
        </span>
      ))}
    </span>
  );
}

export interface IFactsProps {
  approval: IApproval;
}

/** The description and the record, behind a disclosure. */
export function Facts(props: IFactsProps): JSX.Element {
  const trans = useTrans();
  const { approval } = props;
  const { tool } = approval;
  return (
    <>
      {tool.description ? (
        <details className="jp-AgentBox-details">
          <summary>{trans.__('Server’s description')}</summary>
          <TextBlock text={tool.description} name={trans.__('Description')} />
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
  const rows: [string, string | null | undefined][] = [
    [trans.__('Requested'), time(approval.created_at)],
    [trans.__('Why approval is needed'), reasonToAsk(approval, trans)],
    [trans.__('Notebook'), call.notebook_path],
    [trans.__('Cell'), call.cell_id],
    [trans.__('Kernel'), call.kernel_id],
    [trans.__('Agent thread'), call.thread_id],
    [trans.__('Decided by'), decision && decidedBy(approval, nameOf, trans)],
    [trans.__('Decided'), decision && time(decision.decided_at)],
    [trans.__('Reason'), decision?.reason],
    [trans.__('Finished'), outcome?.finished_at && time(outcome.finished_at)],
    [trans.__('Error'), outcome?.error],
    [trans.__('Request'), approval.id],
    [trans.__('Digest'), call.digest]
  ];
  return (
    <dl className="jp-AgentBox-record">
      {rows.map(([name, value]) =>
        value ? (
          <div key={name}>
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

function reasonToAsk(approval: IApproval, trans: TranslationBundle): string {
  const { effect, rule } = approval.evaluation;
  if (rule) {
    const effects = {
      allow: trans.__('Rule “%1” allows this call.', rule),
      ask: trans.__('Rule “%1” asks for approval.', rule),
      deny: trans.__('Rule “%1” denies this call.', rule)
    };
    return effects[effect];
  }
  return trans.__('No rule covers this call, so it needs approval.');
}

function time(iso: string): string {
  return new Date(iso).toLocaleString();
}

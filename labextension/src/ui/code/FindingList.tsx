/**
 * The findings of the static analysis, with their lines.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { LinkButton } from '../components/VisibleText';
import { useTrans } from '../context';
import { label } from '../text/visibleText';
import type { IFinding, Severity } from './findings';

export interface IFindingListProps {
  findings: readonly IFinding[];
  /** Shows a line of the code. */
  onReveal?: (line: number) => void;
}

export function FindingList(props: IFindingListProps): JSX.Element | null {
  const trans = useTrans();
  const { findings, onReveal } = props;
  if (findings.length === 0) {
    return null;
  }
  return (
    <ul
      className="jp-AgentBox-findings"
      aria-label={trans.__('Findings of the static analysis')}
    >
      {findings.map((finding, index) => (
        <li key={index} className={`jp-mod-${finding.severity}`}>
          <span className="jp-AgentBox-severity">
            {describeSeverity(finding.severity, trans)}
          </span>{' '}
          <Place line={finding.line} onReveal={onReveal} />{' '}
          <span>{label(finding.message, 300)}</span>{' '}
          <span className="jp-AgentBox-findingCode">
            {label(finding.code, 20)}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Place(props: {
  line: number;
  onReveal?: (line: number) => void;
}): JSX.Element {
  const trans = useTrans();
  const { line, onReveal } = props;
  const text = trans.__('line %1', line);
  return onReveal ? (
    <LinkButton
      label={text}
      onClick={() => {
        onReveal(line);
      }}
    />
  ) : (
    <span>{text}</span>
  );
}

function describeSeverity(
  severity: Severity,
  trans: TranslationBundle
): string {
  const texts: Record<Severity, string> = {
    info: trans.__('Note'),
    warning: trans.__('Warning'),
    error: trans.__('Error')
  };
  return texts[severity];
}

/**
 * The risk of a call: a symbol and a word, so that nobody has to distinguish colors.
 */
import React from 'react';

import type { Risk } from '../text/risk';

/** An eye, a pencil, a question mark, a warning sign. */
const SIGNS: Record<Risk, string> = {
  readonly:
    'M8 3C4.5 3 1.7 5.1.5 8c1.2 2.9 4 5 7.5 5s6.3-2.1 7.5-5C14.3 5.1 11.5 3 8 3zm0 8.4a3.4 3.4 0 1 1 0-6.8 3.4 3.4 0 0 1 0 6.8zM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4z',
  changes:
    'M11.6 1.2l3.2 3.2-1.7 1.7-3.2-3.2zM9 3.8L12.2 7l-7 7L1.5 14.5 2 10.8z',
  unsaid:
    'M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1zM7.2 11.2h1.6v1.6H7.2zM8 3.4c1.7 0 3 1.2 3 2.8 0 1.1-.6 1.7-1.3 2.2-.7.5-.9.8-.9 1.7H7.2c0-1.6.5-2.2 1.3-2.8.6-.5.9-.7.9-1.2 0-.8-.6-1.3-1.4-1.3S6.6 5.3 6.6 6.2H5c0-1.7 1.3-2.8 3-2.8z',
  destructive: 'M8 1l7.5 13.5H.5zM7.2 6v4.3h1.6V6zM7.2 11.4V13h1.6v-1.6z'
};

export interface IRiskMarkProps {
  risk: Risk;
  text: string;
}

export function RiskMark({ risk, text }: IRiskMarkProps): JSX.Element {
  return (
    <span className={`jp-AgentBox-risk jp-mod-${risk}`}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <path fill="currentColor" fillRule="evenodd" d={SIGNS[risk]} />
      </svg>
      {text}
    </span>
  );
}

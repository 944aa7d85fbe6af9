/**
 * What somebody had typed in a form whose request ended meanwhile: to read and to copy.
 */
import React from 'react';

import { useTrans } from '../context';

/** The most lines that are shown without scrolling. */
const MAX_ROWS = 8;

export function TypedText({ text }: { text: string }): JSX.Element | null {
  const trans = useTrans();
  // Under a cell, the notebook's shortcuts would take the keys that select and copy.
  return text ? (
    <label className="jp-AgentBox-typed" data-lm-suppress-shortcuts="true">
      <span>{trans.__('What you had typed, which was not sent:')}</span>
      <textarea
        className="jp-AgentBox-field"
        readOnly
        rows={Math.min(MAX_ROWS, text.split('\n').length)}
        value={text}
      />
    </label>
  ) : null;
}

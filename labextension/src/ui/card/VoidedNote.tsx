/**
 * Says why a request asks although a lasting answer would have covered it, and shows what changed.
 */
import React from 'react';

import type { IApproval, IToolDescription } from '../../api/protocol';
import { Difference } from '../code/Difference';
import { useNameOf, useTrans } from '../context';
import { describeUse } from '../text/grants';

export interface IVoidedNoteProps {
  approval: IApproval;
}

export function VoidedNote({ approval }: IVoidedNoteProps): JSX.Element | null {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { voided } = approval.evaluation;
  if (!voided) {
    return null;
  }
  const grant = describeUse(voided.grant, nameOf, trans);
  const before = voided.before && textOf(voided.before);
  const after = textOf(approval.tool);
  return (
    <div className="jp-AgentBox-voided">
      <p className="jp-AgentBox-warning" role="note">
        {voided.void === 'server'
          ? trans.__(
              'This asks again, in spite of %1: the server is now started or reached differently.',
              grant
            )
          : trans.__(
              'This asks again, in spite of %1: the server now describes the tool differently.',
              grant
            )}
      </p>
      {voided.server ? (
        <Difference
          caption={trans.__('How the server is started or reached now')}
          before={voided.server.before}
          after={voided.server.now}
        />
      ) : null}
      {before && before !== after ? (
        <Difference
          caption={trans.__('What the server says now')}
          before={before}
          after={after}
        />
      ) : null}
    </div>
  );
}

/** Everything that a server says about a tool, line by line. */
function textOf(tool: IToolDescription): string {
  return [
    tool.title,
    tool.description,
    JSON.stringify(tool.annotations, null, 1),
    JSON.stringify(tool.input_schema, null, 1),
    JSON.stringify(tool.output_schema ?? null, null, 1)
  ].join('\n');
}

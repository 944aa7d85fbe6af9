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
      {voided.before ? (
        <Difference
          caption={trans.__('What the server says now')}
          before={textOf(voided.before)}
          after={textOf(approval.tool)}
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
    JSON.stringify(tool.input_schema, null, 1)
  ].join('\n');
}

/**
 * Writes a person's edits into the code of the calling cell, once they have seen the changes.
 */
import React from 'react';

import { useCardContext, useTrans } from '../context';
import type { IApproval, ICellUpdate } from '../../api/protocol';
import { isCodeRun } from '../../api/protocol';
import { useKeptFocus } from '../hooks/useKeptFocus';
import { useSignal } from '../hooks/useSignal';
import { Difference } from '../code/Difference';
import { LinkButton, VisibleText } from '../components/VisibleText';

/**
 * Whether the code of a cell may have arguments other than those that ran, and ran well: what failed is no better than
 * what the code says.
 */
export function mayUpdateCell({ call, decision, outcome }: IApproval): boolean {
  return (
    outcome?.state === 'succeeded' &&
    Boolean(decision?.arguments) &&
    call.cell_id !== null &&
    !call.thread_id &&
    !isCodeRun(call)
  );
}

/** The states: an offer, a preview of the changes, a reason why nothing can change, or done. */
type State =
  | { kind: 'offered' | 'asking' | 'done' }
  | { kind: 'refused'; reason: string }
  | { kind: 'proposed'; before: string; after: string };

/** An offer to update the cell's code; nothing if the cell is not open on this page. */
export function CellUpdate({
  approval
}: {
  approval: IApproval;
}): JSX.Element | null {
  const trans = useTrans();
  const { origins, proposeUpdate, leave } = useCardContext();
  const root = React.useRef<HTMLDivElement>(null);
  useKeptFocus(root);
  const [state, setState] = React.useState<State>({ kind: 'offered' });
  useSignal(origins.kernelsChanged); // the notebooks of a page that was just loaded have no kernels yet
  const cell = origins.cellOf(approval);
  const isDone = state.kind === 'done';
  React.useEffect(() => {
    const card = root.current?.closest<HTMLElement>('.jp-AgentBox-card');
    if (isDone && card?.contains(document.activeElement)) {
      leave?.(card); // as after a decision, Shift+Enter is meant for the cell where the person was
    }
  }, [isDone, leave]);
  if (!proposeUpdate || !cell) {
    return null;
  }

  const ask = async (): Promise<void> => {
    const before = cell.source;
    setState({ kind: 'asking' });
    setState(stateOf(before, await proposal(proposeUpdate, approval, before)));
  };
  const update = (before: string, after: string): void => {
    const now = origins.cellOf(approval); // it may have been moved or deleted while its change was shown
    if (now?.replace(before, after)) {
      setState({ kind: 'done' });
    } else {
      setState({
        kind: 'refused',
        reason:
          now?.isEditable === false
            ? trans.__('The cell cannot be edited.')
            : trans.__('The cell has changed meanwhile.')
      });
    }
  };

  return (
    <div
      ref={root}
      className="jp-AgentBox-cellUpdate"
      data-lm-suppress-shortcuts="true"
      tabIndex={-1}
    >
      {state.kind === 'proposed' ? (
        <Proposal
          {...state}
          place={origins.describe(approval)}
          onUpdate={() => {
            update(state.before, state.after);
          }}
          onCancel={() => {
            setState({ kind: 'offered' });
          }}
        />
      ) : null}
      <p className="jp-AgentBox-note" role="status">
        {state.kind === 'done'
          ? trans.__(
              'Your edits were put into the code of the cell. It was not run again.'
            )
          : null}
        {state.kind === 'refused' ? <VisibleText text={state.reason} /> : null}
      </p>
      {state.kind === 'done' || state.kind === 'proposed' ? null : (
        <LinkButton
          label={trans.__('Update the cell’s code…')}
          title={trans.__(
            'Shows what would change in the code of the cell, and runs nothing'
          )}
          onClick={() => {
            if (state.kind !== 'asking') {
              void ask();
            }
          }}
        />
      )}
    </div>
  );
}

interface IProposalProps {
  /** Says which cell it is, according to the kernel. */
  place: string;
  before: string;
  after: string;
  onUpdate: () => void;
  onCancel: () => void;
}

/** The preview of the changes, and the button that makes them. */
function Proposal(props: IProposalProps): JSX.Element {
  const trans = useTrans();
  const first = React.useRef<HTMLButtonElement>(null);
  React.useEffect(() => {
    first.current?.focus({ preventScroll: true });
  }, []);
  return (
    <>
      <Difference
        before={props.before}
        after={props.after}
        caption={trans.__('What changes in %1', props.place)}
      />
      <div className="jp-AgentBox-buttons">
        <button
          ref={first}
          type="button"
          className="jp-AgentBox-button"
          onClick={props.onUpdate}
        >
          {trans.__('Update the code')}
        </button>
        <button
          type="button"
          className="jp-AgentBox-button"
          onClick={props.onCancel}
        >
          {trans.__('Leave it as it is')}
        </button>
      </div>
    </>
  );
}

/** The server's proposal, or a reason of the same form if the server cannot be asked. */
async function proposal(
  propose: (id: string, source: string) => Promise<ICellUpdate>,
  approval: IApproval,
  before: string
): Promise<ICellUpdate> {
  try {
    return await propose(approval.id, before);
  } catch (error) {
    return { source: null, reason: String((error as Error).message ?? error) };
  }
}

function stateOf(before: string, { source, reason }: ICellUpdate): State {
  return source === null
    ? { kind: 'refused', reason: reason ?? '' }
    : { kind: 'proposed', before, after: source };
}

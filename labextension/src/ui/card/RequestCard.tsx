/**
 * A card for a request id: connects the card to the models.
 */
import React from 'react';

import type { IApproval } from '../../api/protocol';
import { useCardContext } from '../context';
import { visible } from '../text/visibleText';
import { Card } from './Card';
import { CellUpdate, mayUpdateCell } from './CellUpdate';
import { LongRequest } from './LongArguments';
import { useGoToCell } from '../hooks/useGoToCell';
import { useSignal } from '../hooks/useSignal';
import { QuestionList } from '../question/QuestionList';
import { WhileConnected } from './WhileConnected';

export interface IRequestCardProps {
  requestId: string;
  /** The output's text in a front end without this extension. */
  fallback?: string;
  /** Whether to offer a link to the cell. */
  hasLink?: boolean;
  /** Whether a pending request is shown in two lines, until somebody goes to it. */
  isCompact?: boolean;
  /** Whether the line above the card already shows the call. */
  isCallAbove?: boolean;
  /** Whether the card is in a widget, whose layout its kernel controls. */
  isInWidget?: boolean;
  /** Whether the card is an output of a cell, whose value may be missing below it. */
  isUnderCell?: boolean;
  /** Is told of the request when nothing can change it any more. */
  onFinal?: (approval: IApproval) => void;
  /** Is told why an answer was not accepted, and what was typed for nothing. */
  onFailure?: (text: string, typed: string) => void;
}

/** Another request is another card: its buttons are not ready yet, and no form is open. */
export function RequestCard(props: IRequestCardProps): JSX.Element {
  const { requestId } = props;
  return (
    <WhileConnected key={requestId} requestId={requestId}>
      <OneRequest {...props} />
      <QuestionsOfRequest {...props} />
    </WhileConnected>
  );
}

/** The question of the call's server, under the request. */
function QuestionsOfRequest(props: IRequestCardProps): JSX.Element | null {
  const { questions, openPanel } = useCardContext();
  return questions ? (
    <QuestionList
      questions={questions}
      requestId={props.requestId}
      isInWidget={props.isInWidget}
      onOpenInPanel={openPanel}
    />
  ) : null;
}

function OneRequest(props: IRequestCardProps): JSX.Element {
  const { requestId, fallback, hasLink } = props;
  const context = useCardContext();
  const { model, origins, openInPanel, makeRule, leave, trans } = context;
  const goToCell = useGoToCell();
  useSignal(model.changed, id => id === null || id === requestId);
  React.useEffect(() => {
    const tracking = model.track(requestId);
    return () => {
      tracking.dispose();
    };
  }, [model, requestId]);

  const { approval, state } = model.get(requestId);
  const { onFinal } = props;
  React.useEffect(() => {
    if (approval) {
      onFinal?.(approval);
    }
  }, [onFinal, approval]);
  const show = (): void => {
    void model.load(requestId);
  };
  const { missingValueOf } = context;
  const tool = approval?.call.tool ?? '';
  const missingValue = React.useMemo(
    () => missingValueOf?.(tool),
    [missingValueOf, tool]
  );
  if (approval?.status === 'pending' && approval.call.omitted) {
    return <LongRequest approval={approval} onShow={show} />;
  }
  if (approval) {
    return (
      <Card
        approval={approval}
        origin={origins.describe(approval)}
        isWithoutCell={!origins.hasPlace(approval)}
        now={() => model.now()}
        onDecide={(shown, answer) => {
          context.answered?.();
          return model.decide(shown, answer);
        }}
        present={() => model.get(requestId).approval}
        missingValue={
          props.isUnderCell && isValueMissing(approval)
            ? missingValue
            : undefined
        }
        cellUpdate={
          mayUpdateCell(approval) ? (
            <CellUpdate approval={approval} />
          ) : undefined
        }
        onExtend={() => model.extend(requestId)}
        onFailure={props.onFailure}
        onLeave={leave}
        onShowArguments={state === 'whole' ? undefined : show}
        onMakeRule={
          makeRule
            ? effect => {
                makeRule(requestId, effect);
              }
            : undefined
        }
        isCallAbove={props.isCallAbove}
        isCompact={props.isCompact}
        isInWidget={props.isInWidget}
        onOpenInPanel={
          openInPanel
            ? () => {
                openInPanel(requestId);
              }
            : undefined
        }
        onReveal={hasLink ? goToCell : undefined}
      />
    );
  }
  return (
    <div className="jp-AgentBox-card jp-mod-neutral">
      {fallback ? (
        <p className="jp-AgentBox-fallback">{visible(fallback)}</p>
      ) : null}
      <p className="jp-AgentBox-note">
        {state === 'loading' ? trans.__('Loading the approval request…') : null}
        {state === 'unreachable'
          ? trans.__('The server cannot be reached. Retrying…')
          : null}
        {state === 'unknown' && !fallback
          ? trans.__('This request is not on this server.')
          : null}
      </p>
    </div>
  );
}

/**
 * Whether a call was made before this page was loaded, and has succeeded since. The cell's outputs went to the page
 * that was open before: JupyterLab does not fetch them.
 */
function isValueMissing({ created_at, outcome }: IApproval): boolean {
  return (
    outcome?.state === 'succeeded' &&
    outcome.finished_at !== null &&
    Date.parse(created_at) < performance.timeOrigin &&
    Date.parse(outcome.finished_at) > performance.timeOrigin
  );
}

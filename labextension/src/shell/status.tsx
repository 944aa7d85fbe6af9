/**
 * The status bar item.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import { Signal } from '@lumino/signaling';
import React from 'react';

import { useSignal } from '../ui/hooks/useSignal';
import { approvalIcon } from '../ui/icons';
import type {
  IApprovalModel,
  IApprovalPanel,
  IHubRequestsModel,
  IQuestionsModel
} from '../internalTokens';

/** What the status bar item needs. */
export interface IStatusOptions {
  model: IApprovalModel;
  panel: IApprovalPanel;
  hub: IHubRequestsModel;
  /** The questions of servers; a page may have no such model. */
  questions: IQuestionsModel | null;
  trans: TranslationBundle;
}

/**
 * The number of pending requests, here and at the Hub service, and of servers' questions, and how many calls wait at the
 * Hub for others; a click goes to the oldest.
 */
export class ApprovalStatus extends ReactWidget {
  constructor(private readonly _options: IStatusOptions) {
    super();
    this.addClass('jp-AgentBox-status');
  }

  protected override render(): JSX.Element {
    return <StatusButton {...this._options} />;
  }
}

/** Stands for a model that a page lacks. */
const NO_QUESTIONS: Pick<IQuestionsModel, 'changed' | 'questions'> = {
  changed: new Signal<never, void>({} as never),
  questions: []
};

/** The item's button: a number while something is pending. */
export function StatusButton(options: IStatusOptions): JSX.Element {
  const { model, panel, hub, trans } = options;
  const questions = options.questions ?? NO_QUESTIONS;
  useSignal(model.changed);
  useSignal(hub.changed);
  useSignal(questions.changed);
  const requests = model.pending.length + hub.list.total;
  const asked = questions.questions.length;
  const count = requests + asked;
  const atHub = model.atHub.filter(one => !isForUser(one, hub)).length;
  const name = [
    model.connection === 'connected'
      ? waiting(requests, asked, trans)
      : trans.__('How many requests wait is not known'),
    ...(atHub > 0
      ? [
          trans._n(
            '%1 call waiting at the Hub for approval',
            '%1 calls waiting at the Hub for approval',
            atHub
          )
        ]
      : [])
  ].join(', ');
  return (
    <button
      type="button"
      className={count > 0 ? 'jp-mod-waiting' : undefined}
      title={trans.__('%1. Show the panel.', name)}
      aria-label={name}
      onClick={() => {
        const oldest = model.pending.at(0);
        if (oldest) {
          panel.focusTogether(oldest.id);
        } else {
          panel.open();
        }
      }}
    >
      <approvalIcon.react tag="span" stylesheet="statusBar" />
      {count > 0 ? <span>{count}</span> : null}
      {atHub > 0 ? (
        <span>{trans._n('%1 at the Hub', '%1 at the Hub', atHub)}</span>
      ) : null}
    </button>
  );
}

/** Whether the user is the one whom the Hub service asks, so that its list of what waits for them has the call, too. */
function isForUser(
  { outcome }: IApprovalModel['atHub'][number],
  hub: IHubRequestsModel
): boolean {
  return outcome?.review?.groups.length === 0 && hub.list.total > 0;
}

/** What is pending, in words. */
function waiting(
  requests: number,
  asked: number,
  trans: TranslationBundle
): string {
  const awaiting = trans._n(
    '%1 request awaiting approval',
    '%1 requests awaiting approval',
    requests
  );
  if (asked === 0) {
    return awaiting;
  }
  const questions = trans._n(
    '%1 question from a server',
    '%1 questions from servers',
    asked
  );
  return requests === 0 ? questions : trans.__('%1, %2', awaiting, questions);
}

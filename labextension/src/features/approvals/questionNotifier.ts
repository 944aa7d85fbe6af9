/**
 * Notifies of MCP servers' questions whose cards are out of view: one notification for all.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

import type { IQuestion } from '../../api/protocol';
import type {
  IApprovalModel,
  IApprovalPanel,
  IOrigins,
  IQuestionsModel
} from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import type { DesktopNotifier } from './desktopNotifier';
import {
  LOOK_INTERVAL,
  RENDER_TIME
} from '../../integrations/standingNotification';
import { StandingNotifier } from '../../integrations/standingNotifier';

/** The dependencies of `QuestionNotifier`. */
export interface IQuestionNotifierOptions {
  questions: IQuestionsModel;
  model: IApprovalModel;
  origins: Pick<IOrigins, 'closed' | 'describe' | 'isInView' | 'isOpen'>;
  panel: Pick<IApprovalPanel, 'isVisible' | 'open'>;
  desktop: Pick<DesktopNotifier, 'tell'>;
  /** Until the page has restored its notebooks, everything is out of view. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** An open question, with its call, which the store keeps meanwhile. */
interface IOpenQuestion {
  question: IQuestion;
  tracking: IDisposable;
  /** Whether the notification mentions it. */
  isTold: boolean;
  /** Whether a person has seen it in a notebook, or a console, that is open. */
  isSeen: boolean;
}

/** Keeps one notification for all questions that are out of view. */
export class QuestionNotifier extends StandingNotifier {
  constructor(private readonly _options: IQuestionNotifierOptions) {
    const { panel, trans } = _options;
    super(trans, {
      caption: trans.__('Show the questions'),
      callback: () => {
        panel.open();
      }
    });
    _options.questions.changed.connect(this._follow, this);
    _options.origins.closed.connect(this._onClosed, this);
    this._follow();
  }

  override dispose(): void {
    super.dispose();
    for (const { tracking } of this._open.values()) {
      tracking.dispose();
    }
    this._open.clear();
  }

  private _follow(): void {
    const { questions, model, restored } = this._options;
    const present = new Set(questions.questions.map(({ id }) => id));
    for (const [id, { tracking }] of this._open) {
      if (!present.has(id)) {
        tracking.dispose();
        this._open.delete(id);
      }
    }
    for (const question of questions.questions) {
      if (!this._open.has(question.id)) {
        const tracking = model.track(question.request_id);
        const unknown = { isTold: false, isSeen: false };
        this._open.set(question.id, { question, tracking, ...unknown });
        void restored.then(() => {
          this._tellIn(question.id, RENDER_TIME);
        });
      }
    }
    if (present.size === 0) {
      this._onDesktop?.close();
      this._onDesktop = null;
    }
    this._show();
  }

  private _tellIn(id: string, milliseconds: number): void {
    window.setTimeout(() => {
      this._tell(id);
    }, milliseconds);
  }

  private _tell(id: string): void {
    const one = this._open.get(id);
    if (!one) {
      return;
    }
    const { approval, state } = this._options.model.get(
      one.question.request_id
    );
    if (state === 'loading') {
      this._tellIn(id, LOOK_INTERVAL); // where its cell is, is not known yet
      return;
    }
    this._onDesktop = this._options.desktop.tell(
      this._title([one]),
      approval ? label(this._options.origins.describe(approval), 60) : '',
      () => {
        this._options.panel.open();
      }
    );
    one.isTold = true;
    this.look();
  }

  /** What a person has seen needs no notification any more. */
  protected look(): void {
    const { origins, model } = this._options;
    for (const one of this._told()) {
      const { approval } = model.get(one.question.request_id);
      one.isTold = !this._isInView(one.question);
      one.isSeen = !one.isTold && approval !== null && origins.isOpen(approval);
    }
    this._show();
  }

  /** Tell again of what was seen in a notebook that is closed now. */
  private _onClosed(): void {
    window.setTimeout(() => {
      const { origins, model } = this._options;
      for (const one of this._open.values()) {
        const { approval } = model.get(one.question.request_id);
        if (one.isSeen && approval && !origins.isOpen(approval)) {
          one.isTold = true;
        }
      }
      this.look();
    }, RENDER_TIME);
  }

  private _isInView({ id, request_id }: IQuestion): boolean {
    const { origins, panel } = this._options;
    const { approval } = this._options.model.get(request_id);
    return (
      panel.isVisible || (approval !== null && origins.isInView(approval, id))
    );
  }

  private _told(): IOpenQuestion[] {
    return [...this._open.values()].filter(({ isTold }) => isTold);
  }

  private _show(): void {
    const told = this._told();
    this.notification.show(told.length, this._title(told));
  }

  private _title(of: readonly IOpenQuestion[]): string {
    const { trans } = this._options;
    const [first] = of;
    return of.length === 1
      ? trans.__('The server “%1” asks you', label(first.question.server, 60))
      : trans._n(
          'A server asks you something',
          'Servers ask you %1 things',
          of.length
        );
  }

  private _onDesktop: globalThis.Notification | null = null;
  private readonly _open = new Map<string, IOpenQuestion>();
}

/**
 * Notifies of what MCP servers ask while the card of the question is out of view: one notification for all.
 */
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IQuestion } from '../../api/protocol';
import type {
  IApprovalModel,
  IApprovalPanel,
  IOrigins,
  IQuestionsModel
} from '../../internalTokens';
import { label } from '../../ui/text/visibleText';
import type { DesktopNotifier } from './desktopNotifier';
import { LOOK_INTERVAL, RENDER_TIME } from './notifier';

/** What `QuestionNotifier` needs. */
export interface IQuestionNotifierOptions {
  questions: IQuestionsModel;
  model: IApprovalModel;
  origins: Pick<IOrigins, 'describe' | 'isInView'>;
  panel: Pick<IApprovalPanel, 'isVisible' | 'open'>;
  desktop: Pick<DesktopNotifier, 'tell'>;
  /** Until the page has its notebooks back, everything is out of view. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** A question that is open, with its call, which the store keeps meanwhile. */
interface IOpenQuestion {
  question: IQuestion;
  tracking: IDisposable;
  /** Whether the notification speaks of it. */
  isTold: boolean;
}

/** Keeps one notification for all questions that are out of view. */
export class QuestionNotifier implements IDisposable {
  constructor(private readonly _options: IQuestionNotifierOptions) {
    _options.questions.changed.connect(this._follow, this);
    this._follow();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether to notify in the page at all. */
  get isEnabled(): boolean {
    return this._isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    this._isEnabled = isEnabled;
    this._show();
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
    for (const { tracking } of this._open.values()) {
      tracking.dispose();
    }
    this._open.clear();
    this._show();
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
        this._open.set(question.id, { question, tracking, isTold: false });
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
    if (!this._isInView(one.question)) {
      one.isTold = true;
      this._show();
    }
  }

  /** What a person has come to see needs no notification any more. */
  private _look(): void {
    for (const one of this._told()) {
      one.isTold = !this._isInView(one.question);
    }
    this._show();
  }

  private _isInView(question: IQuestion): boolean {
    const { origins, panel } = this._options;
    const { approval } = this._options.model.get(question.request_id);
    return panel.isVisible || (approval !== null && origins.isInView(approval));
  }

  private _told(): IOpenQuestion[] {
    return [...this._open.values()].filter(({ isTold }) => isTold);
  }

  private _show(): void {
    window.clearInterval(this._timer);
    const told = this._told();
    if (told.length === 0 || !this._isEnabled) {
      this._dismiss();
      return;
    }
    this._timer = window.setInterval(() => {
      this._look();
    }, LOOK_INTERVAL);
    const message = this._title(told);
    const isShown = this._id !== null && Notification.manager.has(this._id);
    if (this._id !== null && isShown) {
      if (message !== this._message) {
        Notification.update({ id: this._id, message });
      }
    } else if (told.length > this._count) {
      // One that the person closed stays closed until there is another question.
      this._id = Notification.emit(message, 'warning', {
        autoClose: false,
        actions: [this._action()]
      });
    }
    this._message = message;
    this._count = told.length;
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

  private _action(): Notification.IAction {
    const { trans } = this._options;
    return {
      label: trans.__('Show'),
      caption: trans.__('Show the questions'),
      displayType: 'accent',
      callback: () => {
        this._options.panel.open();
      }
    };
  }

  private _dismiss(): void {
    this._count = 0;
    if (this._id !== null) {
      Notification.dismiss(this._id);
      this._id = null;
    }
  }

  private _count = 0;
  private _id: string | null = null;
  private _isDisposed = false;
  private _isEnabled = true;
  private _message = '';
  private _onDesktop: globalThis.Notification | null = null;
  private readonly _open = new Map<string, IOpenQuestion>();
  private _timer = 0;
}

/**
 * Shows in the browser's tab how much is pending: a number before the title, and a dot on the icon.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type {
  IApprovalModel,
  IHubRequestsModel,
  IQuestionsModel
} from '../../internalTokens';
import { TabIcon } from './tabIcon';

/** What is counted: requests, requests at the Hub service, and servers' questions, if the page has them. */
export interface ICounted {
  model: Pick<IApprovalModel, 'changed' | 'pending'>;
  hub: Pick<IHubRequestsModel, 'changed' | 'list'>;
  questions: Pick<IQuestionsModel, 'changed' | 'questions'> | null;
}

/** Keeps the number before any title that the application sets, and removes it in the end. */
export class TitleCount implements IDisposable {
  constructor(
    private readonly _counted: ICounted,
    private readonly _icon: Pick<
      TabIcon,
      'setMarked' | 'dispose'
    > = new TabIcon()
  ) {
    this._observer = new MutationObserver(this._onTitle);
    this._observer.observe(document.head, {
      childList: true,
      characterData: true,
      subtree: true
    });
    _counted.model.changed.connect(this._show, this);
    _counted.hub.changed.connect(this._show, this);
    _counted.questions?.changed.connect(this._show, this);
    this._show();
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this._observer.disconnect();
    Signal.clearData(this);
    this._icon.dispose();
    document.title = this._base();
  }

  private _show(): void {
    const base = this._base();
    const { model, hub, questions } = this._counted;
    const asked = questions?.questions.length ?? 0;
    const count = model.pending.length + hub.list.total + asked;
    this._prefix = count > 0 ? `(${count}) ` : '';
    if (document.title !== this._prefix + base) {
      document.title = this._prefix + base;
    }
    this._icon.setMarked(count > 0);
  }

  /** The title without the number. */
  private _base(): string {
    const { title } = document;
    return this._prefix && title.startsWith(this._prefix)
      ? title.slice(this._prefix.length)
      : title;
  }

  /** The application has set another title. */
  private readonly _onTitle = (): void => {
    if (!document.title.startsWith(this._prefix)) {
      this._show();
    }
  };

  private _isDisposed = false;
  private readonly _observer: MutationObserver;
  private _prefix = '';
}

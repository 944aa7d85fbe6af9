/**
 * Shows in the browser's tab how many requests wait: a number before the title, and a dot on the icon.
 */
import type { IDisposable } from '@lumino/disposable';

import type { IApprovalModel, IHubRequestsModel } from '../../internalTokens';
import { TabIcon } from './tabIcon';

/** Keeps the number before whatever title the application gives the page, and takes it away in the end. */
export class TitleCount implements IDisposable {
  constructor(
    private readonly _model: Pick<IApprovalModel, 'changed' | 'pending'>,
    private readonly _hub: Pick<IHubRequestsModel, 'changed' | 'list'>,
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
    this._model.changed.connect(this._show, this);
    this._hub.changed.connect(this._show, this);
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
    this._model.changed.disconnect(this._show, this);
    this._hub.changed.disconnect(this._show, this);
    this._icon.dispose();
    document.title = this._base();
  }

  private _show(): void {
    const base = this._base();
    const count = this._model.pending.length + this._hub.list.total;
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

  /** The application gave the page another title. */
  private readonly _onTitle = (): void => {
    if (!document.title.startsWith(this._prefix)) {
      this._show();
    }
  };

  private _isDisposed = false;
  private readonly _observer: MutationObserver;
  private _prefix = '';
}

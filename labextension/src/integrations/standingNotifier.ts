/**
 * The common base of the notifiers of things that are out of view.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { StandingNotification } from './standingNotification';

/** The action of a notification's button *Show*. */
export interface IShowAction {
  caption: string;
  callback: () => void;
}

/** Keeps one notification, which a setting can turn off. */
export abstract class StandingNotifier implements IDisposable {
  constructor(trans: TranslationBundle, { caption, callback }: IShowAction) {
    this.notification = new StandingNotification({
      action: { label: trans.__('Show'), caption, callback },
      look: () => {
        this.look();
      }
    });
  }

  get isDisposed(): boolean {
    return this.notification.isDisposed;
  }

  /** Whether to notify in the page at all. */
  get isEnabled(): boolean {
    return this.notification.isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    this.notification.isEnabled = isEnabled;
  }

  dispose(): void {
    Signal.clearData(this);
    this.notification.dispose();
  }

  /** Check again what is out of view: what is visible needs no notification. */
  protected abstract look(): void;

  protected readonly notification: StandingNotification;
}

/**
 * What the notifiers of things that are out of view have in common.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { StandingNotification } from './standingNotification';

/** What the button *Show* of a notification does. */
export interface IShowAction {
  caption: string;
  callback: () => void;
}

/** Keeps one notification, which a person can turn off. */
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

  /** Look again at what is out of view: what a person has come to see needs no notification any more. */
  protected abstract look(): void;

  protected readonly notification: StandingNotification;
}

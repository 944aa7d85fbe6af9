/**
 * Tells why a sandboxed kernel ended: JupyterLab itself only says that it did.
 */
import type { Notification, NotificationManager } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IExitedKernel, KernelExitsModel } from '../../model/kernelExits';
import type { IKernelExit } from '../../api/protocol';
import type { IOrigins, Place } from '../../internalTokens';
import { exitSentence } from './exitSentence';

/** JupyterLab truncates longer texts. */
const MAX_LENGTH = 140;

/** The number of characters of a notebook's path that are always shown. */
const MIN_NAME_LENGTH = 20;

/** The dependencies of `ExitNotifier`. */
export interface IExitNotifierOptions {
  model: Pick<KernelExitsModel, 'ended'>;
  origins: Pick<IOrigins, 'describePlace' | 'revealPlace'>;
  notifications: Pick<NotificationManager, 'notify' | 'update'>;
  trans: TranslationBundle;
}

/** Keeps one notification for each kernel about its last end, until a person closes it. */
export class ExitNotifier implements IDisposable {
  constructor(private readonly _options: IExitNotifierOptions) {
    this._options.model.ended.connect(this._onEnded, this);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  private _onEnded(_: unknown, { kernelId, end }: IExitedKernel): void {
    const { notifications } = this._options;
    const place = { kernel_id: kernelId, notebook_path: end.notebook_path };
    const message = this._message(place, end);
    const options = {
      autoClose: false as const,
      actions: [this._action(place)]
    };
    const id = this._shown.get(kernelId);
    if (!id || !notifications.update({ id, message, ...options })) {
      this._shown.set(
        kernelId,
        notifications.notify(message, 'error', options)
      );
    }
  }

  private _message(place: Place, end: IKernelExit): string {
    const { origins, trans } = this._options;
    const rest = exitSentence('', end, trans).length;
    const length = Math.max(MAX_LENGTH - rest, MIN_NAME_LENGTH);
    return exitSentence(origins.describePlace(place, length), end, trans);
  }

  private _action(place: Place): Notification.IAction {
    const { origins, trans } = this._options;
    return {
      label: trans.__('Show'),
      caption: trans.__('Show the notebook'),
      displayType: 'accent',
      callback: () => {
        void origins.revealPlace(place);
      }
    };
  }

  private _isDisposed = false;
  private readonly _shown = new Map<string, string>();
}

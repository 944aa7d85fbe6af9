/**
 * The notebooks and consoles of a page, both those already open and those opened later.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { IConsoleTracker } from '@jupyterlab/console';
import type { INotebookTracker } from '@jupyterlab/notebook';
import type { Kernel, Session } from '@jupyterlab/services';
import { DisposableDelegate, DisposableSet } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

/** The part of a tracker that is used here. */
export interface ITracked<T> {
  forEach(callback: (widget: T) => void): void;
  readonly widgetAdded: ISignal<unknown, T>;
}

/** Trackers of the widgets in which code runs. What an application does not have is `null`. */
export interface ISessionTrackers {
  notebooks: Pick<INotebookTracker, 'forEach' | 'widgetAdded'> | null;
  consoles: Pick<IConsoleTracker, 'forEach' | 'widgetAdded'> | null;
}

/** Call back with each widget; `wasOpen` says whether it was already open. */
export function watchWidgets<T>(
  tracker: ITracked<T> | null,
  callback: (widget: T, wasOpen: boolean) => void
): IDisposable {
  const onAdded = (_: unknown, widget: T): void => {
    callback(widget, false);
  };
  tracker?.forEach(widget => {
    callback(widget, true);
  });
  tracker?.widgetAdded.connect(onAdded);
  return new DisposableDelegate(() => {
    tracker?.widgetAdded.disconnect(onAdded);
  });
}

/** Call back with the session of each notebook and console. */
function watchSessions(
  { notebooks, consoles }: ISessionTrackers,
  callback: (context: ISessionContext) => void
): IDisposable {
  return DisposableSet.from([
    watchWidgets(notebooks, ({ sessionContext }) => {
      callback(sessionContext);
    }),
    watchWidgets(consoles, ({ sessionContext }) => {
      callback(sessionContext);
    })
  ]);
}

/** Calls back with each kernel of a notebook or console, now and later. */
export class KernelWatch implements IDisposable {
  constructor(
    trackers: ISessionTrackers,
    private readonly _callback: (kernel: Kernel.IKernelConnection) => void
  ) {
    this._sessions = watchSessions(trackers, context => {
      context.kernelChanged.connect(this._onKernelChanged, this);
      this._tell(context.session?.kernel ?? null);
    });
  }

  get isDisposed(): boolean {
    return this._sessions.isDisposed;
  }

  dispose(): void {
    this._sessions.dispose();
    Signal.clearData(this);
  }

  private _onKernelChanged(
    _: unknown,
    { newValue }: Session.ISessionConnection.IKernelChangedArgs
  ): void {
    this._tell(newValue);
  }

  private _tell(kernel: Kernel.IKernelConnection | null): void {
    if (kernel) {
      this._callback(kernel);
    }
  }

  private readonly _sessions: IDisposable;
}

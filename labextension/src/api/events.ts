/**
 * Routes the server's events to listeners, by schema.
 */
import type { Event } from '@jupyterlab/services';
import { DisposableDelegate } from '@lumino/disposable';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

/** Handles an event. */
export type EventCallback = (event: Event.Emission) => void;

/** Router of the server's events. */
export interface IEventRouter {
  /** Call back with each event of a schema until the result is disposed. */
  on(schema: string, callback: EventCallback): IDisposable;
}

/** See `IEventRouter`. */
export class EventRouter implements IEventRouter, IDisposable {
  constructor(events: Pick<Event.IManager, 'stream'>) {
    events.stream.connect(this._onEvent, this);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._callbacks.clear();
    Signal.clearData(this);
  }

  on(schema: string, callback: EventCallback): IDisposable {
    const callbacks = this._callbacks.get(schema) ?? new Set();
    // A callback registered twice is called twice, and each registration is disposed separately.
    const registered: EventCallback = event => {
      callback(event);
    };
    this._callbacks.set(schema, callbacks.add(registered));
    return new DisposableDelegate(() => {
      callbacks.delete(registered);
    });
  }

  private _onEvent(_: unknown, event: Event.Emission): void {
    for (const callback of [...(this._callbacks.get(event.schema_id) ?? [])]) {
      try {
        callback(event);
      } catch (error) {
        console.error(`An event of ${event.schema_id} was not handled.`, error);
      }
    }
  }

  private readonly _callbacks = new Map<string, Set<EventCallback>>();
  private _isDisposed = false;
}

/**
 * The actions of buttons that are in progress, and why others failed.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

/** The state of the actions of one thing, such as a server. */
export interface IDoingState {
  isBusy: boolean;
  /** The error of the last action; `null` if it did not fail. */
  error: unknown;
}

const IDLE: IDoingState = { isBusy: false, error: null };

/** Performs one action at a time for each key. It outlives the components that show it. */
export class Doings {
  /** Emits a key when its state has changed. */
  get changed(): ISignal<Doings, string> {
    return this._changed;
  }

  /** The state of a key: the same object until it changes. */
  stateOf(key: string): IDoingState {
    return this._states.get(key) ?? IDLE;
  }

  /** Perform an action; nothing while another one of this key is in progress. */
  run(key: string, action: () => Promise<void>): void {
    if (!this.stateOf(key).isBusy) {
      this._set(key, { isBusy: true, error: null });
      // An action may also fail before it returns a promise.
      const perform = async (): Promise<void> => action();
      perform().then(
        () => {
          this.forget(key);
        },
        (error: unknown) => {
          this._set(key, { isBusy: false, error });
        }
      );
    }
  }

  /** Forget why the last action of a key failed. */
  forget(key: string): void {
    this._states.delete(key);
    this._changed.emit(key);
  }

  private _set(key: string, state: IDoingState): void {
    this._states.set(key, state);
    this._changed.emit(key);
  }

  private readonly _changed = new Signal<Doings, string>(this);
  private readonly _states = new Map<string, IDoingState>();
}

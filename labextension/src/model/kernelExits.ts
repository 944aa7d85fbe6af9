/**
 * The kernels that ended unexpectedly while this page was open.
 */
import type { Event } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Throttler } from '@lumino/polling';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IEventRouter } from '../api/events';
import { KERNEL_EVENT } from '../api/protocol';
import type { IKernelExit } from '../api/protocol';

/** Events within this time, in milliseconds, lead to a single round of requests to the server. */
const HINT_INTERVAL = 100;

/** A kernel and its end. */
export interface IExitedKernel {
  kernelId: string;
  end: IKernelExit;
}

/**
 * Asks the server for the reason when an event says that a kernel ended. It never asks otherwise: what happened before
 * this page was opened is not news.
 */
export class KernelExitsModel implements IDisposable {
  constructor(
    events: IEventRouter,
    private readonly _source: Pick<IAgentBoxClient, 'getLastExit'>
  ) {
    this._listening = events.on(KERNEL_EVENT, event => {
      this._onEvent(event);
    });
    this._asking = new Throttler(() => this._ask(), {
      limit: HINT_INTERVAL,
      edge: 'trailing'
    });
  }

  /** Emits each end once. */
  get ended(): ISignal<this, IExitedKernel> {
    return this._ended;
  }

  get isDisposed(): boolean {
    return this._asking.isDisposed;
  }

  dispose(): void {
    this._listening.dispose();
    this._asking.dispose();
    Signal.clearData(this);
  }

  private _onEvent(event: Event.Emission): void {
    if (typeof event.kernel_id === 'string') {
      this._hinted.add(event.kernel_id);
      // A call that waits in the throttler when the page goes is rejected.
      this._asking.invoke().catch(() => undefined);
    }
  }

  private async _ask(): Promise<void> {
    const ids = [...this._hinted];
    this._hinted.clear();
    await Promise.all(ids.map(id => this._askFor(id)));
  }

  private async _askFor(kernelId: string): Promise<void> {
    let end: IKernelExit | null;
    try {
      end = await this._source.getLastExit(kernelId);
    } catch (error) {
      console.warn(`Why kernel ${kernelId} ended is not known.`, error);
      return;
    }
    if (end && !this.isDisposed && this._known.get(kernelId) !== end.id) {
      this._known.set(kernelId, end.id);
      this._ended.emit({ kernelId, end });
    }
  }

  private readonly _asking: Throttler;
  private readonly _ended = new Signal<this, IExitedKernel>(this);
  private readonly _hinted = new Set<string>();
  private readonly _listening: IDisposable;
  private readonly _known = new Map<string, string>();
}

/**
 * Whether the outputs of a notebook, or of a console, may run code in the page.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { KernelLevels } from './levels';

/**
 * `open`: JupyterLab's own rules hold. `closed`: nothing runs that a person did not allow. `unknown`: nothing runs
 * either; it is to be seen soon which of the two it is.
 */
export type Verdict = 'open' | 'closed' | 'unknown';

/** What decides about outputs. */
export interface IGate {
  readonly verdict: Verdict;
  /** Whether it is known to whom the outputs belong. */
  readonly isBound: boolean;
  /** Whether the server said that a kernel was sandboxed. */
  readonly wasSandboxed: boolean;
  /** Emits when the verdict may have changed. */
  readonly changed: ISignal<IGate, void>;
  /** Wait until the verdict is not `unknown`. */
  settled(): Promise<void>;
}

/** The part of a session context that is needed here. */
export type GateContext = Pick<
  ISessionContext,
  'isReady' | 'ready' | 'session' | 'kernelChanged'
>;

/** Milliseconds before a server that did not say is asked again. */
const PAUSE = 2000;

/** Milliseconds that the messages of a kernel may wait for the server's word. */
const PATIENCE = 5000;

function patience(): Promise<'unknown'> {
  return new Promise(resolve => {
    window.setTimeout(() => {
      resolve('unknown');
    }, PATIENCE);
  });
}

/**
 * Follows the kernels of one session context.
 *
 * Once a sandboxed kernel was there, the gate stays closed: what it left in the page is no more to be trusted when
 * another kernel takes its place, or none.
 */
export class SessionGate {
  constructor(
    private readonly _context: GateContext,
    private readonly _levels: KernelLevels
  ) {
    _context.kernelChanged.connect((_, { newValue }) => {
      this._follow(newValue);
    });
    void _context.ready.then(() => {
      if (!this._kernel) {
        this._follow(_context.session?.kernel ?? null);
      }
    });
    this._follow(_context.session?.kernel ?? null);
  }

  get verdict(): Verdict {
    return this._verdict;
  }

  get changed(): ISignal<SessionGate, void> {
    return this._changed;
  }

  /** Whether a sandboxed kernel was anywhere in this page. */
  static get wasAnySandboxed(): boolean {
    return SessionGate._wasAnySandboxed;
  }

  /** Whether a sandboxed kernel was here. */
  get wasSandboxed(): boolean {
    return this._wasSandboxed;
  }

  /** The kernel that is followed. */
  get kernel(): Kernel.IKernelConnection | null {
    return this._kernel;
  }

  private _follow(kernel: Kernel.IKernelConnection | null): void {
    this._kernel = kernel;
    kernel?.anyMessage.connect(this._onMessage, this);
    if (this._wasSandboxed) {
      this._set('closed');
    } else if (kernel) {
      this._set('unknown');
      void this._ask(kernel);
    } else {
      this._set(this._context.isReady ? 'open' : 'unknown');
    }
  }

  private async _ask(kernel: Kernel.IKernelConnection): Promise<void> {
    const level = await Promise.race([this._levels.ask(kernel), patience()]);
    if (kernel !== this._kernel || kernel.isDisposed) {
      return;
    }
    this._wasSandboxed ||= level === 'sandboxed';
    SessionGate._wasAnySandboxed ||= this._wasSandboxed;
    this._set(level === 'plain' ? 'open' : 'closed');
    if (level === 'unknown') {
      window.setTimeout(() => {
        if (kernel === this._kernel) {
          void this._ask(kernel);
        }
      }, PAUSE);
    }
  }

  /** A kernel can name a module that the page should load for a comm. This hears of a message before it is handled. */
  private _onMessage(
    _: Kernel.IKernelConnection,
    { msg, direction }: Kernel.IAnyMessageArgs
  ): void {
    if (
      direction === 'recv' &&
      msg.header.msg_type === 'comm_open' &&
      this._verdict !== 'open'
    ) {
      delete (msg.content as { target_module?: string }).target_module;
    }
  }

  private _set(verdict: Verdict): void {
    if (verdict !== this._verdict) {
      this._verdict = verdict;
      this._changed.emit();
    }
  }

  private static _wasAnySandboxed = false;
  private readonly _changed = new Signal<SessionGate, void>(this);
  private _kernel: Kernel.IKernelConnection | null = null;
  private _verdict: Verdict = 'unknown';
  private _wasSandboxed = false;
}

/** The gate of one set of renderers: `unknown` until it is bound to the session whose outputs they show. */
export class Gate implements IGate {
  get verdict(): Verdict {
    return this._session?.verdict ?? 'unknown';
  }

  get isBound(): boolean {
    return this._session !== null;
  }

  get wasSandboxed(): boolean {
    return this._session?.wasSandboxed ?? false;
  }

  get changed(): ISignal<Gate, void> {
    return this._changed;
  }

  bind(session: SessionGate): void {
    if (session === this._session) {
      return;
    }
    this._session?.changed.disconnect(this._emit, this);
    this._session = session;
    session.changed.connect(this._emit, this);
    this._emit();
  }

  settled(): Promise<void> {
    return new Promise(resolve => {
      const look = (): void => {
        if (this.verdict !== 'unknown') {
          this._changed.disconnect(look);
          resolve();
        }
      };
      this._changed.connect(look);
      look();
    });
  }

  /** No widget can be shown safely: let the kernel have none. */
  refuseWidgets(): void {
    void this.settled().then(() => {
      const kernel = this._session?.kernel;
      if (this.verdict === 'closed' && kernel) {
        kernel.handleComms = false;
      }
    });
  }

  private _emit(): void {
    this._changed.emit();
  }

  private readonly _changed = new Signal<Gate, void>(this);
  private _session: SessionGate | null = null;
}

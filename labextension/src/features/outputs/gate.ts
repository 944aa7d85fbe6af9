/**
 * Decides whether the outputs of a notebook or a console may run code in the page.
 */
import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { KernelLevels } from './levels';
import { silence, unsilence } from './silence';

/**
 * `open`: JupyterLab's own rules hold. `closed`: nothing runs that a person did not allow. `unknown`: nothing runs
 * either; it is to be seen soon which of the two it is.
 */
export type Verdict = 'open' | 'closed' | 'unknown';

/** Decides about outputs. */
export interface IGate {
  readonly verdict: Verdict;
  /** Whether it is known to which session the outputs belong. */
  readonly isBound: boolean;
  /** The verdict about outputs that belong to no known notebook or console. */
  readonly elsewhere: Verdict;
  /** Whether the server has said that a kernel was sandboxed. */
  readonly wasSandboxed: boolean;
  /** Emits when a verdict may have changed. */
  readonly changed: ISignal<IGate, void>;
  /** Wait until the verdict is no longer `unknown`. */
  settled(): Promise<void>;
}

/** The part of a session context that is used here. */
export type GateContext = Pick<
  ISessionContext,
  'isReady' | 'ready' | 'session' | 'kernelChanged' | 'disposed'
>;

/** Milliseconds before a server that did not answer is asked again; doubled each time, up to the second number. */
const PAUSE = 2000;
const LONGEST_PAUSE = 60_000;

/** Milliseconds that the messages of a kernel may wait for the server's answer. */
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
 * another kernel takes its place, or none. A kernel that starts anew is the same kernel, and keeps its verdict.
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

  /** Whether there was a sandboxed kernel here. */
  get wasSandboxed(): boolean {
    return this._wasSandboxed;
  }

  /** The observed kernel. */
  get kernel(): Kernel.IKernelConnection | null {
    return this._kernel;
  }

  private _follow(kernel: Kernel.IKernelConnection | null): void {
    const isOther = kernel !== this._kernel;
    this._kernel = kernel;
    if (this._wasSandboxed) {
      this._set('closed', isOther);
    } else if (!kernel) {
      this._set(this._context.isReady ? 'open' : 'unknown', isOther);
    } else if (this._levels.known(kernel.id) === 'plain') {
      this._set('open', isOther);
    } else {
      this._set('unknown', isOther);
      void this._ask(kernel, PAUSE);
    }
  }

  private async _ask(
    kernel: Kernel.IKernelConnection,
    pause: number
  ): Promise<void> {
    const level = await Promise.race([this._levels.ask(kernel), patience()]);
    if (kernel !== this._kernel || kernel.isDisposed) {
      return;
    }
    this._wasSandboxed ||= level === 'sandboxed';
    this._set(level === 'plain' ? 'open' : 'closed');
    if (level === 'unknown') {
      window.setTimeout(() => {
        if (kernel === this._kernel) {
          void this._ask(kernel, Math.min(2 * pause, LONGEST_PAUSE));
        }
      }, pause);
    }
  }

  private _set(verdict: Verdict, isOther = false): void {
    if (isOther || verdict !== this._verdict) {
      this._verdict = verdict;
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<SessionGate, void>(this);
  private _kernel: Kernel.IKernelConnection | null = null;
  private _verdict: Verdict = 'unknown';
  private _wasSandboxed = false;
}

/** The gates of a page's session contexts, one for each. */
export class SessionGates {
  constructor(private readonly _levels: KernelLevels) {}

  of(context: GateContext): SessionGate {
    const known = this._gates.get(context);
    const gate = known ?? new SessionGate(context, this._levels);
    if (!known) {
      this._gates.set(context, gate);
    }
    return gate;
  }

  private readonly _gates = new WeakMap<GateContext, SessionGate>();
}

/** All sessions of a page: what belongs to none of them is treated like the least safe of them. */
export class PageGate {
  /** Observe a session until its context is disposed. */
  add(session: SessionGate, context: Pick<GateContext, 'disposed'>): void {
    this._sessions.add(session);
    session.changed.connect(this._look, this);
    context.disposed.connect(() => {
      this._look();
      this._sessions.delete(session);
      this._look();
    });
    this._look();
  }

  get verdict(): Verdict {
    return this._verdict;
  }

  get changed(): ISignal<PageGate, void> {
    return this._changed;
  }

  private _look(): void {
    const sessions = [...this._sessions];
    this._wasSandboxed ||= sessions.some(({ wasSandboxed }) => wasSandboxed);
    const isOpen = sessions.every(({ verdict }) => verdict === 'open');
    const verdict = this._wasSandboxed ? 'closed' : isOpen ? 'open' : 'unknown';
    if (verdict !== this._verdict) {
      this._verdict = verdict;
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<PageGate, void>(this);
  private readonly _sessions = new Set<SessionGate>();
  private _verdict: Verdict = 'open';
  private _wasSandboxed = false;
}

/** The gate of a set of renderers: `unknown` until it is bound to the session whose outputs they show. */
export class Gate implements IGate {
  constructor(private readonly _page: PageGate) {
    _page.changed.connect(this._emit, this);
  }

  get verdict(): Verdict {
    return this._session?.verdict ?? 'unknown';
  }

  get isBound(): boolean {
    return this._session !== null;
  }

  get elsewhere(): Verdict {
    return this._page.verdict;
  }

  get wasSandboxed(): boolean {
    return this._session?.wasSandboxed ?? false;
  }

  get changed(): ISignal<Gate, void> {
    return this._changed;
  }

  /** A gate for a clone of the renderers; a clone of a notebook's renderers belongs to the notebook, too. */
  clone(): Gate {
    return this.isBound ? this : new Gate(this._page);
  }

  bind(session: SessionGate): void {
    if (session === this._session) {
      return;
    }
    this._session?.changed.disconnect(this._emit, this);
    this._page.changed.disconnect(this._emit, this);
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

  /** Widgets cannot be shown safely: allow a kernel to have any only while the gate is open. */
  refuseWidgets(): void {
    if (this._refusesWidgets) {
      return;
    }
    this._refusesWidgets = true;
    const refuse = (): void => {
      const kernel = this._session?.kernel;
      if (kernel) {
        (this.verdict === 'open' ? unsilence : silence)(kernel, this);
      }
    };
    this._changed.connect(refuse);
    refuse();
  }

  private _emit(): void {
    this._changed.emit();
  }

  private readonly _changed = new Signal<Gate, void>(this);
  private _session: SessionGate | null = null;
  private _refusesWidgets = false;
}

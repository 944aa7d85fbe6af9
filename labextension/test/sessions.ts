/**
 * A notebook's session context with kernels that a test names, and a server that says what they are.
 */
import type { Kernel } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { Gate, PageGate, SessionGate } from '../src/features/outputs/gate';
import type { GateContext } from '../src/features/outputs/gate';
import { KernelLevels } from '../src/features/outputs/levels';

type Connection = Kernel.IKernelConnection;

/** What the server says of kernels; it says nothing before it is told to. */
export class Server {
  readonly asked: string[] = [];

  /** Say what a kernel is, to those who asked and who ask from now on. */
  say(id: string, level: string | null): void {
    this._levels.set(id, level);
    this._waiting.get(id)?.forEach(answer => {
      answer({ level, policy: null });
    });
    this._waiting.delete(id);
  }

  getIsolation(
    id: string
  ): Promise<{ level: string | null; policy: string | null }> {
    this.asked.push(id);
    const level = this._levels.get(id);
    return level === undefined
      ? new Promise(answer => {
          this._waiting.set(id, [...(this._waiting.get(id) ?? []), answer]);
        })
      : Promise.resolve({ level, policy: null });
  }

  private readonly _levels = new Map<string, string | null>();
  private readonly _waiting = new Map<
    string,
    ((answer: { level: string | null; policy: string | null }) => void)[]
  >();
}

/** A notebook, as far as its gate sees it. */
export class Notebook {
  constructor(
    server: Server,
    readonly page = new PageGate(),
    levels = new KernelLevels(server, { specs: null })
  ) {
    const session = new SessionGate(this.context, levels);
    page.add(session, this.context);
    this.gate = new Gate(page);
    this.gate.bind(session);
  }

  /** Have this kernel now; the same id is the same kernel. */
  connect(id: string): void {
    const known = this._kernel?.id === id ? this._kernel : null;
    this._kernel =
      known ??
      ({
        id,
        name: 'k',
        isDisposed: false,
        handleComms: true,
        registerCommTarget: () => undefined,
        removeCommTarget: () => undefined
      } as unknown as Connection);
    this.kernelChanged.emit({ newValue: this._kernel });
  }

  get kernel(): Connection | null {
    return this._kernel;
  }

  readonly kernelChanged = new Signal<this, { newValue: Connection | null }>(
    this
  );
  readonly disposed = new Signal<this, void>(this);
  readonly context = {
    isReady: false,
    ready: new Promise<void>(() => undefined),
    session: null,
    kernelChanged: this.kernelChanged,
    disposed: this.disposed
  } as unknown as GateContext;
  readonly gate: Gate;
  private _kernel: Connection | null = null;
}

/** Let everything happen that waits for nothing. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) {
    await Promise.resolve();
  }
}

/**
 * Detects the first sandboxed kernel in a page of a server that had none when the page was loaded.
 */
import type { Kernel, KernelSpec } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import { KernelWatch } from '../../integrations/sessions';
import type { ISessionTrackers } from '../../integrations/sessions';
import type { KernelLevels } from './levels';

/** Where a sandboxed kernel could appear. */
export interface ISandboxSigns extends ISessionTrackers {
  kernelspecs: Pick<KernelSpec.IManager, 'specsChanged'>;
  levels: Pick<KernelLevels, 'ask'>;
  /** Whether a kernelspec is that of a sandboxed kernel. */
  hasSpecs: () => boolean;
}

/** Call back once: when such a kernelspec is added, or such a kernel appears. */
export class SandboxWatch implements IDisposable {
  constructor(
    private readonly _signs: ISandboxSigns,
    private readonly _onFound: () => void
  ) {
    _signs.kernelspecs.specsChanged.connect(this._onSpecsChanged, this);
    this._kernels = new KernelWatch(_signs, kernel => {
      void this._ask(kernel);
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._kernels.dispose();
    Signal.clearData(this);
  }

  private _onSpecsChanged(): void {
    if (this._signs.hasSpecs()) {
      this._find();
    }
  }

  private async _ask(kernel: Kernel.IKernelConnection): Promise<void> {
    if ((await this._signs.levels.ask(kernel)) === 'sandboxed') {
      this._find();
    }
  }

  private _find(): void {
    if (!this._isDisposed) {
      this.dispose();
      this._onFound();
    }
  }

  private _isDisposed = false;
  private readonly _kernels: IDisposable;
}

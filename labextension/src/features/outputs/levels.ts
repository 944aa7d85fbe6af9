/**
 * Finds out from the server whether a kernel is sandboxed. The kernel itself is never asked.
 */
import { PageConfig } from '@jupyterlab/coreutils';
import type { Kernel, KernelSpec } from '@jupyterlab/services';

import { RequestError } from '../../api/errors';
import type { IIsolation } from '../../api/protocol';

/** `unknown`: the server did not answer, or does not know at present. */
export type Level = 'plain' | 'sandboxed' | 'unknown';

/** Answers on behalf of the server. */
export interface ILevelSource {
  getIsolation(kernelId: string): Promise<IIsolation>;
}

/** The kernelspecs that the server lists. */
export interface ISpecSource {
  readonly specs: KernelSpec.ISpecModels | null;
}

/** The name of the provisioner of sandboxed kernels in kernelspecs. */
const PROVISIONER = 'agentbox-sandbox';

/** Remembers the server's answers: a kernel keeps its level, even when it restarts. */
export class KernelLevels {
  constructor(
    private readonly _source: ILevelSource,
    private readonly _specs: ISpecSource,
    private readonly _onPolicy: (policy: string) => void = () => undefined
  ) {}

  /** The server's answer about a kernel, if it was asked before. */
  known(kernelId: string): Level | undefined {
    return this._known.get(kernelId);
  }

  async ask(kernel: Pick<Kernel.IModel, 'id' | 'name'>): Promise<Level> {
    const known = this._known.get(kernel.id);
    if (known) {
      return known;
    }
    const level = await this._ask(kernel);
    if (level !== 'unknown') {
      this._known.set(kernel.id, level);
    }
    return level;
  }

  private async _ask(
    kernel: Pick<Kernel.IModel, 'id' | 'name'>
  ): Promise<Level> {
    try {
      const { level, policy } = await this._source.getIsolation(kernel.id);
      if (policy !== null) {
        this._onPolicy(policy);
      }
      if (level === null) {
        return 'unknown';
      }
      return isPlain(level) ? 'plain' : 'sandboxed';
    } catch (error) {
      const isAbsent = error instanceof RequestError && error.status === 404;
      return isAbsent ? this._askSpecs(kernel.name) : 'unknown';
    }
  }

  /** If the server extension is off, the kernelspec still says what starts the kernel. */
  private _askSpecs(name: string): Level {
    const spec = this._specs.specs?.kernelspecs[name];
    if (!spec) {
      return 'unknown';
    }
    return isSandboxed(spec) ? 'sandboxed' : 'plain';
  }

  private readonly _known = new Map<string, Level>();
}

/**
 * Whether what a kernel of this level shows is trusted like the person's own. A remote one is not, if the administrator
 * does not say so: it has no token of this server, and code in the page would be its way to act as the person.
 */
function isPlain(level: string): boolean {
  const trustsRemote =
    PageConfig.getOption('agentboxTrustsRemoteOutputs') === 'true';
  return level === 'none' || (level === 'remote' && trustsRemote);
}

/** Whether a kernelspec is that of a sandboxed kernel. */
export function isSandboxed(spec: KernelSpec.ISpecModel): boolean {
  const provisioner = spec.metadata?.['kernel_provisioner'] as
    { provisioner_name?: unknown } | undefined;
  return provisioner?.provisioner_name === PROVISIONER;
}

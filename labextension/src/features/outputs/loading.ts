/**
 * Loads the guard of outputs into a page with sandboxed kernels, or where there may be some.
 */
import { showErrorMessage } from '@jupyterlab/apputils';
import { PageConfig } from '@jupyterlab/coreutils';

import { SessionGates } from './gate';
import { OutputsHold } from './hold';
import type { IOutputsContext } from './installation';
import { isSandboxed } from './levels';
import type { ISpecSource, KernelLevels } from './levels';
import { SandboxWatch } from './presence';
import type { ISandboxSigns } from './presence';

/** Milliseconds before a load that failed is tried again; doubled each time, up to the second number. */
const PAUSE = 1000;
const LONGEST_PAUSE = 60_000;

/** Milliseconds that the start of the application waits for the guard. */
const PATIENCE = 10_000;

/** The page, and who knows the levels of its kernels. */
export interface IGuardedPage extends Omit<IOutputsContext, 'sessions'> {
  levels: KernelLevels;
}

/** Load until it works; `onFailure` is called once, after the first failure. */
export async function loadPatiently<T>(
  load: () => Promise<T>,
  onFailure: (error: unknown) => void
): Promise<T> {
  for (let pause = PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    try {
      return await load();
    } catch (error) {
      if (pause === PAUSE) {
        onFailure(error);
      }
      await new Promise(resolve => {
        window.setTimeout(resolve, pause);
      });
    }
  }
}

/**
 * Hold back outputs before the application opens any, and guard them; if the server has no sandboxed kernels, as soon as it
 * has. Waits for the guard, but not for long: the application appears only afterwards, and what is held back is safe.
 */
export async function guardOutputs(
  context: IGuardedPage,
  kernelspecs: ISpecSource & ISandboxSigns['kernelspecs']
): Promise<void> {
  // Only a server that says that it has no sandboxed kernels is believed; one that says nothing may have some.
  if (PageConfig.getOption('agentboxSandboxedKernels') !== 'false') {
    await Promise.race([install(context), patience()]);
    return;
  }
  const hasSpecs = (): boolean =>
    Object.values(kernelspecs.specs?.kernelspecs ?? {}).some(
      spec => spec && isSandboxed(spec)
    );
  new SandboxWatch({ ...context, kernelspecs, hasSpecs }, () => {
    void install(context);
  });
}

function patience(): Promise<void> {
  return new Promise(resolve => {
    window.setTimeout(resolve, PATIENCE);
  });
}

/** Hold back all outputs, load their guard, and let them go on under it. */
async function install(context: IGuardedPage): Promise<void> {
  const { trans } = context.language;
  const sessions = new SessionGates(context.levels);
  const held = new OutputsHold({ ...context, sessions });
  const { OutputsGuard } = await loadPatiently(
    () => import(/* webpackChunkName: "outputs-guard" */ './installation'),
    error => {
      console.error('Jupyter AgentBox: the guard of outputs is missing', error);
      void showErrorMessage(
        trans.__('Outputs are held back'),
        trans.__(
          'The part of AgentBox that guards the page against outputs of sandboxed kernels could not be loaded. Until it is, no outputs are shown. AgentBox keeps trying to load it. If that does not help, reload the page.'
        )
      );
    }
  );
  new OutputsGuard({ ...context, sessions }).install(held);
}

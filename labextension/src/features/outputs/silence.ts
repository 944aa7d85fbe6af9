/**
 * Kernels whose comms a page refuses for a while.
 */
import type { Kernel } from '@jupyterlab/services';

interface ISilence {
  /** Whether the connection handled comms before. */
  handled: boolean;
  /** Who wants no comms; empty while they are handled. */
  by: Set<object>;
}

/**
 * Let a kernel's connection handle no comms, until all who asked for it call `unsilence`. Targets can still be registered
 * and removed.
 */
export function silence(kernel: Kernel.IKernelConnection, by: object): void {
  let state = silences.get(kernel);
  if (!state) {
    state = { handled: kernel.handleComms, by: new Set() };
    silences.set(kernel, state);
    keepTargets(kernel, state);
  }
  if (state.by.size === 0) {
    state.handled = kernel.handleComms;
  }
  state.by.add(by);
  kernel.handleComms = false;
}

/** Take back a `silence` of the same caller, if there was one. */
export function unsilence(kernel: Kernel.IKernelConnection, by: object): void {
  const state = silences.get(kernel);
  if (state?.by.delete(by) && state.by.size === 0) {
    kernel.handleComms = state.handled;
  }
}

/** A connection changes its targets only while it handles comms: let it, for the call. No message comes in between. */
function keepTargets(kernel: Kernel.IKernelConnection, state: ISilence): void {
  const always =
    <A extends unknown[]>(method: (...args: A) => void) =>
    (...args: A): void => {
      if (state.by.size === 0) {
        method(...args);
        return;
      }
      kernel.handleComms = state.handled;
      try {
        method(...args);
      } finally {
        kernel.handleComms = false;
      }
    };
  kernel.registerCommTarget = always(kernel.registerCommTarget.bind(kernel));
  kernel.removeCommTarget = always(kernel.removeCommTarget.bind(kernel));
}

const silences = new WeakMap<Kernel.IKernelConnection, ISilence>();

/**
 * Says how far the kernel that asks is kept from the rest of the machine.
 */
import { PageConfig } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** The level in words; a level that this page does not know is named as it is. */
export function describeIsolation(
  level: string | undefined,
  trans: TranslationBundle
): string {
  switch (level) {
    case 'bubblewrap':
      return trans.__('Sandboxed kernel (bubblewrap)');
    case 'bubblewrap-host-proc':
      return trans.__(
        'Sandboxed kernel (bubblewrap, can see other process names)'
      );
    case 'landlock':
      return trans.__('Sandboxed kernel (Landlock, no namespaces)');
    case 'srt':
      return trans.__('Sandboxed kernel (srt)');
    case 'remote': {
      const label = PageConfig.getOption('agentboxRemoteKernels');
      return label
        ? trans.__('Remote kernel: %1', label)
        : trans.__('Remote kernel; its access is not known here');
    }
    case 'none':
    case undefined:
      return trans.__('Not sandboxed: this code runs with your permissions');
    default:
      return trans.__('Isolation: %1', level);
  }
}

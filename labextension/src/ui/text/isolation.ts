/**
 * Says how far the kernel that asks is kept from the rest of the machine.
 */
import { PageConfig } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IToolCall } from '../../api/protocol';

/**
 * The level in words, and whether the user chose settings of the sandbox where
 * an administrator could have. A level that this page does not know is named as
 * it is.
 */
export function describeIsolation(
  call: Pick<IToolCall, 'isolation' | 'has_own_settings'>,
  trans: TranslationBundle
): string {
  const level = describeLevel(call.isolation, trans);
  return call.has_own_settings === true
    ? trans.__("%1, with its user's own settings", level)
    : level;
}

function describeLevel(
  level: string | undefined,
  trans: TranslationBundle
): string {
  switch (level) {
    case 'bubblewrap':
      return trans.__(
        'Sandboxed: this code reaches only the files and addresses that its sandbox allows (bubblewrap)'
      );
    case 'bubblewrap-host-proc':
      return trans.__(
        'Sandboxed: this code reaches only the files and addresses that its sandbox allows, and can see the command lines of other programs (bubblewrap-host-proc)'
      );
    case 'landlock':
      return trans.__(
        'Sandboxed: this code reaches only the files and addresses that its sandbox allows, and can see which other files exist (landlock)'
      );
    case 'srt':
      return trans.__(
        'Sandboxed: this code reaches only the files and addresses that its sandbox allows (srt)'
      );
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

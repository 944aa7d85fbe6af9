/**
 * What commands say about their arguments, for people and agents that run them.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';

type Description = Pick<CommandRegistry.ICommandOptions, 'describedBy'>;

/** A command without arguments. */
export const NO_ARGUMENTS = {
  describedBy: { args: { type: 'object', properties: {} } }
} satisfies Description;

/** A command that creates a file. */
export function inDirectory(trans: TranslationBundle) {
  return {
    describedBy: {
      args: {
        type: 'object',
        properties: {
          cwd: {
            type: 'string',
            description: trans.__(
              'The directory of the notebook; by default, that of the file browser'
            )
          }
        }
      }
    }
  } satisfies Description;
}

/**
 * The messages of errors, as a page can show them.
 */
import { label } from './visibleText';

/** The message of an error, on one line and of limited length; empty if it has none. */
export function messageOf(error: unknown, length = 500): string {
  return label(error instanceof Error ? error.message : '', length);
}

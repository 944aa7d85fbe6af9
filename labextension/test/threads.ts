/**
 * Threads and items for tests.
 */
import type { IThread } from '../src/api/threads';

/** An idle thread, with some fields replaced. */
export function thread(id: string, fields: Partial<IThread> = {}): IThread {
  return {
    id,
    name: `thread ${id}`,
    notebook_path: 'orders.ipynb',
    is_archived: false,
    state: 'idle',
    turn_id: null,
    kernel_id: null,
    last_prompt: 'Which sold best?',
    steps: 1,
    usage: { requests: 1, input_tokens: 1200, output_tokens: 34 },
    ...fields
  };
}

/** The data of an item in an output. */
export function itemData(
  item: object,
  isComplete = true
): Record<string, unknown> {
  return {
    thread_id: 'h1',
    turn_id: 't1',
    item: { id: 'i1', ...item },
    is_complete: isComplete
  };
}

import { CommandRegistry } from '@lumino/commands';

import type { IApproval, IQuestion } from '../../src/api/protocol';
import type { IApprovalPanel } from '../../src/internalTokens';
import { addCommands, COMMANDS } from '../../src/shell/commands';
import { approval, question, trans } from '../examples';

/** What happens when the oldest of these requests is gone to. */
async function goToOldest(
  pending: IApproval[],
  isOpen: boolean,
  isShown = true,
  questions: IQuestion[] = []
): Promise<string[]> {
  const deeds: string[] = [];
  const registry = new CommandRegistry();
  addCommands(registry, {
    panel: {
      open: () => deeds.push('panel'),
      focusRequest: (id: string) => deeds.push(`panel ${id}`),
      focusQuestion: (id: string) => deeds.push(`panel ${id}`)
    } as unknown as IApprovalPanel,
    model: {
      pending,
      get: id => ({ approval: approval({ id }), state: 'loaded' })
    },
    questions: { questions },
    origins: {
      isOpen: () => isOpen,
      reveal: ({ id }, questionId) => {
        deeds.push(['cell', id, questionId].filter(Boolean).join(' '));
        return Promise.resolve(isShown);
      }
    },
    refresh: () => Promise.resolve(),
    trans
  });
  await registry.execute(COMMANDS.oldestRequest);
  return deeds;
}

const two = [approval({ id: 'a1' }), approval({ id: 'a2' })];

test('the oldest request is gone to in its notebook, if that is open', async () => {
  expect(await goToOldest(two, true)).toEqual(['cell a1']);
  expect(await goToOldest(two, true, false)).toEqual(['cell a1', 'panel a1']);
});

test('else in the panel, which opens where nothing waits', async () => {
  expect(await goToOldest(two, false)).toEqual(['panel a1']);
  expect(await goToOldest([], true)).toEqual(['panel']);
});

test('a question that was asked before the oldest request was made is gone to first', async () => {
  const early = [question({ id: 'q1', asked_at: '2025-12-31T23:00:00Z' })];
  const late = [question({ id: 'q1', asked_at: '2026-12-31T23:00:00Z' })];
  expect(await goToOldest(two, true, true, early)).toEqual(['cell r1 q1']);
  expect(await goToOldest(two, true, false, early)).toEqual([
    'cell r1 q1',
    'panel q1'
  ]);
  expect(await goToOldest(two, false, true, early)).toEqual(['panel q1']);
  expect(await goToOldest(two, true, true, late)).toEqual(['cell a1']);
  expect(await goToOldest([], false, true, late)).toEqual(['panel q1']);
});

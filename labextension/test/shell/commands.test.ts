import { CommandRegistry } from '@lumino/commands';

import type { IApproval } from '../../src/api/protocol';
import type { IApprovalPanel } from '../../src/internalTokens';
import { addCommands, COMMANDS } from '../../src/shell/commands';
import { approval, trans } from '../examples';

/** What happens when the oldest of these requests is gone to. */
async function goToOldest(
  pending: IApproval[],
  isOpen: boolean,
  isShown = true
): Promise<string[]> {
  const deeds: string[] = [];
  const registry = new CommandRegistry();
  addCommands(registry, {
    panel: {
      open: () => deeds.push('panel'),
      focusRequest: (id: string) => deeds.push(`panel ${id}`)
    } as unknown as IApprovalPanel,
    model: { pending },
    origins: {
      isOpen: () => isOpen,
      reveal: ({ id }) => {
        deeds.push(`cell ${id}`);
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

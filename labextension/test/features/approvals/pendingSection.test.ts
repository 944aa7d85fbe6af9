import { Widget } from '@lumino/widgets';

import { PendingSection } from '../../../src/features/approvals/PendingSection';
import { ApprovalModel } from '../../../src/model/approvals';
import type { ICardContext } from '../../../src/ui/context';
import { approval, language, origins, source } from '../../examples';

let idle: typeof window.requestIdleCallback;

/** The page is never idle: JupyterLab never says that something is rendered. */
beforeEach(() => {
  idle = window.requestIdleCallback;
  window.requestIdleCallback = () => 0;
});

afterEach(() => {
  window.requestIdleCallback = idle;
});

/** The list of a page, and the model that it shows. */
function pendingSection(): { section: PendingSection; model: ApprovalModel } {
  const model = new ApprovalModel(source());
  const context = { ...language, model, origins, nameOf: () => '' };
  const section = new PendingSection(context as unknown as ICardContext);
  return { section, model };
}

test('a card is found once it is in the document, also where the page is never idle', async () => {
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  model.remember([approval({ id: 'a1' })]);
  const card = await section.find('a1');
  expect(card?.isConnected).toBe(true);
  expect(card?.dataset['requestId']).toBe('a1');
  section.dispose();
});

test('the table of a request is found without opening the row, which its own search opens', async () => {
  const { section, model } = pendingSection();
  Widget.attach(section, document.body);
  model.remember([approval({ id: 'a1' }), approval({ id: 'a2' })]);
  const table = await section.findTable('a2');
  expect(table?.classList).toContain('jp-AgentBox-batch');
  expect(table?.querySelector('[data-request-id]')).toBeNull();
  expect((await section.find('a2'))?.dataset['requestId']).toBe('a2');
  section.dispose();
});

test('who waits goes on when the list has gone', async () => {
  const { section } = pendingSection();
  Widget.attach(section, document.body);
  const waiting = section.rendered();
  section.dispose();
  await expect(waiting).resolves.toBeUndefined();
});

import { Widget } from '@lumino/widgets';

import { PendingSection } from '../../../src/features/approvals/PendingSection';

/** A list on a page that is never idle: JupyterLab never says that it is rendered. */
class BusySection extends PendingSection {
  protected override onUpdateRequest(): void {
    this.renderPromise = new Promise(() => undefined);
  }
}

test('the list is taken to be on screen also where the page is never idle', async () => {
  const context = {} as ConstructorParameters<typeof PendingSection>[0];
  const section = new BusySection(context);
  Widget.attach(section, document.body);
  await expect(section.rendered()).resolves.toBeUndefined();
  section.dispose();
});

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IStatusBar } from '@jupyterlab/statusbar';
import { Signal } from '@lumino/signaling';

import { statusPlugin } from '../../src/shell/statusPlugin';

test('a server without the extension has no item in the status bar', async () => {
  const changed = new Signal<object, string | null>({});
  const model = { changed, pending: [], connection: 'connecting' };
  const items: IStatusBar.IItem[] = [];
  const statusBar = {
    registerStatusItem: (_: string, item: IStatusBar.IItem) => items.push(item)
  };
  const app = {} as JupyterFrontEnd;
  await statusPlugin.activate(app, model, {}, {}, statusBar, null, null);
  const [item] = items;
  const seen: (boolean | undefined)[] = [item.isActive?.()];
  item.activeStateChanged?.connect(() => {
    seen.push(item.isActive?.());
  });
  for (const connection of ['absent', 'connected']) {
    model.connection = connection;
    changed.emit(null);
  }
  expect(seen).toEqual([true, false, true]);
});

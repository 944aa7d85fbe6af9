import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

import { showPage } from '../../src/ui/showPage';

/** A shell that has room in one area; returns where pages were added, and which were activated. */
function shellWith(room: string) {
  const added: string[] = [];
  const activated: string[] = [];
  const shell = {
    add: (page: Widget, area: string) => {
      added.push(area);
      if (area === room) {
        Widget.attach(page, document.body);
      }
    },
    activateById: (id: string) => activated.push(id)
  } as unknown as JupyterFrontEnd.IShell;
  return { shell, added, activated };
}

test.each([
  ['main', ['main']],
  ['right', ['main', 'right']]
])('a page is shown where there is room: %s', (room, tried) => {
  const { shell, added, activated } = shellWith(room);
  const page = new Widget();
  page.id = 'page';
  showPage(shell, page);
  showPage(shell, page);
  expect(added).toEqual(tried);
  expect(activated).toEqual(['page', 'page']);
  page.dispose();
});

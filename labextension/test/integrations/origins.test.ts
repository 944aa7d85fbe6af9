import { nullTranslator } from '@jupyterlab/translation';
import type { JupyterFrontEnd } from '@jupyterlab/application';

import { Origins } from '../../src/integrations/origins';
import { approval } from '../examples';

test.each([
  ['orders.ipynb', true],
  ['reports/console-1.ipynb', true],
  ['console-1-3823d80f-0c0e-4d0a-8d0a-0123456789ab', false],
  ['reports/console-12-3823d80f-0c0e-4d0a-8d0a-0123456789ab', false],
  [null, false]
])(
  'a request from %s has a place to go to, though nothing is open: %s',
  (path, hasPlace) => {
    const origins = new Origins({
      shell: {} as JupyterFrontEnd.IShell,
      docManager: null,
      notebooks: null,
      consoles: null,
      trans: nullTranslator.load('')
    });
    const { call } = approval();
    const request = approval({ call: { ...call, notebook_path: path } });
    expect(origins.hasPlace(request)).toBe(hasPlace);
  }
);

import { MimeModel } from '@jupyterlab/rendermime';
import type { IRenderMime } from '@jupyterlab/rendermime-interfaces';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';

import { CARD_MIME_TYPE } from '../../src/api/protocol';
import { ITEM_MIME_TYPE } from '../../src/api/threads';
import { ApprovalModel } from '../../src/model/approvals';
import { cardRendererFactory } from '../../src/ui/card/CardRenderer';
import { itemRendererFactory } from '../../src/ui/items/ItemRenderer';
import { approval, language, origins, source } from '../examples';
import { itemData } from '../threads';

const model = new ApprovalModel(source());
const { call } = approval();
model.remember([
  approval({ id: 'a1', call: { ...call, tool: 'first' } }),
  approval({ id: 'a2', call: { ...call, tool: 'second' } })
]);
const context = { ...language, model, origins, nameOf: () => 'Ada' };

afterAll(() => {
  Signal.clearData(model);
});

const message = (text: string): Record<string, unknown> =>
  itemData({ type: 'notice', text });

test.each([
  [
    CARD_MIME_TYPE,
    cardRendererFactory(context),
    { request_id: 'a1' },
    { request_id: 'a2' }
  ],
  [
    ITEM_MIME_TYPE,
    itemRendererFactory(context),
    message('first'),
    message('second')
  ]
])(
  'who waits for %s to be rendered sees the model that was given last',
  async (mimeType, { factory }, first, second) => {
    const renderer = factory.createRenderer({
      mimeType
    } as IRenderMime.IRendererOptions);
    const show = async (data: object): Promise<string> => {
      await renderer.renderModel(
        new MimeModel({ data: { [mimeType]: data as never } })
      );
      return renderer.node.textContent ?? '';
    };
    Widget.attach(renderer as unknown as Widget, document.body);

    expect(await show(first)).toContain('first');
    expect(await show(second)).toContain('second');
    renderer.dispose();
  }
);

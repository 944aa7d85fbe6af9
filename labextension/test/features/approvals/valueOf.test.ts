import { valueOf } from '../../../src/features/approvals/valueOf';

test.each([
  ['tools.shop.get_order(order_id=1)', '_'],
  ['tools.shop.get_order(order_id=1)[0].status', '_'],
  ['tools.shop.get_order(\n    order_id=1,\n)', '_'],
  ['tools.shop.get_order(\n    order_id=1,\n);', null],
  ['await tools.shop.get_order.aio(order_id=1)', '_'],
  ['from x import tools\ntools.shop.get_order(order_id=1)\n\n', '_'],
  ['order = tools.shop.get_order(order_id=1042)', 'order'],
  [
    'order: Order = await tools.shop.get_order.aio(order_id=1042)\norder',
    'order'
  ],
  ['order = tools.shop.get_order(\n  order_id=1042\n)\nprint(order)', 'order'],
  ['orders["a"] = tools.shop.get_order(order_id=1)', null],
  ['orders[f("a")] = tools.shop.get_order(order_id=1)', null],
  ['total += tools.shop.get_order(order_id=1).total', null],
  ['total == tools.shop.get_order(order_id=1).total', null],
  ['print(tools.shop.get_order(order_id=1))', null],
  ['n = len(tools.shop.get_order(order_id=1))', null],
  [
    'x = tools.shop.get_order(order_id=1), tools.shop.get_order(order_id=2)',
    null
  ],
  ['tools.shop.get_order(order_id=1);', null],
  ['for i in range(3):\n    tools.shop.get_order(order_id=i)', null],
  ['[tools.shop.get_order(order_id=i) for i in range(3)]', null],
  ['tools.shop.get_order(order_id=1)\ntools.shop.get_order(order_id=2)', null],
  ['tools.shop.get_order(order_id=1)\n1 + 1', null],
  ['assert tools.shop.get_order(order_id=1)', null],
  ['%time tools.shop.get_order(order_id=1)', null],
  ['get()', null],
  ['', null]
])('%s: the value is in %s', (source, name) => {
  expect(valueOf(source, 'get_order')).toBe(name);
});

test('the function of a tool has a name that Python takes', () => {
  expect(valueOf('x = tools.shop.get_order()', 'get-order')).toBe('x');
});

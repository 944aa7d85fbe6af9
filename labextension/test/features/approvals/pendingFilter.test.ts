import { ExactNumber } from '../../../src/api/json';
import type { IJsonObject } from '../../../src/api/json';
import {
  contains,
  PendingFilter
} from '../../../src/features/approvals/pendingFilter';
import type { IApproval } from '../../../src/api/protocol';
import { approval } from '../../examples';

/** A request with these arguments. */
function withArguments(values: IJsonObject): IApproval {
  return approval({ call: { ...approval().call, arguments: values } });
}

test.each(['shop', 'DELETE_', 'shop.delete', 'Orders.ipynb', 'order_id=7'])(
  'a request is found by %s',
  text => {
    expect(contains(approval(), text)).toBe(true);
  }
);

test.each(['order_id=8', 'orders.ipynb order_id', 'c1', 'k1', 'pending'])(
  'a request is not found by %s',
  text => {
    expect(contains(approval(), text)).toBe(false);
  }
);

test('texts within arguments are found, and numbers by all of their digits', () => {
  const one = withArguments({
    note: 'Straße\nfor “Ada”',
    lines: [{ sku: 'X-1', price: new ExactNumber('149.0') }]
  });
  for (const text of ['straße', 'for “ada”', 'x-1', '149.0', 'note=str']) {
    expect(contains(one, text)).toBe(true);
  }
});

test('what cannot be seen is found as the page shows it', () => {
  const one = withArguments({ path: 'a\u202eb' });
  expect(contains(one, 'a\\u202eb')).toBe(true);
  expect(contains(one, 'ab')).toBe(false);
});

test('arguments that are not known yet are not searched', () => {
  const omitted = { size: 9, digest: '' } as unknown as NonNullable<
    IApproval['call']['omitted']
  >;
  const call = { ...approval().call, arguments: {}, omitted };
  expect(contains(approval({ call }), '7')).toBe(false);
  expect(contains(approval({ call }), 'delete_order')).toBe(true);
});

test('a filter accepts everything until it has a text, and tells of each change once', () => {
  const filter = new PendingFilter();
  let changes = 0;
  filter.changed.connect(() => {
    changes += 1;
  });
  filter.text = '  ';
  expect(filter.isActive).toBe(false);
  expect(filter.accepts(approval())).toBe(true);
  filter.text = ' shop ';
  filter.text = ' shop ';
  expect(filter.isActive).toBe(true);
  expect(filter.accepts(approval())).toBe(true);
  filter.text = 'bank';
  expect(filter.accepts(approval())).toBe(false);
  expect(changes).toBe(3);
});

import { Notification } from '@jupyterlab/apputils';

import { tellOfNoCard } from '../../../src/features/approvals/noCard';
import { approval, trans } from '../../examples';

test.each([
  ['pending', 'panel'],
  ['approved', 'history']
] as const)(
  'who finds no card of a request that is %s is told to look in the %s',
  (status, place) => {
    const told = jest.spyOn(Notification, 'info').mockReturnValue('n1');
    tellOfNoCard(approval({ status }), trans);
    expect(told.mock.calls[0][0]).toContain(place);
    told.mockRestore();
  }
);

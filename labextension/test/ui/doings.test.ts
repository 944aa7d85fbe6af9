import { Doings } from '../../src/ui/doings';
import { settle } from '../sessions';

test('an action that fails before it returns a promise has failed, and can be tried again', async () => {
  const doings = new Doings();
  const error = new Error('no such thing');
  doings.run('key', () => {
    throw error;
  });
  await settle();
  expect(doings.stateOf('key')).toEqual({ isBusy: false, error });

  const action = jest.fn(() => Promise.resolve());
  doings.run('key', action);
  expect(action).toHaveBeenCalledTimes(1);
});

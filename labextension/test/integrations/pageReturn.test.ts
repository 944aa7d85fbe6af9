import { onPageReturn } from '../../src/integrations/pageReturn';
import { FakeUser } from '../user';

test('another user calls back, and to learn who looks at the page does not', () => {
  const user = new FakeUser();
  const callback = jest.fn();
  const connection = onPageReturn(user, callback);
  user.become('ada');
  user.become('ada', 'blue');
  expect(callback).not.toHaveBeenCalled();
  user.become('ben');
  expect(callback).toHaveBeenCalledTimes(1);
  user.become('ada');
  expect(callback).toHaveBeenCalledTimes(2);
  connection.dispose();
  user.become('ben');
  expect(callback).toHaveBeenCalledTimes(2);
});

test('a page that is seen, or is connected, again calls back until it is disposed', () => {
  const callback = jest.fn();
  const connection = onPageReturn(new FakeUser('ada'), callback);
  document.dispatchEvent(new Event('visibilitychange'));
  window.dispatchEvent(new Event('online'));
  expect(callback).toHaveBeenCalledTimes(2);
  connection.dispose();
  document.dispatchEvent(new Event('visibilitychange'));
  window.dispatchEvent(new Event('online'));
  expect(callback).toHaveBeenCalledTimes(2);
});

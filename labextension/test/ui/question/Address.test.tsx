import { render } from '@testing-library/react';
import React from 'react';

import { Address, openPage, partsOf } from '../../../src/ui/question/Address';

test('the host is set apart as the browser will ask for it, and the rest is whole', () => {
  expect(partsOf('https://Shop.Example:8443/sign?order=7#top')).toEqual({
    before: 'https://',
    host: 'shop.example:8443',
    after: '/sign?order=7#top'
  });
  const { container } = render(<Address url="https://shop.example/sign?a=1" />);
  expect(container.textContent).toBe('https://shop.example/sign?a=1');
  expect(container.querySelector('strong')?.textContent).toBe('shop.example');
  expect(container.querySelector('a, img, link, iframe')).toBeNull();
});

test.each(['javascript:alert(1)', 'https://a@evil.example', 'data:x', 'x'])(
  'what is no address of a page has no host and opens nothing: %s',
  url => {
    const open = jest.spyOn(window, 'open').mockReturnValue(null);
    openPage(url);
    expect(partsOf(url)).toEqual({ before: '', host: '', after: url });
    expect(open).not.toHaveBeenCalled();
    open.mockRestore();
  }
);

test('a page opens in a tab that cannot reach this one', () => {
  const open = jest.spyOn(window, 'open').mockReturnValue(null);
  openPage('https://shop.example/sign');
  expect(open).toHaveBeenCalledWith(
    'https://shop.example/sign',
    '_blank',
    'noopener,noreferrer'
  );
  open.mockRestore();
});

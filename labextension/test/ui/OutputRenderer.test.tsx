import React from 'react';

import { OutputRenderer } from '../../src/ui/OutputRenderer';
import { settle } from '../sessions';

class Renderer extends OutputRenderer {
  override show(): Promise<void> {
    return this.renderContent();
  }

  protected content(): JSX.Element {
    return <p>content</p>;
  }
}

test('nothing waits for a renderer that is disposed before it has drawn', async () => {
  const renderer = new Renderer();
  let isResolved = false;
  void renderer.show().then(() => {
    isResolved = true;
  });
  await settle();
  expect(isResolved).toBe(false);

  renderer.dispose();
  await settle();
  expect(isResolved).toBe(true);
});

import { treatmentOf } from '../../../src/features/outputs/kinds';

test.each([
  ['text/plain', 'shown'],
  ['image/png', 'shown'],
  ['text/html', 'sanitized'],
  ['text/markdown', 'sanitized'],
  ['image/svg+xml', 'picture'],
  ['application/vnd.jupyter.widget-view+json', 'widget'],
  ['application/javascript', 'blocked'],
  ['application/vnd.vegalite.v5+json', 'blocked'],
  ['application/vnd.plotly.v1+json', 'blocked'],
  ['application/vnd.bokehjs_exec.v0+json', 'blocked'],
  ['a/type-of-tomorrow', 'blocked']
])('%s is %s', (mimeType, treatment) => {
  expect(treatmentOf(mimeType)).toBe(treatment);
});

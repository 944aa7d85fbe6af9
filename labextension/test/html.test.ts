import { examine } from '../src/outputs/html';

/** What a sanitizer that leaves text only makes of it: all findings come from what went in. */
function findings(dirty: string, clean = ''): string[] {
  return examine(dirty, clean).findings;
}

test.each([
  ['<script>x()</script>', 'script'],
  ['<p onclick="x()">a</p>', 'handler'],
  ['<img src=x OnError=x()>', 'handler'],
  ['<a href="javascript:x()">a</a>', 'link'],
  ['<a href=" java\nscript:x()">a</a>', 'link'],
  ['<a href="data:text/html,<script>x()</script>">a</a>', 'link'],
  ['<form action="vbscript:x">a</form>', 'link'],
  ['<button data-commandlinker-command="x">a</button>', 'command'],
  ['<iframe src="x"></iframe>', 'frame'],
  ['<iframe srcdoc="x"></iframe>', 'frame'],
  ['<object data="x"></object>', 'object'],
  ['<embed src="x">', 'object'],
  ['<style>a { color: red }</style>', 'style'],
  ['<link rel="stylesheet" href="x.css">', 'style'],
  ['<template><script>x()</script></template>', 'script'],
  ['<svg><path d=""/></svg>', 'other'],
  ['<math><mi>x</mi></math>', 'other'],
  ['<x-element>a</x-element>', 'other']
])('%s is found', (dirty, finding) => {
  expect(findings(dirty)).toContain(finding);
});

test('plain markup that is kept has nothing to find', () => {
  const html =
    '<table class="dataframe"><tr><td style="color: red">1</td></tr></table>';
  expect(examine(html, html)).toEqual({ html, findings: [] });
});

test('the style sheet before the table of a data frame is not missed', () => {
  const table = '<table><tbody><tr><td>1</td></tr></tbody></table>';
  expect(
    findings(
      `<div><style scoped>a {}</style>${table}</div>`,
      `<div>${table}</div>`
    )
  ).toEqual([]);
});

test('what could do most comes first', () => {
  expect(
    findings('<style>a {}</style><p onclick="x()">a</p><script>x()</script>')[0]
  ).toBe('script');
});

test.each([
  '<img src="https://example.org/x?secret">',
  '<img src="//example.org/x">',
  '<img srcset="https://example.org/x 2x">',
  '<video poster="https://example.org/x"></video>',
  '<video src="https://example.org/x"></video>',
  '<div style="background: url(https://example.org/x)">a</div>',
  '<div style="background: u\\72l(//example.org/x)">a</div>'
])('%s loads nothing from elsewhere', markup => {
  const { html, findings } = examine(markup, markup);
  expect(html).not.toContain('example.org');
  expect(findings).toEqual(['remote']);
});

test.each([
  '<img src="data:image/png;base64,AAAA">',
  '<img src="files/plot.png">',
  '<img src="attachment:plot.png">',
  '<a href="https://example.org/">a</a>'
])('%s is left as it is', html => {
  expect(examine(html, html)).toEqual({ html, findings: [] });
});

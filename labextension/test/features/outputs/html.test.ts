import { examine } from '../../../src/features/outputs/html';

/** What a sanitizer that leaves text only makes of it: all findings come from what went in. */
function findings(dirty: string, clean = ''): string[] {
  return examine(dirty, () => clean).findings;
}

/** A sanitizer that leaves everything. */
const same = (html: string): string => html;

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
  expect(examine(html, same)).toEqual({ html, findings: [] });
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
  const { html, findings } = examine(markup, same);
  expect(html).not.toContain('example.org');
  expect(findings).toEqual(['remote']);
});

test.each([
  '<img src="data:image/png;base64,AAAA">',
  '<img src="files/plot.png">',
  '<img src="attachment:plot.png">',
  '<a href="https://example.org/">a</a>'
])('%s is left as it is', html => {
  expect(examine(html, same)).toEqual({ html, findings: [] });
});

test.each([
  '<div class="lm-DockPanel-overlay">a</div>',
  '<div class="dataframe jp-AgentBox-card">a</div>',
  '<div id="jp-main-dock-panel">a</div>',
  '<button data-commandlinker-command="notebook:run-all-cells">a</button>',
  '<div style="position: relative; z-index: 99999999">a</div>',
  '<div style="margin: 0 0 -150px 0">a</div>',
  '<div style="margin-top:calc(1px - 9em)">a</div>',
  '<div style="color: red; position: fixed">a</div>',
  '<div style="transform: translateY(99px)">a</div>',
  '<div style="margin/**/: -9px">a</div>',
  '<div style="pointer-events: none">a</div>',
  '<div style="background: u\\72l(data:x)">a</div>'
])('%s answers to no rule of the page', markup => {
  const { html, findings } = examine(markup, same);
  expect(html).not.toMatch(
    /lm-|jp-|commandlinker|position|z-index|margin|transform|pointer|u.72l/
  );
  expect(html).toContain('>a<');
  expect(findings.filter(one => one !== 'command' && one !== 'remote')).toEqual(
    []
  );
});

test('what pandas, terminals and code need stays', () => {
  const html =
    '<table border="1" class="dataframe"><tbody><tr style="text-align: right;"><td>1</td></tr></tbody></table>' +
    '<span class="ansi-red-fg">a</span><code class="language-python">a</code>' +
    '<p style="color: red; margin: 0 auto; width: calc(100% - 2em)">a</p>';
  expect(examine(html, same)).toEqual({ html, findings: [] });
});

test('the sanitizer has the last word', () => {
  const given: string[] = [];
  const { html } = examine('<p class="jp-x">a</p>', dirty => {
    given.push(dirty);
    return dirty;
  });
  expect(given).toEqual(['<p class="jp-x">a</p>', '<p class="">a</p>']);
  expect(html).toBe(given[1]);
});

test('what does not become harmless is not shown', () => {
  const stubborn = (): string => '<p class="jp-x">a</p>';
  expect(examine('a', stubborn).html).toBe('');
});

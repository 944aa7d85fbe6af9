import { PageConfig } from '@jupyterlab/coreutils';

import { describeIsolation } from '../../../src/ui/text/isolation';
import { trans } from '../../examples';

test('a kernel without a sandbox is named as one', () => {
  expect(describeIsolation({ isolation: 'none' }, trans)).toContain(
    'Not sandboxed'
  );
  expect(describeIsolation({}, trans)).toContain('Not sandboxed');
});

test('every level of a sandbox reads differently', () => {
  const levels = [
    'bubblewrap',
    'bubblewrap-host-proc',
    'landlock',
    'srt',
    'newer'
  ];
  const texts = levels.map(level =>
    describeIsolation({ isolation: level }, trans)
  );
  expect(new Set(texts).size).toBe(levels.length);
  expect(texts[4]).toContain('newer');
  for (const [index, text] of texts.slice(0, 4).entries()) {
    expect(text).toMatch(
      /^Sandboxed: this code reaches only the files and addresses that its sandbox allows/
    );
    expect(text).toContain(`(${levels[index]})`); // as rules and the documentation name it
  }
});

test('of a remote kernel the administrator can say what it is', () => {
  expect(describeIsolation({ isolation: 'remote' }, trans)).toContain(
    'not known'
  );
  PageConfig.setOption('agentboxRemoteKernels', 'a pod for each user');
  expect(describeIsolation({ isolation: 'remote' }, trans)).toBe(
    'Remote kernel: a pod for each user'
  );
  PageConfig.setOption('agentboxRemoteKernels', '');
});

test('a sandbox whose settings an administrator did not make says so', () => {
  const call = { isolation: 'bubblewrap', has_own_settings: true };
  const plain = describeIsolation({ ...call, has_own_settings: false }, trans);
  expect(describeIsolation(call, trans)).toBe(
    `${plain}, with its user's own settings`
  );
});

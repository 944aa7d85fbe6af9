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
  expect(describeIsolation(call, trans)).toBe(
    "Sandboxed kernel (bubblewrap), with its user's own settings"
  );
  expect(describeIsolation({ ...call, has_own_settings: false }, trans)).toBe(
    'Sandboxed kernel (bubblewrap)'
  );
});

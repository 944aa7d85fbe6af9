import { PageConfig } from '@jupyterlab/coreutils';

import { describeIsolation } from '../../../src/ui/text/isolation';
import { trans } from '../../examples';

test('a kernel without a sandbox is named as one', () => {
  expect(describeIsolation('none', trans)).toContain('Not sandboxed');
  expect(describeIsolation(undefined, trans)).toContain('Not sandboxed');
});

test('every level of a sandbox reads differently', () => {
  const levels = [
    'bubblewrap',
    'bubblewrap-host-proc',
    'landlock',
    'srt',
    'newer'
  ];
  const texts = levels.map(level => describeIsolation(level, trans));
  expect(new Set(texts).size).toBe(levels.length);
  expect(texts[4]).toContain('newer');
});

test('of a remote kernel the administrator can say what it is', () => {
  expect(describeIsolation('remote', trans)).toContain('not known');
  PageConfig.setOption('agentboxRemoteKernels', 'a pod for each user');
  expect(describeIsolation('remote', trans)).toBe(
    'Remote kernel: a pod for each user'
  );
  PageConfig.setOption('agentboxRemoteKernels', '');
});

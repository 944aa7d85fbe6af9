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

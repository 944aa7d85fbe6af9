import { PageConfig } from '@jupyterlab/coreutils';

import { RequestError } from '../../../src/api/errors';
import { KernelLevels } from '../../../src/features/outputs/levels';
import type { ISpecSource } from '../../../src/features/outputs/levels';

const KERNEL = { id: 'k1', name: 'boxed' };

function specs(metadata: object): ISpecSource {
  const spec = { name: 'boxed', metadata };
  return {
    specs: { default: 'boxed', kernelspecs: { boxed: spec } }
  } as unknown as ISpecSource;
}

function answering(...answers: (string | null | Error)[]): {
  getIsolation: jest.Mock;
} {
  const getIsolation = jest.fn();
  for (const answer of answers) {
    if (answer instanceof Error) {
      getIsolation.mockRejectedValueOnce(answer);
    } else {
      getIsolation.mockResolvedValueOnce({ level: answer, policy: null });
    }
  }
  return { getIsolation };
}

afterEach(() => {
  PageConfig.setOption('agentboxTrustsRemoteOutputs', '');
});

test('a remote kernel is plain where the administrator trusts its outputs', async () => {
  PageConfig.setOption('agentboxTrustsRemoteOutputs', 'true');
  const levels = new KernelLevels(answering('remote'), specs({}));
  expect(await levels.ask(KERNEL)).toBe('plain');
});

const ABSENT = new RequestError(404, 'Not Found', null, null);

test.each([
  ['none', 'plain'],
  ['bubblewrap', 'sandboxed'],
  ['a level of tomorrow', 'sandboxed'],
  ['remote', 'sandboxed'],
  [null, 'unknown'],
  [new Error('no answer'), 'unknown'],
  [new RequestError(500, 'broken', null, null), 'unknown'],
  [new RequestError(403, 'Forbidden', null, null), 'unknown']
])('%s is %s', async (answer, level) => {
  const levels = new KernelLevels(answering(answer), specs({}));
  expect(await levels.ask(KERNEL)).toBe(level);
});

test('what the server said is kept, what it did not say is asked again', async () => {
  const source = answering(null, 'bubblewrap');
  const levels = new KernelLevels(source, specs({}));
  expect(await levels.ask(KERNEL)).toBe('unknown');
  expect(await levels.ask(KERNEL)).toBe('sandboxed');
  expect(await levels.ask(KERNEL)).toBe('sandboxed');
  expect(source.getIsolation).toHaveBeenCalledTimes(2);
});

test.each([
  [
    { kernel_provisioner: { provisioner_name: 'agentbox-sandbox' } },
    'sandboxed'
  ],
  [{ kernel_provisioner: { provisioner_name: 'local' } }, 'plain'],
  [{}, 'plain']
])('without the server extension %j is %s', async (metadata, level) => {
  const levels = new KernelLevels(answering(ABSENT), specs(metadata));
  expect(await levels.ask(KERNEL)).toBe(level);
});

test('without the server extension and the kernelspec nothing is known', async () => {
  const levels = new KernelLevels(answering(ABSENT), { specs: null });
  expect(await levels.ask(KERNEL)).toBe('unknown');
});

test('the policy of a page is told before the level', async () => {
  const policies: string[] = [];
  const getIsolation = (): Promise<{ level: string; policy: string }> =>
    Promise.resolve({ level: 'landlock', policy: "img-src 'self'" });
  const levels = new KernelLevels({ getIsolation }, specs({}), policy => {
    policies.push(policy);
    expect(levels.known(KERNEL.id)).toBeUndefined();
  });
  expect(await levels.ask(KERNEL)).toBe('sandboxed');
  expect(policies).toEqual(["img-src 'self'"]);
  expect(levels.known(KERNEL.id)).toBe('sandboxed');
});

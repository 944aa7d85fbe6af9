import type { IPolicy } from '../../src/api/rules';
import { RulesModel } from '../../src/model/rules';

test('the model tells of what changed, and keeps the last answer if there is none', async () => {
  const policy = { rules: [], revision: 'r1' } as unknown as IPolicy;
  const source = {
    getPolicy: jest.fn(() => Promise.resolve(policy)),
    putPolicy: jest.fn(() => Promise.resolve({ ...policy, revision: 'r2' })),
    tryRule: jest.fn()
  };
  const model = new RulesModel(source);
  const changes: string[] = [];
  model.changed.connect(() => changes.push(model.policy?.revision ?? ''));
  await model.refresh();
  await model.refresh();
  await model.save([], 'r1');
  source.getPolicy.mockRejectedValueOnce(new Error('gone'));
  await model.refresh();
  expect(changes).toEqual(['r1', 'r2']);
});

import { RequestError } from '../../src/api/errors';
import type { IGrant } from '../../src/api/protocol';
import { GrantsModel } from '../../src/model/grants';

function grants(...ids: string[]): IGrant[] {
  return ids.map(id => ({ id }) as IGrant);
}

function setUp(answers: IGrant[][]): {
  model: GrantsModel;
  revokeGrant: jest.Mock;
  changes: number[];
} {
  const revokeGrant = jest.fn(async () => undefined);
  const listGrants = async (): Promise<IGrant[]> => answers.shift() ?? [];
  const model = new GrantsModel({ listGrants, revokeGrant });
  const changes: number[] = [];
  model.changed.connect(() => changes.push(model.grants?.length ?? -1));
  return { model, revokeGrant, changes };
}

test('an answer that says nothing new changes nothing', async () => {
  const { model, changes } = setUp([
    grants('a'),
    grants('a'),
    grants('a', 'b')
  ]);
  for (let round = 0; round < 3; round++) {
    await model.refresh();
  }
  expect(changes).toEqual([1, 2]);
});

test('what is revoked is gone from the list, also if it had ended', async () => {
  const { model, revokeGrant } = setUp([grants('a'), []]);
  await model.refresh();
  revokeGrant.mockRejectedValueOnce(
    new RequestError(404, 'no grant', null, null)
  );
  await model.revoke('a');
  expect(model.grants).toEqual([]);
});

test('a revocation that the server refused is an error', async () => {
  const { model, revokeGrant } = setUp([grants('a')]);
  const refusal = new RequestError(403, 'no', null, null, 'needs_person');
  revokeGrant.mockRejectedValueOnce(refusal);
  await expect(model.revoke('a')).rejects.toBe(refusal);
  expect(model.grants).toEqual(grants('a'));
});

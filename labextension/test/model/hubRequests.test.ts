import { RequestError } from '../../src/api/errors';
import type { IHubRequestList } from '../../src/api/protocol';
import { HubRequestsModel } from '../../src/model/hubRequests';
import { hubList, hubRequest } from '../examples';

function setUp(answers: (IHubRequestList | Error)[]): {
  model: HubRequestsModel;
  changes: number[];
} {
  const listHubRequests = async (): Promise<IHubRequestList> => {
    const answer = answers.shift() ?? hubList([]);
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  };
  const now = (): number => Date.parse('2026-01-01T00:30:00Z');
  const model = new HubRequestsModel({ listHubRequests, now });
  const changes: number[] = [];
  model.changed.connect(() => changes.push(model.list.total));
  return { model, changes };
}

const AWAY = { ...hubList([]), problem: 'it does not answer' };

test('an answer that says nothing new changes nothing', async () => {
  const one = hubList([hubRequest()]);
  const { model, changes } = setUp([one, one, hubList([])]);
  for (let round = 0; round < 3; round++) {
    expect(await model.refresh()).toBe(true);
  }
  expect(changes).toEqual([1, 0]);
});

test('while the service is away stays what was known and still waits', async () => {
  const lapsed = hubRequest({ id: 'b', expires_at: '2026-01-01T00:20:00Z' });
  const { model } = setUp([hubList([hubRequest(), lapsed], 7), AWAY]);
  await model.refresh();
  expect(await model.refresh()).toBe(false);
  expect(model.list).toEqual({
    ...hubList([hubRequest()], 6),
    problem: AWAY.problem
  });
});

test('an answer that was overtaken is not taken', async () => {
  const answers: ((list: IHubRequestList) => void)[] = [];
  const model = new HubRequestsModel({
    listHubRequests: () => new Promise(done => answers.push(done)),
    now: () => 0
  });
  const asked = [model.refresh(), model.refresh()];
  answers[1](hubList([]));
  answers[0](hubList([hubRequest()]));
  await Promise.all(asked);
  expect(model.list.total).toBe(0);
});

test('who is not the user of the server is told nothing, also after other errors', async () => {
  const refused = new RequestError(403, 'not yours', null, null);
  const { model } = setUp([
    hubList([hubRequest()]),
    refused,
    new TypeError('no network')
  ]);
  await model.refresh();
  expect(await model.refresh()).toBe(false);
  expect(model.list.total).toBe(0);
  await model.refresh();
  expect(model.list.total).toBe(0);
});

test('a refusal that was overtaken, as by a login, is not taken', async () => {
  const answers: {
    take: (list: IHubRequestList) => void;
    refuse: (why: Error) => void;
  }[] = [];
  const model = new HubRequestsModel({
    listHubRequests: () =>
      new Promise((take, refuse) => answers.push({ take, refuse })),
    now: () => 0
  });
  const asked = [model.refresh(), model.refresh()];
  answers[1].take(hubList([hubRequest()]));
  answers[0].refuse(new RequestError(403, 'not yours', null, null));
  await Promise.all(asked);
  expect(model.list.total).toBe(1);
});

test('a server that is out of reach is no news of the service', async () => {
  const { model, changes } = setUp([
    hubList([hubRequest()]),
    new TypeError('no network')
  ]);
  await model.refresh();
  expect(await model.refresh()).toBe(false);
  expect(changes).toEqual([1]);
});

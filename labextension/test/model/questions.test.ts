import { RequestError } from '../../src/api/errors';
import type { IQuestion } from '../../src/api/protocol';
import { QuestionsModel } from '../../src/model/questions';
import { question } from '../examples';

function setUp(answers: IQuestion[][]): {
  model: QuestionsModel;
  answerQuestion: jest.Mock;
  changes: number[];
} {
  const answerQuestion = jest.fn(async () => undefined);
  const listQuestions = async (): Promise<IQuestion[]> => answers.shift() ?? [];
  const model = new QuestionsModel({ listQuestions, answerQuestion });
  const changes: number[] = [];
  model.changed.connect(() => changes.push(model.questions.length));
  return { model, answerQuestion, changes };
}

test('an answer of the server that says nothing new changes nothing', async () => {
  const { model, changes } = setUp([[question()], [question()], []]);
  for (let round = 0; round < 3; round++) {
    await model.refresh();
  }
  expect(changes).toEqual([1, 0]);
});

test('after an answer that was not taken the questions are those of the server', async () => {
  const { model, answerQuestion } = setUp([[question()], []]);
  await model.refresh();
  answerQuestion.mockRejectedValue(new RequestError(409, 'over', null, null));
  await expect(model.answer('q1', 'accept', { count: 3 })).rejects.toThrow(
    'over'
  );
  expect(answerQuestion).toHaveBeenCalledWith('q1', 'accept', { count: 3 });
  expect(model.questions).toEqual([]);
});

test('what was known stays while the server cannot be reached', async () => {
  const { model } = setUp([[question()]]);
  await model.refresh();
  const source = { answerQuestion: jest.fn(), listQuestions: jest.fn() };
  source.listQuestions.mockRejectedValue(new TypeError('no network'));
  Object.assign(model, { _source: source });
  await model.refresh();
  expect(model.questions).toEqual([question()]);
});

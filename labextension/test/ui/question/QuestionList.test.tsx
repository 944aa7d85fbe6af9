import { nullTranslator } from '@jupyterlab/translation';
import { Signal } from '@lumino/signaling';
import { render, screen } from '@testing-library/react';
import React from 'react';

import type { IQuestion } from '../../../src/api/protocol';
import { ApprovalModel } from '../../../src/model/approvals';
import { QuestionsModel } from '../../../src/model/questions';
import { CardProvider } from '../../../src/ui/context';
import type { ICardContext } from '../../../src/ui/context';
import { QuestionList } from '../../../src/ui/question/QuestionList';
import type { IQuestionListProps } from '../../../src/ui/question/QuestionList';
import { origins, question, source, trans } from '../../examples';

function context(): ICardContext {
  const model = new ApprovalModel(source());
  const places = {
    ...origins,
    describe: () => '',
    describePlace: () => 'orders.ipynb'
  };
  const nameOf = (): string => 'Ada';
  return { model, origins: places, nameOf, translator: nullTranslator, trans };
}

async function show(
  questions: IQuestion[],
  props: Partial<IQuestionListProps> = {}
): Promise<HTMLElement> {
  const model = new QuestionsModel({
    listQuestions: async () => questions,
    answerQuestion: async () => undefined
  });
  await model.refresh();
  const shared = context();
  const { container } = render(
    <CardProvider value={shared}>
      <QuestionList questions={model} {...props} />
    </CardProvider>
  );
  Signal.clearData(shared.model);
  return container;
}

function buttons(): (string | null)[] {
  return screen.queryAllByRole('button').map(({ textContent }) => textContent);
}

test('a question is a card of its own, and nothing on it allows', async () => {
  const container = await show([question()]);
  expect(
    screen.getByRole('group', { name: /The server “shop” asks you/ })
  ).toBeTruthy();
  expect(buttons()).toEqual(['Answer', 'Decline', 'Cancel']);
  expect(container.textContent).toContain('allows nothing');
  expect(container.querySelector('.jp-mod-question')).not.toBeNull();
  expect(container.querySelector('.jp-mod-allow')).toBeNull();
  expect(screen.queryByRole('banner')).toBeNull(); // a card is no page
});

test('the words of a server are text, and what hides in them is spelled out', async () => {
  const message = '<img src=x onerror=alert(1)> Pay \u202egnihton';
  const container = await show([question({ message, server: '<b>shop</b>' })]);
  expect(container.querySelector('img, b')).toBeNull();
  expect(container.textContent).toContain('<img src=x onerror=alert(1)>');
  expect(container.textContent).toContain('\\u202e');
});

test('a page is shown by its whole address, and no link leads there', async () => {
  const url = 'https://shop.example/sign?order=7';
  const container = await show([question({ mode: 'url', schema: null, url })]);
  expect(container.querySelector('.jp-AgentBox-address')?.textContent).toBe(
    url
  );
  expect(container.querySelector('a')).toBeNull();
  expect(buttons()).toEqual(['Open the page', 'Decline', 'Cancel']);
});

test('a form that asks for a secret says so', async () => {
  const schema = {
    type: 'object',
    properties: { x: { type: 'string', title: 'API key' } }
  };
  const container = await show([question({ schema })]);
  expect(container.textContent).toContain('This looks like a secret');
});

test.each([
  ['What is your API key?', { type: 'string' }, true],
  ['Who are you?', { type: 'string', description: 'Your password' }, true],
  ['Which token?', { type: 'string', enum: ['a', 'b'] }, false],
  ['Which token?', { type: 'boolean' }, false],
  ['Who are you?', { type: 'string', description: 'A name' }, false]
])(
  'so does one whose secret is named beside its field only: %s %j',
  async (message, field, isSecret) => {
    const schema = { type: 'object', properties: { value: field } };
    const container = await show([question({ message, schema })]);
    const text = container.textContent ?? '';
    expect(text.includes('This looks like a secret: value')).toBe(isSecret);
  }
);

test('where it is not known for which call a server asks, the card says so', async () => {
  const container = await show([question({ calls: 2 })]);
  expect(container.textContent).toContain('2 calls of this server are running');
});

test('under a call stand its own questions only', async () => {
  await show([question(), question({ id: 'q2', request_id: 'r2' })], {
    requestId: 'r2'
  });
  expect(screen.getAllByRole('group', { name: /asks you/ })).toHaveLength(1);
});

test('in a widget there is no button that answers, but one that leads to the panel', async () => {
  const onOpenInPanel = jest.fn();
  await show([question()], { isInWidget: true, onOpenInPanel });
  expect(buttons()).toEqual(['Answer in the panel']);
  screen.getByRole('button').click();
  expect(onOpenInPanel).toHaveBeenCalled();
});

import { formOf, presets } from '../../../src/ui/question/questionForm';

const SCHEMA = {
  type: 'object',
  properties: {
    count: { type: 'integer', title: 'Count', default: 2 },
    to: { type: 'string', title: 'Street', description: 'where to' }
  },
  required: ['to']
};

test('a title that says more than the name stands in the description', () => {
  expect(formOf(SCHEMA)).toEqual({
    type: 'object',
    properties: {
      count: { type: 'integer' },
      to: { type: 'string', description: 'Street: where to' }
    },
    required: ['to']
  });
});

test('a form opens with the values that its fields propose', () => {
  expect(presets(SCHEMA)).toEqual({ count: 2 });
  expect(presets({})).toEqual({});
});

import { CodeCellModel } from '@jupyterlab/cells';
import { Signal } from '@lumino/signaling';
import { PanelLayout, Widget } from '@lumino/widgets';
import { act } from '@testing-library/react';

import { ITEM_MIME_TYPE } from '../../../src/api/threads';
import { ThinkingWatch } from '../../../src/features/threads/thinking';
import type { IThinkingPanel } from '../../../src/features/threads/thinking';
import { languageOf } from '../../../src/ui/text/language';
import { itemData } from '../../threads';

/** A cell that was run in this page by the request `asked`. */
class Cell extends Widget {
  constructor(asked: string) {
    super();
    this.layout = new PanelLayout();
    this.outputArea.future.msg.header.msg_id = asked;
  }

  /** Put out an item, or change the last. */
  put(item: object, isComplete = true, isNew = true): void {
    const output = {
      output_type: 'display_data',
      data: { [ITEM_MIME_TYPE]: itemData(item as never, isComplete) as never },
      metadata: {}
    };
    act(() => {
      if (isNew) {
        this.model.outputs.add(output);
      } else {
        this.model.outputs.set(this.model.outputs.length - 1, output);
      }
    });
  }

  readonly model = new CodeCellModel();
  readonly outputArea = { future: { msg: { header: { msg_id: '' } } } };
}

/** A notebook whose kernel says what a test has it say. */
class Panel {
  readonly cell = new Cell('r1');
  readonly content = { widgets: [this.cell] };
  readonly sessionContext = {
    iopubMessage: new Signal<object, object>({}),
    kernelChanged: new Signal<object, object>({}),
    statusChanged: new Signal<object, string>({})
  };
  readonly disposed = new Signal<object, void>({});

  constructor() {
    Widget.attach(this.cell, document.body);
    new ThinkingWatch(this as unknown as IThinkingPanel, languageOf(null));
  }

  say(msg_type: string, content: object, parent = 'r1'): void {
    act(() => {
      this.sessionContext.iopubMessage.emit({
        header: { msg_type },
        parent_header: { msg_id: parent },
        content
      });
    });
  }

  begin(code = '%%agent\na', parent = 'r1'): void {
    this.say('execute_input', { code }, parent);
    pass(600);
  }

  /** What can be read under the cell. */
  get text(): string {
    return this.cell.node.textContent ?? '';
  }
}

function pass(milliseconds: number): void {
  act(() => {
    jest.advanceTimersByTime(milliseconds);
  });
}

beforeEach(() => {
  jest.useFakeTimers();
  document.body.replaceChildren();
});

afterEach(() => {
  jest.useRealTimers();
});

const CODE = { type: 'code_run', code: 'x', error: '' };

test('the line is there while the model is asked, and counts from each time anew', () => {
  const panel = new Panel();
  panel.say('execute_input', { code: '%%agent\na' });
  expect(panel.text).toBe('');
  pass(600);
  expect(panel.text).toBe('Thinking…');
  pass(4000);
  expect(panel.text).toBe('Thinking…4 s');
  panel.cell.put({ type: 'agent_message', text: 'I', phase: null }, false);
  expect(panel.text).toBe('');
  panel.cell.put(
    { type: 'agent_message', text: 'I.', phase: null },
    true,
    false
  );
  pass(600);
  expect(panel.text).toBe('Thinking…');
  // Whatever waits for a person, or runs, is no thinking, also while they say something.
  panel.cell.put({ ...CODE, status: 'in_progress' }, false);
  panel.cell.put({ type: 'user_message', text: 'only October' });
  pass(600);
  expect(panel.text).toBe('');
});

test('the answer ends it, and so does the end of the cell', () => {
  const panel = new Panel();
  panel.begin();
  panel.cell.put({ ...CODE, status: 'completed' });
  pass(600);
  expect(panel.text).toBe('Thinking…');
  panel.cell.put({ type: 'agent_message', text: '3', phase: 'final_answer' });
  pass(600);
  expect(panel.text).toBe('');
  panel.begin();
  panel.say('status', { execution_state: 'idle' }, 'another');
  expect(panel.cell.node.childElementCount).toBe(1);
  panel.say('status', { execution_state: 'idle' });
  expect(panel.cell.node.childElementCount).toBe(0);
});

test.each(['restarting', 'autorestarting', 'dead'])(
  'a kernel that is %s has nobody wait',
  status => {
    const panel = new Panel();
    panel.begin();
    panel.sessionContext.statusChanged.emit(status);
    expect(panel.cell.node.childElementCount).toBe(0);
  }
);

test('other cells, and cells that another page runs, have no line', () => {
  const panel = new Panel();
  panel.begin('x = 1');
  panel.begin('%%agent\na', 'of another page');
  expect(panel.cell.node.childElementCount).toBe(0);
});

import { keepFromNotebook } from '../../../src/ui/guarded/keepFromNotebook';

/** An output with a button, in a page's notebook or elsewhere; returns what is heard there. */
function output(className: string): { button: HTMLElement; heard: Event[] } {
  const outer = document.createElement('div');
  outer.className = className;
  const node = document.createElement('div');
  const button = document.createElement('button');
  node.append(button);
  outer.append(node);
  document.body.append(outer);
  keepFromNotebook(node);
  const heard: Event[] = [];
  for (const name of ['mousedown', 'focusin', 'focusout', 'keydown']) {
    outer.addEventListener(name, event => heard.push(event));
  }
  return { button, heard };
}

function press(node: HTMLElement, button = 0): void {
  const init = { bubbles: true, button };
  node.dispatchEvent(new MouseEvent('mousedown', init));
}

function type(node: HTMLElement): void {
  node.dispatchEvent(new KeyboardEvent('keydown', { bubbles: true }));
}

test('a notebook hears of no press, key or focus in a card', () => {
  const { button, heard } = output('jp-Notebook');
  press(button);
  button.focus();
  type(button);
  expect(heard).toEqual([]);
});

test('a notebook hears that its context menu is asked for, and that the focus leaves the card', () => {
  const { button, heard } = output('jp-Notebook');
  press(button, 2);
  button.focus();
  button.blur();
  expect(heard.map(({ type }) => type)).toEqual(['mousedown', 'focusout']);
});

test('a notebook that was left in edit mode hears where the focus is, so that it does not take it', () => {
  const { button, heard } = output('jp-Notebook jp-mod-editMode');
  button.focus();
  const [event] = heard as FocusEvent[];
  expect([event.type, event.relatedTarget]).toEqual(['focusout', button]);
});

test('elsewhere all goes its way', () => {
  const { button, heard } = output('jp-CodeConsole');
  press(button);
  button.focus();
  type(button);
  expect(heard).toHaveLength(3);
});

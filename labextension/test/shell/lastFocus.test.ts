import { LastFocus } from '../../src/shell/lastFocus';

/** A button in the page, inside an element of a class. */
function button(inside = ''): HTMLButtonElement {
  const parent = document.createElement('div');
  parent.className = inside;
  const node = document.createElement('button');
  parent.append(node);
  document.body.append(parent);
  return node;
}

afterEach(() => {
  document.body.replaceChildren();
});

test('the focus goes back to where it was before the menu, which has gone', () => {
  const last = new LastFocus();
  const cell = button();
  const menu = button('lm-Menu');
  cell.focus();
  menu.focus();
  menu.remove();
  const goBack = last.hold();
  button('jp-Dialog').focus();
  (document.activeElement as HTMLElement).blur();
  goBack();
  expect(document.activeElement).toBe(cell);
});

test('a focus that something else has by then stays there', () => {
  const last = new LastFocus();
  button().focus();
  const goBack = last.hold();
  const other = button();
  other.focus();
  goBack();
  expect(document.activeElement).toBe(other);
});

test('what has gone meanwhile gets no focus', () => {
  const last = new LastFocus();
  const cell = button();
  cell.focus();
  const goBack = last.hold();
  cell.remove();
  goBack();
  expect(document.activeElement).toBe(document.body);
});

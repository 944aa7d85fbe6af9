import type { JupyterFrontEnd } from '@jupyterlab/application';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';

import { AgentBoxPanel } from '../../src/shell/sidePanel';
import type { IPanelSection, ISectionHandle } from '../../src/tokens';
import { trans } from '../examples';

let panel: AgentBoxPanel;
let restore: () => void;

const activateById = jest.fn((_: string) => {
  panel.show();
});

beforeEach(() => {
  const shell = { activateById } as unknown as JupyterFrontEnd.IShell;
  const restored = new Promise<void>(resolve => {
    restore = resolve;
  });
  panel = new AgentBoxPanel({ shell, restored, trans });
  Widget.attach(panel, document.body);
});

afterEach(() => {
  activateById.mockClear();
  panel.dispose();
});

function add(
  id: string,
  rank: number,
  more: Partial<IPanelSection> = {}
): ISectionHandle {
  const node = document.createElement('section');
  node.setAttribute('aria-label', id);
  const widget = new Widget({ node });
  return panel.addSection({ id, label: id, rank, widget, ...more });
}

function tabs(): HTMLElement[] {
  MessageLoop.flush();
  return [...panel.node.querySelectorAll<HTMLElement>('[role="tab"]')];
}

function texts(nodes: Iterable<Element>): string[] {
  return [...nodes].map(node => node.textContent ?? '');
}

/** The sections that are shown. */
function shown(): string[] {
  return [...panel.node.querySelectorAll('section')]
    .filter(node => !node.closest('.lm-mod-hidden'))
    .map(node => node.getAttribute('aria-label') ?? '');
}

function press(key: string): void {
  const event = new KeyboardEvent('keydown', { key, bubbles: true });
  document.activeElement?.dispatchEvent(event);
}

test('tabs stand in the order of their ranks, whenever they were added, and the first is open', () => {
  add('servers', 300);
  add('pending', 100);
  add('history', 200);
  add('others', 300);
  const order = ['pending', 'history', 'servers', 'others'];
  expect(texts(tabs())).toEqual(order);
  const sections = [...panel.node.querySelectorAll('section')];
  expect(sections.map(node => node.getAttribute('aria-label'))).toEqual(order);
  expect(shown()).toEqual(['pending']);
});

test('tabs and what they control name each other', () => {
  add('pending', 100);
  const [tab] = tabs();
  const box = document.getElementById(tab.getAttribute('aria-controls') ?? '');
  expect(tab.closest('[role="tablist"]')).not.toBeNull();
  expect(box?.getAttribute('role')).toBe('tabpanel');
  expect(box?.getAttribute('aria-labelledby')).toBe(tab.id);
  expect(tab.getAttribute('aria-selected')).toBe('true');
});

test('keys go along the tabs and open one', () => {
  add('pending', 100);
  add('history', 200);
  tabs()[0].focus();
  press('ArrowRight');
  expect(document.activeElement).toBe(tabs()[1]);
  press('Enter');
  expect(shown()).toEqual(['history']);
  expect(tabs().map(tab => tab.getAttribute('aria-selected'))).toEqual([
    'false',
    'true'
  ]);
});

test('what waits is counted at its tab, and in sum at the panel’s own', () => {
  const [pending, others] = [add('pending', 100), add('others', 200)];
  pending.count = 120;
  others.count = 2;
  const counts = tabs().map(tab => tab.dataset['agentboxBadge']);
  expect(counts).toEqual(['99+', '2']);
  expect(panel.title.caption).toBe('Approval requests (122 waiting)');
  expect(panel.title.dataset['agentbox-count']).toBe('99+');
  pending.count = 0;
  expect(tabs()[0].dataset['agentboxBadge']).toBeUndefined();
  others.dispose();
  expect(panel.title.caption).toBe('Approval requests');
  expect(panel.title.dataset['agentbox-count']).toBeUndefined();
});

test('a tab marks what is wrong, and says it', () => {
  const servers = add('servers', 300);
  servers.problem = 'A server has failed.';
  expect(tabs()[0].dataset['agentboxProblem']).toBe('!');
  expect(tabs()[0].title).toBe('A server has failed.');
  servers.problem = '';
  expect(tabs()[0].dataset['agentboxProblem']).toBeUndefined();
});

test('a section that shares a tab stands there under a heading, and names the tab only while it is alone', () => {
  const answers = add('answers', 360, { tab: 'rules' });
  expect(texts(tabs())).toEqual(['answers']);
  const rules = add('rules', 350);
  add('servers', 300);
  expect(texts(tabs())).toEqual(['servers', 'rules']);
  rules.expand();
  expect(shown()).toEqual(['rules', 'answers']);
  const headings = panel.node.querySelectorAll('h3:not(.lm-mod-hidden)');
  expect(texts(headings)).toEqual(['rules', 'answers']);
  answers.dispose();
  expect(shown()).toEqual(['rules']);
  expect(panel.node.querySelector('h3:not(.lm-mod-hidden)')).toBeNull();
});

test('a tab is opened for what is in it', () => {
  add('pending', 100);
  const rules = add('rules', 350);
  const chosen: string[] = [];
  panel.tabChosen.connect((_, id) => {
    chosen.push(id);
  });
  rules.expand();
  rules.expand();
  expect(shown()).toEqual(['rules']);
  expect(chosen).toEqual(['rules']);
});

test('the tab of the last visit is open once it is there, unless another was chosen', () => {
  const pending = add('pending', 100);
  panel.restoreTab('rules');
  expect(shown()).toEqual(['pending']);
  const rules = add('rules', 350);
  expect(shown()).toEqual(['rules']);
  rules.dispose();
  expect(shown()).toEqual(['pending']);
  add('history', 200).expand();
  panel.restoreTab('pending');
  expect(shown()).toEqual(['history']);
  pending.expand();
  expect(shown()).toEqual(['pending']);
});

test('a tab that was opened before the last visit is known stays open, if it was in front, too', () => {
  add('pending', 100).expand();
  add('rules', 350);
  panel.restoreTab('rules');
  expect(shown()).toEqual(['pending']);
});

test('a section is there once, and goes when it is disposed', () => {
  const pending = add('pending', 100);
  expect(() => add('pending', 200)).toThrow('pending');
  pending.dispose();
  expect(tabs()).toEqual([]);
  add('pending', 100);
  expect(tabs()).toHaveLength(1);
});

test('what was opened before the page is laid out as it was left is open afterwards', async () => {
  panel.hide();
  panel.reveal();
  panel.hide();
  restore();
  await Promise.resolve();
  expect(panel.isVisible).toBe(true);
});

test('laying the page out opens no panel that nobody wanted', async () => {
  panel.hide();
  restore();
  await Promise.resolve();
  expect(activateById).not.toHaveBeenCalled();
});

test('the toolbar has what acts on the panel at the start, and what leads elsewhere at the end', () => {
  const item = (text: string): Widget => {
    const node = document.createElement('button');
    node.textContent = text;
    return new Widget({ node });
  };
  panel.addToolbarItem('guide', item('Guide'), 'end');
  panel.addToolbarItem('reject', item('Reject'), 'start');
  panel.addToolbarItem('last', item('Last'), 'end');
  const toolbar = panel.node.querySelector('[role="toolbar"]');
  expect(toolbar?.getAttribute('aria-label')).toBe('AgentBox');
  expect(texts(toolbar?.children ?? [])).toEqual([
    'Reject',
    '',
    'Guide',
    'Last'
  ]);
});

test('a tab can be shown by its id, which opens the panel', () => {
  add('pending', 100);
  add('servers', 300);
  panel.showTab('servers');
  expect(shown()).toEqual(['servers']);
  expect(activateById).toHaveBeenCalledWith('jupyter-agentbox-panel');
  panel.showTab('unknown');
  expect(shown()).toEqual(['servers']);
});

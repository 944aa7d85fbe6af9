import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

import { AgentBoxPanel } from '../../src/shell/sidePanel';
import type { ISectionHandle } from '../../src/tokens';
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

function add(id: string, rank: number): ISectionHandle {
  const node = document.createElement('section');
  node.setAttribute('aria-label', id);
  const widget = new Widget({ node });
  return panel.addSection({ id, label: id, rank, widget });
}

/** What a screen reader and the Tab key come to, one after the other. */
function order(): string[] {
  return [...panel.node.querySelectorAll('h3, section')].map(
    node => node.getAttribute('aria-label') ?? ''
  );
}

test('sections stand in the order of their ranks, whenever they were added', () => {
  add('servers', 300);
  add('pending', 100);
  add('history', 200);
  add('others', 300);
  expect(order()).toEqual([
    'pending Section',
    'pending',
    'history Section',
    'history',
    'servers Section',
    'servers',
    'others Section',
    'others'
  ]);
});

test('what is in a section says what it is, and its box says nothing', () => {
  add('pending', 100);
  const box = panel.node.querySelector('.jp-AgentBox-section');
  expect(box?.getAttribute('role')).toBe('presentation');
  expect(box?.hasAttribute('aria-labelledby')).toBe(false);
});

test('what waits is counted at the title, and in sum at the tab', () => {
  const [pending, others] = [add('pending', 100), add('others', 200)];
  pending.count = 120;
  others.count = 2;
  const titles = [...panel.node.querySelectorAll('h3')];
  expect(titles.map(title => title.dataset['agentboxCount'])).toEqual([
    '99+',
    '2'
  ]);
  expect(panel.title.caption).toBe('Approval requests (122 waiting)');
  expect(panel.title.dataset['agentbox-count']).toBe('99+');
  pending.count = 0;
  expect(titles[0].dataset['agentboxCount']).toBeUndefined();
  others.dispose();
  expect(panel.title.caption).toBe('Approval requests');
  expect(panel.title.dataset['agentbox-count']).toBeUndefined();
});

test('a collapsed section is opened for what is in it', () => {
  const pending = add('pending', 100);
  const title = panel.node.querySelector('h3');
  title?.click();
  expect(title?.getAttribute('aria-expanded')).toBe('false');
  pending.expand();
  expect(title?.getAttribute('aria-expanded')).toBe('true');
});

test('a section is there once, and goes when it is disposed', () => {
  const pending = add('pending', 100);
  expect(() => add('pending', 200)).toThrow('pending');
  pending.dispose();
  expect(order()).toEqual([]);
  add('pending', 100);
  expect(order()).toHaveLength(2);
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

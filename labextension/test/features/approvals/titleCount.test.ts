import { Signal } from '@lumino/signaling';

import type {
  IApproval,
  IHubRequestList,
  IQuestion
} from '../../../src/api/protocol';
import { TabIcon } from '../../../src/features/approvals/tabIcon';
import { TitleCount } from '../../../src/features/approvals/titleCount';
import { approval, hubList, hubRequest, question } from '../../examples';

/** A model of which the tests say what waits. */
class Waiting {
  readonly changed = new Signal<never, string | null>(this as never);
  pending: IApproval[] = [];

  set(count: number): void {
    this.pending = Array.from({ length: count }, (_, n) =>
      approval({ id: String(n) })
    );
    this.changed.emit(null);
  }
}

/** The observers of the page have seen what changed. */
const observed = (): Promise<void> => new Promise(done => setTimeout(done));

function icons(): string[] {
  return [...document.querySelectorAll<HTMLLinkElement>('link')]
    .filter(({ rel }) => rel === 'icon')
    .map(({ className }) => className);
}

let hub: { changed: Signal<never, void>; list: IHubRequestList };
let model: Waiting;
let questions: { changed: Signal<never, void>; questions: IQuestion[] };
let title: TitleCount;

beforeEach(() => {
  document.head.innerHTML =
    '<title>orders.ipynb</title><link rel="icon" class="idle" href="http://localhost/idle.ico">';
  model = new Waiting();
  hub = { changed: new Signal({} as never), list: hubList([]) };
  questions = { changed: new Signal({} as never), questions: [] };
  title = new TitleCount({ model, hub, questions });
});

afterEach(() => {
  title.dispose();
});

test('what waits at the Hub counts, too', () => {
  model.set(2);
  hub.list = hubList([hubRequest()], 7);
  hub.changed.emit();
  expect(document.title).toBe('(9) orders.ipynb');
});

test('a question of a server counts, too', () => {
  questions.questions = [question()];
  questions.changed.emit();
  expect(document.title).toBe('(1) orders.ipynb');
  expect(icons()).toEqual(['idle', 'jp-AgentBox-tabIcon']);
});

test('the number of what waits stands before the title, and goes without a trace', () => {
  expect(document.title).toBe('orders.ipynb');
  model.set(2);
  expect(document.title).toBe('(2) orders.ipynb');
  model.set(1);
  expect(document.title).toBe('(1) orders.ipynb');
  expect(icons()).toEqual(['idle', 'jp-AgentBox-tabIcon']);
  model.set(0);
  expect(document.title).toBe('orders.ipynb');
  expect(icons()).toEqual(['idle']);
});

test('it stands before a title that the application gives later, too, and that title stays', async () => {
  model.set(2);
  document.title = 'prices.ipynb (1) - JupyterLab';
  await observed();
  expect(document.title).toBe('(2) prices.ipynb (1) - JupyterLab');
  model.set(0);
  expect(document.title).toBe('prices.ipynb (1) - JupyterLab');
});

test('a title that begins with a number of its own keeps it', async () => {
  document.title = '(1) of mine';
  model.set(1);
  expect(document.title).toBe('(1) (1) of mine');
  model.set(0);
  await observed();
  expect(document.title).toBe('(1) of mine');
});

test('who takes it away leaves the page as it was', () => {
  model.set(3);
  title.dispose();
  expect(document.title).toBe('orders.ipynb');
  expect(icons()).toEqual(['idle']);
  model.set(1);
  expect(document.title).toBe('orders.ipynb');
});

test('the dot lies on the icon that the application shows at the time', async () => {
  const sources: string[] = [];
  jest
    .spyOn(HTMLImageElement.prototype, 'src', 'set')
    .mockImplementation(source => sources.push(source));
  const icon = new TabIcon();
  icon.setMarked(true);
  const link = document.querySelector<HTMLLinkElement>('link.idle');
  link?.setAttribute('href', 'http://localhost/busy.ico');
  await observed();
  icon.dispose();
  expect(sources).toEqual([
    'http://localhost/idle.ico',
    'http://localhost/busy.ico'
  ]);
  jest.restoreAllMocks();
});

import { Signal } from '@lumino/signaling';

import type { IApproval } from '../../../src/api/protocol';
import { ArrivalSound } from '../../../src/features/approvals/arrivalSound';
import { approval } from '../../examples';

let hasFocus: jest.SpyInstance;

beforeEach(() => {
  jest.useFakeTimers();
  hasFocus = jest.spyOn(document, 'hasFocus').mockReturnValue(true);
});

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

/** Requests that wait until a test ends them. */
class Model {
  readonly arrived = new Signal<never, readonly IApproval[]>(this as never);
  status: IApproval['status'] = 'pending';

  get(id: string): { approval: IApproval; state: 'loaded' } {
    return { approval: approval({ id, status: this.status }), state: 'loaded' };
  }

  arrive(): void {
    this.arrived.emit([approval()]);
  }
}

interface IPage {
  model: Model;
  sound: ArrivalSound;
  play: jest.Mock;
  place: { isInView: boolean; isPanelVisible: boolean };
}

function page(isEnabled = true): IPage {
  const model = new Model();
  const play = jest.fn();
  const place = { isInView: false, isPanelVisible: false };
  const sound = new ArrivalSound({
    model: model as never,
    origins: { isInView: () => place.isInView },
    panel: {
      get isVisible() {
        return place.isPanelVisible;
      }
    },
    renderTime: 100,
    play
  });
  sound.isEnabled = isEnabled;
  return { model, sound, play, place };
}

const wait = (milliseconds = 100): void => {
  jest.advanceTimersByTime(milliseconds);
};

test('nothing sounds unless the settings say so', () => {
  const { model, play } = page(false);
  model.arrive();
  wait();
  expect(play).not.toHaveBeenCalled();
});

test('a request out of view sounds, one in view or in the panel does not', () => {
  const { model, play, place } = page();
  place.isInView = true;
  model.arrive();
  wait();
  place.isInView = false;
  place.isPanelVisible = true;
  model.arrive();
  wait();
  expect(play).not.toHaveBeenCalled();
  place.isPanelVisible = false;
  model.arrive();
  wait();
  expect(play).toHaveBeenCalledTimes(1);
});

test('what is in view of a page at which nobody looks sounds', () => {
  const { model, play, place } = page();
  place.isInView = true;
  hasFocus.mockReturnValue(false);
  model.arrive();
  wait();
  expect(play).toHaveBeenCalledTimes(1);
});

test('what a rule or another page decides at once does not sound', () => {
  const { model, play } = page();
  model.arrive();
  model.status = 'approved';
  wait();
  expect(play).not.toHaveBeenCalled();
});

test('many requests sound once, and later ones again', () => {
  const { model, play } = page();
  for (let count = 0; count < 60; count++) {
    model.arrive();
    wait(10);
  }
  wait();
  model.arrive();
  wait();
  expect(play).toHaveBeenCalledTimes(1);
  wait(3_000);
  model.arrive();
  wait();
  expect(play).toHaveBeenCalledTimes(2);
});

test('who does not want to be disturbed hears nothing', () => {
  const { model, sound, play } = page();
  sound.isQuiet = true;
  model.arrive();
  wait();
  expect(play).not.toHaveBeenCalled();
});

test('a stream of requests sounds while it lasts', () => {
  const { model, play } = page();
  for (let count = 0; count < 11; count++) {
    model.arrive();
    wait(10);
  }
  expect(play).toHaveBeenCalledTimes(1);
});

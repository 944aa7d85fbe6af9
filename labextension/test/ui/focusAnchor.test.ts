import { FocusAnchor } from '../../src/ui/focusAnchor';
import { addSizes, removeSizes, tellSizes } from '../sizes';

let anchor: FocusAnchor;
let card: HTMLElement;
let scrolled: number;
/** The height of what is above the card. */
let above: number;

const top = (): number => above - scrolled;

/** What is above the card grows. */
function grow(pixels: number): void {
  above += pixels;
  tellSizes();
}

beforeEach(() => {
  addSizes();
  const node = document.createElement('div');
  card = document.createElement('div');
  card.className = 'jp-AgentBox-card';
  card.tabIndex = -1;
  node.append(card);
  document.body.replaceChildren(node);
  scrolled = 0;
  above = 100;
  Object.defineProperties(node, {
    clientHeight: { value: 500 },
    // As browsers do: by whole pixels of the screen.
    scrollTop: {
      get: () => scrolled,
      set: (value: number) => {
        scrolled = Math.trunc(value);
      }
    }
  });
  node.getBoundingClientRect = () => ({ top: 0, height: 500 }) as DOMRect;
  card.getBoundingClientRect = () => ({ top: top(), height: 80 }) as DOMRect;
  anchor = new FocusAnchor(node);
  anchor.observe(card);
});

afterEach(() => {
  anchor.dispose();
  removeSizes();
});

describe('FocusAnchor', () => {
  it('keeps the focused card within a pixel, however often something of a broken height appears above it', () => {
    card.focus();
    for (let count = 0; count < 20; count += 1) {
      grow(3.8);
      expect(Math.abs(top() - 100)).toBeLessThan(1);
    }
    for (let count = 0; count < 20; count += 1) {
      grow(-3.8);
      expect(Math.abs(top() - 100)).toBeLessThan(1);
    }
  });

  it('scrolls for no card without the focus', () => {
    grow(50);
    expect(scrolled).toBe(0);
    card.focus();
    card.blur();
    grow(50);
    expect(scrolled).toBe(0);
  });

  it('scrolls for no card that is out of view', () => {
    card.focus();
    scrolled = 400;
    grow(50);
    expect(scrolled).toBe(400);
  });
});

/**
 * Tells whether a person sees a node as it is, with nothing covering any visible part of it.
 *
 * Kernels lay out their outputs, and what lies over a button decides what a person believes to press (clickjacking).
 * Chromium watches for that by itself: Intersection Observer v2 says that a node is visible only if nothing covers,
 * fades, filters or distorts it. In other browsers, and for a node that is partly scrolled out of view, this looks at what
 * lies on top at many points of the part in view: at all of them before it says that nothing is there and at a click, and
 * at one half and the other in turn meanwhile. They stand on lines of 3 pixels' distance, across and down, so that nothing of
 * the size of a letter, and no line through a text, lies between them.
 * A part out of view may be covered, by a toolbar for one: a long request is never wholly in view. So may the part of a row's
 * card that is scrolled under the bar of its table.
 * Hit tests take long, so all points of a large node are tested in steps, between which the page does other things; and they
 * rest while nobody is near the node. What lay over it meanwhile is not known: it counts as exposed only from the first look
 * on, and its buttons begin to be armed anew. A node that comes into view in part while nobody is near, as one after the
 * other does when many are decided at once, is looked at when it has been as it is for a while.
 */
import type { IDisposable } from '@lumino/disposable';

import { Attention } from './attention';
import { isRenderedCard } from './renderedCards';

/**
 * How a node can be seen. `exposed`: as it is. `covered`: something lies over it, or it is faded or distorted.
 * `hidden`: no part of it is in view. `embedded`: a kernel lays out what it is in, so that nothing is sure.
 */
export type Exposure = 'exposed' | 'covered' | 'hidden' | 'embedded';

/** Milliseconds between two checks, in browsers that do not watch by themselves. */
const LOOK_INTERVAL = 250;

/** Milliseconds without news from the browser about a node before it is checked while nobody is near. */
const CALM = 1000;

/** Version 2, which TypeScript does not know; 100 ms is the least delay that it accepts. */
const OBSERVER_OPTIONS = {
  trackVisibility: true,
  delay: 100
} as IntersectionObserverInit;

/** Pixels between two lines of points, and between two points of a line. */
const LINE_STEP = 3;
const POINT_STEP = 24;

/** The number of checks that together test all points; each tests the lines between those of the others. */
const PHASES = [0, 1, 2, 3] as const;

/** The maximum number of points of a check: on larger nodes they are further apart. */
const MAX_POINTS = 6000;

/** Pixels at a node's edge that are not tested, because a rounded corner shows what is behind it. */
const EDGE = 3;

/** Pixels that the shadow of what is above or below a box that scrolls may fall into it: a toolbar's, for one. */
const SHADOW = 8;

/** What a table of requests keeps in view at its lower edge. */
const BAR = '.jp-AgentBox-batchBar';

/** While the document's element has this class, nothing is transparent to a hit test. */
const HIT_TEST_CLASS = 'jp-AgentBox-hitTest';

/** A translation by whole pixels, or none. */
const TRANSLATION = /^(?:none|matrix\(1, 0, 0, 1, [^,]+, [^,]+\))$/;

/** Milliseconds from a person's return to the first look: what is on the node has to learn first that it was not known. */
const RETURN_DELAY = 50;

const attention = new Attention();

/** Watches the visibility of a node. */
export class OcclusionWatch implements IDisposable {
  constructor(
    private readonly _node: Element,
    private readonly _onChange: (exposure: Exposure) => void
  ) {
    if (hasOcclusionDetection()) {
      this._observer = new IntersectionObserver(entries => {
        this._take(entries);
        // A card in a list that grows or shrinks is reported again and again: hit tests rest for that, too.
        const needsHitTests =
          this._isIntersecting && this._isOccluded && this._wasClipped;
        if (needsHitTests && (this._rest || !attention.isOn(_node))) {
          this._restNow();
        } else {
          this._update();
        }
      }, OBSERVER_OPTIONS);
      this._observer.observe(_node);
    }
    this._update();
  }

  /** The node's visibility at the last check. */
  get exposure(): Exposure {
    return this._exposure;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this._observer?.disconnect();
    this._rest?.dispose();
    window.clearTimeout(this._timer);
  }

  /** Check now, for the moment of a click. */
  look(): Exposure {
    if (this._rest) {
      this._return();
      return this._exposure;
    }
    this._take(this._observer?.takeRecords() ?? []);
    const isThorough = true;
    this._set(this._find(isThorough, () => exposureOf(this._node)));
    return this._exposure;
  }

  private readonly _update = (): void => {
    // What a hit test found once, it must take back itself.
    const isThorough = this._exposure === 'covered';
    const exposure = this._find(isThorough, () => this._step());
    if (exposure) {
      this._set(exposure);
    } else {
      window.clearTimeout(this._timer);
      this._timer = window.setTimeout(this._update);
    }
  };

  private _find<T>(isThorough: boolean, hitTest: () => T): Exposure | T {
    if (isInKernelLayout(this._node)) {
      return 'embedded';
    }
    if (this._observer && !this._isIntersecting) {
      return 'hidden';
    }
    if (this._observer && !this._isOccluded && !isThorough) {
      return 'exposed';
    }
    // The observer also counts what lies over a part that is scrolled away, and shadows of what it is scrolled under, and
    // so does not tell for a node that reaches so far.
    if (this._observer && this._isOccluded && !isAtEdge(this._node)) {
      if (!this._wasClipped) {
        return 'covered';
      }
      this._askAgain(this._observer);
    }
    return hitTest();
  }

  /** Test one half of the points of a node that is exposed. Of another one, test all in steps; `null` until the last. */
  private _step(): Exposure | null {
    if (this._exposure === 'exposed') {
      this._half = 1 - this._half;
      return exposureOf(
        this._node,
        PHASES.filter(phase => phase % 2 === this._half)
      );
    }
    const exposure = exposureOf(this._node, [this._phase]);
    this._phase += 1;
    return exposure === 'exposed' && this._phase < PHASES.length
      ? null
      : exposure;
  }

  private _take(entries: IntersectionObserverEntry[]): void {
    const last = entries[entries.length - 1];
    if (last) {
      this._isIntersecting = last.isIntersecting;
      this._isOccluded = Reflect.get(last, 'isVisible') !== true;
      this._wasClipped =
        last.intersectionRect.width < last.boundingClientRect.width ||
        last.intersectionRect.height < last.boundingClientRect.height;
      this._isAsked = false;
      this._phase = 0;
    }
  }

  /**
   * Have the browser look at the whole of a node that was partly out of view when it looked last, and that has come into
   * view since: by itself it would say nothing more if its answer is the same. Until it answers, hit tests tell, as they
   * did while a part was out of view.
   */
  private _askAgain(observer: IntersectionObserver): void {
    if (!this._isAsked) {
      this._isAsked = true;
      observer.unobserve(this._node);
      observer.observe(this._node);
    }
  }

  private _set(exposure: Exposure): void {
    if (this._isDisposed) {
      return;
    }
    window.clearTimeout(this._timer);
    this._phase = 0;
    this._rest?.dispose();
    this._rest = null;
    if (!this._isTold(exposure)) {
      if (attention.isOn(this._node)) {
        this._timer = window.setTimeout(this._update, LOOK_INTERVAL);
      } else {
        this._rest = attention.await(this._node, this._return);
      }
    }
    this._tell(exposure);
  }

  /** Do no hit tests until somebody is near; or one, so that the node does not look disabled, when it changes no more. */
  private _restNow(): void {
    window.clearTimeout(this._timer);
    this._rest ??= attention.await(this._node, this._return);
    if (this._exposure !== 'exposed') {
      this._timer = window.setTimeout(this._update, CALM);
    }
  }

  private readonly _return = (): void => {
    window.clearTimeout(this._timer);
    this._phase = 0;
    this._rest?.dispose();
    this._rest = null;
    if (this._exposure === 'exposed') {
      this._tell('hidden');
    }
    this._timer = window.setTimeout(this._update, RETURN_DELAY);
  };

  private _tell(exposure: Exposure): void {
    if (exposure !== this._exposure) {
      this._exposure = exposure;
      this._onChange(exposure);
    }
  }

  /** Whether the observer reports when this is over. */
  private _isTold(exposure: Exposure): boolean {
    return (
      this._observer !== null &&
      ((exposure === 'hidden' && !this._isIntersecting) ||
        (exposure === 'exposed' && !this._isOccluded))
    );
  }

  private _exposure: Exposure = 'hidden';
  private _isAsked = false;
  private _isDisposed = false;
  private _isIntersecting = false;
  private _isOccluded = false;
  private readonly _observer: IntersectionObserver | null = null;
  private _half = 0;
  /** The phase of points that the next step tests. */
  private _phase = 0;
  private _rest: IDisposable | null = null;
  private _timer = 0;
  private _wasClipped = false;
}

/**
 * Whether a kernel lays out what the node is in: a widget, or an output that a widget shows.
 *
 * An output area within another one is a widget's. The classes of widgets alone would not do: a kernel can take them
 * away from its own.
 */
export function isInKernelLayout(node: Element): boolean {
  let areas = 0;
  for (let at: Element | null = node; at; at = at.parentElement) {
    areas += at.classList.contains('jp-OutputArea') ? 1 : 0;
    if (areas > 1 || at.classList.contains('jupyter-widgets')) {
      return true;
    }
  }
  return false;
}

/** The present visibility of a node according to hit tests, at all or only some of the points. */
export function exposureOf(
  node: Element,
  phases: readonly number[] = PHASES
): Exposure {
  if (isInKernelLayout(node)) {
    return 'embedded';
  }
  const part = visiblePart(node);
  if (!part) {
    return 'hidden';
  }
  return !isDistorted(node) &&
    isOnTop(node, part, phases) &&
    isUnderItsBar(node, phases)
    ? 'exposed'
    : 'covered';
}

interface IBox {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

function hasOcclusionDetection(): boolean {
  return (
    typeof IntersectionObserverEntry === 'function' &&
    'isVisible' in IntersectionObserverEntry.prototype
  );
}

/**
 * The part of a node that no scrolling box, with a margin in those that scroll, no edge of the window and no bar of a table
 * cuts off.
 */
function visiblePart(node: Element, margin = 0): IBox | null {
  const { clientWidth, clientHeight } = document.documentElement;
  let part = intersect(node.getBoundingClientRect(), {
    left: 0,
    top: 0,
    right: clientWidth,
    bottom: clientHeight
  });
  let bar: Element | null = null;
  // What the body would cut off, the window does.
  const { body } = document;
  for (
    let at = node.parentElement;
    at && at !== body && part;
    at = at.parentElement
  ) {
    const { overflowX, overflowY, contain } = getComputedStyle(at);
    const isClipping =
      !isUnset(overflowX, 'visible') ||
      !isUnset(overflowY, 'visible') ||
      /paint|content|strict/.test(contain);
    if (isClipping) {
      const isScrolling = at.scrollHeight > at.clientHeight;
      part = intersect(part, innerBox(at, isScrolling ? margin : 0));
    }
    bar ??= barOf(at, node);
  }
  return part && bar && isEdge(bar, part) ? intersect(part, above(bar)) : part;
}

/** Whether a bar cuts off the lower end of a part: a kernel could put it elsewhere, with more of the part below or beside it. */
function isEdge(bar: Element, part: IBox): boolean {
  const { left, top, right, bottom } = bar.getBoundingClientRect();
  return (
    top < part.bottom &&
    left <= part.left + EDGE &&
    right >= part.right - EDGE &&
    bottom >= part.bottom - EDGE &&
    getComputedStyle(bar).pointerEvents !== 'none'
  );
}

/** Whether a bar that cuts off a node lies over all that it cuts off, so that nothing there can be seen or pressed. */
function isUnderItsBar(node: Element, phases: readonly number[]): boolean {
  const table = node.parentElement?.closest('.jp-AgentBox-card');
  const bar = table ? barOf(table, node) : null;
  const box = bar?.getBoundingClientRect();
  const part = box ? intersect(node.getBoundingClientRect(), box) : null;
  const seen = bar && part ? visiblePart(bar) : null;
  const cut = seen && part ? intersect(seen, part) : null;
  return !bar || !cut || isOnTop(bar, cut, phases);
}

/** The bar at the lower edge of a table of requests, under which its rows scroll, unless it contains the node itself. */
function barOf(table: Element, node: Element): Element | null {
  const bar = isRenderedCard(table)
    ? [...table.children].find(each => each.matches(BAR))
    : null;
  return bar && !bar.contains(node) ? bar : null;
}

/** All that is above a bar. */
function above(bar: Element): IBox {
  const { top } = bar.getBoundingClientRect();
  return { left: -Infinity, top: -Infinity, right: Infinity, bottom: top };
}

/** Whether a part of a node is out of view, or in the shadow of what it is scrolled under. */
function isAtEdge(node: Element): boolean {
  const { left, top, right, bottom } = node.getBoundingClientRect();
  const part = visiblePart(node, SHADOW);
  return (
    !part ||
    part.left > left ||
    part.top > top ||
    part.right < right ||
    part.bottom < bottom
  );
}

/** Where a box shows what is in it: without its borders and scroll bars, and a margin above and below. */
function innerBox(node: Element, margin: number): IBox {
  const { left, top } = node.getBoundingClientRect();
  const x = left + node.clientLeft;
  const y = top + node.clientTop;
  return {
    left: x,
    top: y + margin,
    right: x + node.clientWidth,
    bottom: y + node.clientHeight - margin
  };
}

function intersect(a: IBox, b: IBox): IBox | null {
  const box = {
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom)
  };
  const isEmpty =
    box.right - box.left <= 2 * EDGE || box.bottom - box.top <= 2 * EDGE;
  return isEmpty ? null : box;
}

/** Whether a style of the node, or of one of its ancestors, changes its appearance. */
function isDistorted(node: Element): boolean {
  for (let at: Element | null = node; at; at = at.parentElement) {
    const style = getComputedStyle(at);
    const isPlain =
      isUnset(style.opacity, '1') &&
      isUnset(style.filter, 'none') &&
      isUnset(style.clipPath, 'none') &&
      isUnset(style.maskImage, 'none') &&
      isUnset(style.mixBlendMode, 'normal') &&
      isUnset(style.visibility, 'visible') &&
      TRANSLATION.test(style.transform || 'none');
    if (!isPlain) {
      return true;
    }
  }
  return false;
}

/** Whether a style has its initial value, or the browser does not know it. */
function isUnset(value: string | undefined, initial: string): boolean {
  return !value || value === initial;
}

/** Whether the node is on top at points all over a part of it. */
function isOnTop(
  node: Element,
  part: IBox,
  phases: readonly number[]
): boolean {
  const left = part.left + EDGE;
  const top = part.top + EDGE;
  const width = part.right - part.left - 2 * EDGE;
  const height = part.bottom - part.top - 2 * EDGE;
  const isMine = (x: number, y: number): boolean =>
    node.contains(document.elementFromPoint(left + x, top + y));
  return withoutPassingThrough(() =>
    phases.every(
      phase =>
        everyPoint(height, width, phase, (y, x) => isMine(x, y)) &&
        everyPoint(width, height, phase, isMine)
    )
  );
}

/** Whether a test holds at all points of a phase: on lines across a box, each at `at`, `along` points of it. */
function everyPoint(
  across: number,
  length: number,
  phase: number,
  test: (at: number, along: number) => boolean
): boolean {
  const count = PHASES.length;
  // Each phase has as many points on lines in the one direction as in the other.
  const points = (2 * across * length) / (LINE_STEP * count * POINT_STEP);
  const scale = Math.max(1, Math.sqrt(points / MAX_POINTS));
  const step = LINE_STEP * count * scale;
  const pointStep = POINT_STEP * scale;
  const start = (phase * pointStep) / count;
  for (let at = (phase * step) / count; at <= across; at += step) {
    for (let along = start; along <= length; along += pointStep) {
      if (!test(at, along)) {
        return false;
      }
    }
  }
  return true;
}

/** Do hit tests in which elements that are transparent to a pointer count, too. */
function withoutPassingThrough<T>(test: () => T): T {
  const { classList } = document.documentElement;
  classList.add(HIT_TEST_CLASS);
  try {
    return test();
  } finally {
    classList.remove(HIT_TEST_CLASS);
  }
}

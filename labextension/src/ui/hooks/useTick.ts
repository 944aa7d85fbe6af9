/**
 * A React hook for elements that change every second, or every few seconds.
 *
 * All of them change at the same moment. Each change costs a frame, in which the browser computes again what covers every
 * card; fifty independent timers would cause fifty frames a second. While the page is hidden, nothing changes.
 */
import { useEffect, useReducer, useState } from 'react';
import type { RefObject } from 'react';

const TICK = 1000;

/** Who listens, and the number of ticks from one call of each to the next. */
const listeners = new Map<() => void, number>();
let ticks = 0;
let timer = 0;

function listen(listener: () => void, period: number): () => void {
  if (listeners.size === 0) {
    document.addEventListener('visibilitychange', onVisibility);
  }
  listeners.set(listener, period);
  run();
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      document.removeEventListener('visibilitychange', onVisibility);
    }
    run();
  };
}

function tick(): void {
  ticks += 1;
  for (const [each, period] of [...listeners]) {
    if (ticks % period === 0) {
      each();
    }
  }
}

function onVisibility(): void {
  if (!document.hidden) {
    for (const each of [...listeners.keys()]) {
      each();
    }
  }
  run();
}

/** Run the timer while somebody listens and the page is visible. */
function run(): void {
  const isWanted = listeners.size > 0 && !document.hidden;
  if (isWanted && timer === 0) {
    timer = window.setInterval(tick, TICK);
  } else if (!isWanted) {
    window.clearInterval(timer);
    timer = 0;
  }
}

/** Render again every second while active, or once in `period` seconds, at the same moment as all with that period. */
export function useTick(isActive: boolean, period = 1): void {
  const [, update] = useReducer((count: number) => count + 1, 0);
  useEffect(
    () => (isActive ? listen(update, period) : undefined),
    [isActive, period]
  );
}

/** Whether an element is in view; true if the browser cannot tell. */
export function useIsInView(element: RefObject<Element>): boolean {
  const [isInView, setInView] = useState(
    typeof IntersectionObserver === 'undefined'
  );
  useEffect(() => {
    if (!element.current || typeof IntersectionObserver === 'undefined') {
      return;
    }
    const observer = new IntersectionObserver(entries => {
      setInView(entries[entries.length - 1].isIntersecting);
    });
    observer.observe(element.current);
    return () => {
      observer.disconnect();
    };
  }, [element]);
  return isInView;
}

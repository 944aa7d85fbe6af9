/**
 * A dot on the icon of the browser's tab.
 */
import type { IDisposable } from '@lumino/disposable';

const CLASS = 'jp-AgentBox-tabIcon';
const SIZE = 32;
/** An orange that stands out from light and dark tabs. */
const COLOR = '#f57c00';

/** A separate icon beside the application's, which is not changed. */
export class TabIcon implements IDisposable {
  constructor() {
    this._observer = new MutationObserver(() => {
      this._draw();
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this.setMarked(false);
    this._isDisposed = true;
  }

  /** Show the dot, or only the application's icon. */
  setMarked(isMarked: boolean): void {
    if (isMarked === (this._link !== null) || this._isDisposed) {
      return;
    }
    if (isMarked) {
      this._link = document.createElement('link');
      this._link.rel = 'icon';
      this._link.className = CLASS;
      this._draw();
      document.head.append(this._link);
      // JupyterLab has another icon while a kernel is busy.
      this._observer.observe(document.head, {
        subtree: true,
        attributes: true,
        attributeFilter: ['rel', 'href']
      });
    } else {
      this._observer.disconnect();
      this._link?.remove();
      this._link = null;
      this._source = null;
    }
  }

  private _draw(): void {
    const source =
      [
        ...document.head.querySelectorAll<HTMLLinkElement>(
          `link[rel~="icon"]:not(.${CLASS})`
        )
      ].pop()?.href ?? '';
    if (!this._link || source === this._source) {
      return;
    }
    this._source = source;
    const drawnBefore = this._drawn.get(source);
    if (drawnBefore !== undefined) {
      this._link.href = drawnBefore;
      return;
    }
    this._link.href = dotAlone();
    const image = new Image();
    image.onload = () => {
      const drawn = source === this._source ? withDot(image) : null;
      if (drawn && this._link) {
        this._drawn.set(source, drawn);
        this._link.href = drawn;
      }
    };
    image.src = source;
  }

  private readonly _drawn = new Map<string, string>();
  private _isDisposed = false;
  private _link: HTMLLinkElement | null = null;
  private readonly _observer: MutationObserver;
  private _source: string | null = null;
}

/** The icon with a dot in its corner; `null` if the browser does not allow drawing it. */
function withDot(image: HTMLImageElement): string | null {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = SIZE;
  const context = canvas.getContext('2d');
  if (!context) {
    return null;
  }
  context.drawImage(image, 0, 0, SIZE, SIZE);
  context.fillStyle = COLOR;
  context.beginPath();
  context.arc(SIZE * 0.72, SIZE * 0.28, SIZE * 0.28, 0, 2 * Math.PI);
  context.fill();
  try {
    return canvas.toDataURL('image/png');
  } catch {
    return null;
  }
}

function dotAlone(): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="13" fill="${COLOR}"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

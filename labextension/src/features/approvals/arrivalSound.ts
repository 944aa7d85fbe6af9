/**
 * Sounds when a request arrives that the person does not see, if they want that.
 */
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IApproval } from '../../api/protocol';
import type {
  IApprovalModel,
  IApprovalPanel,
  IOrigins
} from '../../internalTokens';

/** Milliseconds after a sound in which there is no other: many requests sound once. */
const PAUSE = 3_000;

/** The dependencies of `ArrivalSound`. */
export interface IArrivalSoundOptions {
  model: Pick<IApprovalModel, 'arrived' | 'get'>;
  origins: Pick<IOrigins, 'isInView'>;
  panel: Pick<IApprovalPanel, 'isVisible'>;
  /** Milliseconds until a card of a request that arrived is in view. */
  renderTime: number;
  play: () => void;
}

/** Plays a sound for new requests. It is off until the settings turn it on. */
export class ArrivalSound implements IDisposable {
  constructor(private readonly _options: IArrivalSoundOptions) {
    _options.model.arrived.connect(this._onArrived, this);
  }

  isEnabled = false;

  /** Whether the person does not want to be disturbed. */
  isQuiet = false;

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    window.clearTimeout(this._timer);
    Signal.clearData(this);
  }

  private _onArrived(_: unknown, arrived: readonly IApproval[]): void {
    if (!this.isEnabled || this.isQuiet) {
      return;
    }
    if (this._arrived.length === 0) {
      this._timer = window.setTimeout(() => {
        this._sound();
      }, this._options.renderTime);
    }
    this._arrived.push(...arrived);
  }

  private _sound(): void {
    const isMissed = this._arrived
      .splice(0)
      .some(
        one =>
          this._options.model.get(one.id).approval?.status === 'pending' &&
          !this._isSeen(one)
      );
    const now = performance.now();
    if (isMissed && now - this._last >= PAUSE) {
      this._last = now;
      this._options.play();
    }
  }

  private _isSeen(approval: IApproval): boolean {
    const { origins, panel } = this._options;
    const isThere = !document.hidden && document.hasFocus();
    return isThere && (panel.isVisible || origins.isInView(approval));
  }

  private readonly _arrived: IApproval[] = [];
  private _isDisposed = false;
  private _last = -Infinity;
  private _timer = 0;
}

/** The two tones: frequency in hertz, and when they begin, in seconds. */
const TONES: readonly [frequency: number, start: number][] = [
  [660, 0],
  [880, 0.16]
];

/** How long a tone lasts, in seconds, and how loud it is, from 0 to 1. */
const LENGTH = 0.22;
const VOLUME = 0.12;

/** Play two soft tones. A browser may refuse until the person has done something on the page. */
export function playTones(): void {
  const context = new AudioContext();
  const over = (): void => void context.close();
  for (const [frequency, start] of TONES) {
    const tone = context.createOscillator();
    const volume = context.createGain();
    const begin = context.currentTime + start;
    tone.frequency.value = frequency;
    volume.gain.setValueAtTime(0, begin);
    volume.gain.linearRampToValueAtTime(VOLUME, begin + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.001, begin + LENGTH);
    tone.connect(volume).connect(context.destination);
    tone.start(begin);
    tone.stop(begin + LENGTH);
    tone.onended = start > 0 ? over : null;
  }
}

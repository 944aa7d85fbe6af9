/**
 * Notifies of files of rules that cannot be used while the rules are not on screen: one notification for all.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IConfigurationProblem } from '../../api/protocol';
import { StandingNotification } from '../../integrations/standingNotification';
import type { IRulesModel } from '../../model/rules';
import { label } from '../../ui/text/visibleText';

/** What `RuleProblemNotifier` needs. */
export interface IRuleProblemNotifierOptions {
  rules: Pick<IRulesModel, 'changed' | 'policy'>;
  /** Whether the rules are on screen. */
  isVisible: () => boolean;
  /** Show the rules and move the focus to them. */
  open: () => void;
  /** Until the page is as it was left, the panel is not yet open. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** Keeps one notification for all problems that a person has not come to see. */
export class RuleProblemNotifier implements IDisposable {
  constructor(private readonly _options: IRuleProblemNotifierOptions) {
    const { open, restored, rules, trans } = _options;
    this._shown = new StandingNotification({
      action: {
        label: trans.__('Show'),
        caption: trans.__('Show the rules'),
        callback: open
      },
      look: () => {
        this._look();
      }
    });
    void restored.then(() => {
      if (!this._isDisposed) {
        rules.changed.connect(this._look, this);
        this._look();
      }
    });
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  /** Whether to notify at all. */
  get isEnabled(): boolean {
    return this._shown.isEnabled;
  }

  set isEnabled(isEnabled: boolean) {
    this._shown.isEnabled = isEnabled;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
    this._shown.dispose();
  }

  /** What a person has come to see needs no notification any more, until it was mended and broke again. */
  private _look(): void {
    const { isVisible, rules } = this._options;
    const problems = new Map(
      rules.policy?.problems.map(each => [JSON.stringify(each), each])
    );
    for (const key of this._seen) {
      if (!problems.has(key)) {
        this._seen.delete(key);
      }
    }
    if (isVisible()) {
      for (const key of problems.keys()) {
        this._seen.add(key);
      }
    }
    const unseen = [...problems]
      .filter(([key]) => !this._seen.has(key))
      .map(([, problem]) => problem);
    this._shown.show(unseen.length, this._message(unseen));
  }

  private _message(of: readonly IConfigurationProblem[]): string {
    const { trans } = this._options;
    const [first] = of;
    return of.length === 1
      ? trans.__(
          'A file of rules cannot be used: %1',
          // JupyterLab shows 140 characters of a message.
          label(first.message, 100)
        )
      : trans._n(
          'A file of rules cannot be used: it has %1 problem',
          'Files of rules cannot be used: they have %1 problems',
          of.length
        );
  }

  private _isDisposed = false;
  private readonly _seen = new Set<string>();
  private readonly _shown: StandingNotification;
}

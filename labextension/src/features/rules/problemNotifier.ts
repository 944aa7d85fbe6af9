/**
 * Notifies of broken files of rules while the rules are not visible: one notification for all.
 */
import type { TranslationBundle } from '@jupyterlab/translation';

import type { IConfigurationProblem } from '../../api/protocol';
import { StandingNotifier } from '../../integrations/standingNotifier';
import type { IRulesModel } from '../../model/rules';
import { label } from '../../ui/text/visibleText';

/** The dependencies of `RuleProblemNotifier`. */
export interface IRuleProblemNotifierOptions {
  rules: Pick<IRulesModel, 'changed' | 'policy'>;
  /** Whether the rules are visible. */
  isVisible: () => boolean;
  /** Show the rules and move the focus to them. */
  open: () => void;
  /** Until the layout is restored, the panel is not open yet. */
  restored: Promise<void>;
  trans: TranslationBundle;
}

/** Keeps one notification for all problems that a person has not seen yet. */
export class RuleProblemNotifier extends StandingNotifier {
  constructor(private readonly _options: IRuleProblemNotifierOptions) {
    const { open, restored, rules, trans } = _options;
    super(trans, { caption: trans.__('Show the rules'), callback: open });
    void restored.then(() => {
      if (!this.isDisposed) {
        rules.changed.connect(this.look, this);
        this.look();
      }
    });
  }

  /** What a person has seen needs no notification any more, until it is mended and breaks again. */
  protected look(): void {
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
    this.notification.show(unseen.length, this._message(unseen));
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

  private readonly _seen = new Set<string>();
}

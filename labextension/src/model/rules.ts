/**
 * The rules in force, and a rule that a person is about to write.
 */
import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';

import type { IAgentBoxClient } from '../api/client';
import type { IJsonObject } from '../api/json';
import type { FeatureName, IDryRun, IFeatureLock, IPolicy } from '../api/rules';

/** A rule like a call. */
export interface IProposedRule {
  rule: IJsonObject;
  /** The names of the arguments that the call or its tool has: the rule matches any value of those without a condition. */
  names: readonly string[];
}

/** The rules that are in force. */
export interface IRulesModel {
  readonly changed: ISignal<IRulesModel, void>;
  /** `null` until the server answered. */
  readonly policy: IPolicy | null;
  /** A rule that a person has begun to create from a request. */
  readonly proposal: IProposedRule | null;
  /** Who turned a feature off; `null` if nobody did, or if that is unknown. */
  lockOf(feature: FeatureName): IFeatureLock | null;
  /** Fetch the rules again; return whether the server answered. */
  refresh(): Promise<boolean>;
  /** Replace a revision of the user's rules. Rejects with `RequestError`. */
  save(rules: IJsonObject[], revision: string): Promise<void>;
  tryRule(rule: IJsonObject): Promise<IDryRun>;
  propose(proposal: IProposedRule | null): void;
}

/** See `IRulesModel`. */
export class RulesModel implements IRulesModel {
  constructor(
    private readonly _source: Pick<
      IAgentBoxClient,
      'getPolicy' | 'putPolicy' | 'tryRule'
    >
  ) {}

  get changed(): ISignal<this, void> {
    return this._changed;
  }

  get policy(): IPolicy | null {
    return this._policy;
  }

  get proposal(): IProposedRule | null {
    return this._proposal;
  }

  lockOf(feature: FeatureName): IFeatureLock | null {
    const lock = this._policy?.features?.[feature];
    return lock?.lock === 'force-off' ? lock : null;
  }

  async refresh(): Promise<boolean> {
    try {
      this._take(await this._source.getPolicy());
      return true;
    } catch {
      return false; // the last answer stays; the approvals model says that the server is out of reach
    }
  }

  async save(rules: IJsonObject[], revision: string): Promise<void> {
    this._take(await this._source.putPolicy(rules, revision));
  }

  tryRule(rule: IJsonObject): Promise<IDryRun> {
    return this._source.tryRule(rule);
  }

  propose(proposal: IProposedRule | null): void {
    this._proposal = proposal;
    this._changed.emit();
  }

  private _take(policy: IPolicy): void {
    if (JSON.stringify(policy) !== JSON.stringify(this._policy)) {
      this._policy = policy;
      this._changed.emit();
    }
  }

  private readonly _changed = new Signal<this, void>(this);
  private _policy: IPolicy | null = null;
  private _proposal: IProposedRule | null = null;
}

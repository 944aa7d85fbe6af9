/**
 * Rules in the form in which the server sends and accepts them.
 */
import type { IJsonObject } from './json';
import type { IConfigurationProblem } from './protocol';

/** The effect of a rule on a call. */
export type Effect = 'allow' | 'ask' | 'deny';

/** A rule in force, and its location. */
export interface IEffectiveRule extends IJsonObject {
  effect: Effect;
  server: string;
  tool: string;
  layer: string;
  file: string | null;
  line: number | null;
}

/** The rules of the site and of the user. */
export interface IPolicy {
  /** The user's rules as in their file: the form in which they are written back. */
  rules: IJsonObject[];
  file: string | null;
  revision: string;
  writable: boolean;
  effective: IEffectiveRule[];
  problems: IConfigurationProblem[];
  /** The site's setting for each feature; not sent by older servers. */
  features?: Record<string, IFeatureLock>;
  /** The Hub service's policy; not sent by older servers. */
  hub_policy?: IHubPolicy | null;
}

/** The state of the Hub service's policy. */
export interface IHubPolicy {
  hub: string;
  /** The policy in force; without one, everything is denied. */
  version: number | null;
  expires_at: string | null;
  /** Why no policy, or no newer one, was received. */
  problem: string | null;
}

/** Who decides whether a feature can be used. */
export interface IFeatureLock {
  lock: 'user-choice' | 'force-on' | 'force-off';
  message: string | null;
  /** Who turned it off. */
  layer?: string | null;
  /** The files, or variables, that turn it off; not sent by older servers. */
  files?: string[];
}

/** The features that an administrator can turn off. */
export type FeatureName =
  'grants' | 'edit' | 'local_servers' | 'agents' | 'models';

/** The location of an evaluation's rule, if it is in a file. */
export interface IRulePlace {
  file?: string | null;
  line?: number | null;
}

/** The effect that a rule would have had on the calls in the history. */
export interface IDryRun {
  looked_at: number;
  matched: number;
  allow: number;
  ask: number;
  deny: number;
  unknown: number;
}

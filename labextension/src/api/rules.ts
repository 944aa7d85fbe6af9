/**
 * Rules as the server sends and takes them.
 */
import type { IJsonObject } from './json';
import type { IConfigurationProblem } from './protocol';

/** What a rule makes of a call. */
export type Effect = 'allow' | 'ask' | 'deny';

/** A rule that is in force, and where it stands. */
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
  /** The user's rules, as their file has them: what is written back. */
  rules: IJsonObject[];
  file: string | null;
  revision: string;
  writable: boolean;
  effective: IEffectiveRule[];
  problems: IConfigurationProblem[];
  /** What the site says of each feature; an older server says nothing. */
  features?: Record<string, IFeatureLock>;
  /** The policy that the Hub service sends; an older server says nothing. */
  hub_policy?: IHubPolicy | null;
}

/** How it stands with the policy that the Hub service sends. */
export interface IHubPolicy {
  hub: string;
  /** The one that holds; without one, everything is denied. */
  version: number | null;
  expires_at: string | null;
  /** Why none, or no newer one, came. */
  problem: string | null;
}

/** Who says whether a feature can be used. */
export interface IFeatureLock {
  lock: 'user-choice' | 'force-on' | 'force-off';
  message: string | null;
  /** Whose word it is that it is off. */
  layer?: string | null;
  /** The files, or variables, that turn it off; an older server names none. */
  files?: string[];
}

/** What an administrator can turn off. */
export type FeatureName =
  'grants' | 'edit' | 'local_servers' | 'agents' | 'models';

/** Where the rule of an evaluation stands, if it is in a file. */
export interface IRulePlace {
  file?: string | null;
  line?: number | null;
}

/** What a rule would have made of the calls in the history. */
export interface IDryRun {
  looked_at: number;
  matched: number;
  allow: number;
  ask: number;
  deny: number;
  unknown: number;
}

/**
 * A problem in a configuration file, and where it is.
 */
import React from 'react';

import type { IConfigurationProblem } from '../../api/protocol';
import { useTrans } from '../context';
import { label } from '../text/visibleText';

export interface IFileProblemProps {
  problem: IConfigurationProblem;
}

export function FileProblem({ problem }: IFileProblemProps): JSX.Element {
  const trans = useTrans();
  const { path, message, line, column } = problem;
  const place =
    line === null
      ? label(path, 200)
      : trans.__('%1, line %2, column %3', label(path, 200), line, column ?? 1);
  return (
    <div className="jp-AgentBox-problem" role="note">
      <span className="jp-AgentBox-name">{place}</span>
      <p>{label(message, 500)}</p>
    </div>
  );
}

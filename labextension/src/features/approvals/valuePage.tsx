/**
 * A page with one long value, whole and read-only.
 */
import { MainAreaWidget } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import React from 'react';

import { CodeView } from '../../ui/code/CodeView';
import { CardProvider } from '../../ui/context';
import type { ICardContext, IOpenedValue } from '../../ui/context';
import { approvalIcon } from '../../ui/icons';
import { label } from '../../ui/text/visibleText';

/** How many pages there were; each has an id of its own. */
let count = 0;

export interface IValuePageProps {
  value: IOpenedValue;
}

export function ValuePage({ value }: IValuePageProps): JSX.Element {
  const { name, text, mimeType } = value;
  return (
    <section className="jp-AgentBox-valuePage" aria-label={label(name)}>
      <CodeView code={text} name={label(name)} mimeType={mimeType} />
    </section>
  );
}

/** Make the page of a value. */
export function makeValuePage(
  value: IOpenedValue,
  context: ICardContext
): MainAreaWidget {
  const content = ReactWidget.create(
    <CardProvider value={context}>
      <ValuePage value={value} />
    </CardProvider>
  );
  content.addClass('jp-AgentBox-valueContent');
  const page = new MainAreaWidget({ content });
  count += 1;
  page.id = `jupyter-agentbox-value-${count}`;
  page.title.label = context.trans.__('%1 (value)', label(value.name, 40));
  page.title.caption = context.trans.__(
    'A value of a tool call, as it was when the page was opened'
  );
  page.title.icon = approvalIcon;
  page.title.closable = true;
  return page;
}

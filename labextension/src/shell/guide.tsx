/**
 * A page that says what AgentBox does and where things are.
 */
import type { TranslationBundle } from '@jupyterlab/translation';
import React from 'react';

import { LinkButton } from '../ui/components/VisibleText';

/** Where the guide leads. */
export interface IGuideLinks {
  showTab: (id: string) => void;
  execute: (command: 'demo' | 'history' | 'keys' | 'settings') => void;
}

export interface IGuideProps {
  links: IGuideLinks;
  trans: TranslationBundle;
}

/** A heading, what there is to say, and where it leads. */
interface IPart {
  title: string;
  texts: readonly string[];
  links: readonly [label: string, go: () => void][];
}

export function Guide({ links, trans }: IGuideProps): JSX.Element {
  return (
    <article
      className="jp-AgentBox-guide"
      aria-label={trans.__('AgentBox guide')}
    >
      <h1>{trans.__('AgentBox guide')}</h1>
      {partsOf(links, trans).map(({ title, texts, links: leads }) => (
        <section key={title}>
          <h2>{title}</h2>
          {texts.map(text => (
            <p key={text}>{withCode(text)}</p>
          ))}
          {leads.length > 0 ? (
            <p className="jp-AgentBox-guideLinks">
              {leads.map(([label, go]) => (
                <LinkButton key={label} label={label} onClick={go} />
              ))}
            </p>
          ) : null}
        </section>
      ))}
    </article>
  );
}

/** A text in which what stands between backticks is code. */
function withCode(text: string): React.ReactNode[] {
  return text
    .split('`')
    .map((part, index) =>
      index % 2 === 1 ? <code key={index}>{part}</code> : part
    );
}

function partsOf(
  { showTab, execute }: IGuideLinks,
  trans: TranslationBundle
): IPart[] {
  return [
    {
      title: trans.__('What it does'),
      texts: [
        trans.__(
          'Code in a notebook, whether you or an agent wrote it, can call the tools of MCP servers. Before a call runs, a card under the cell shows which tool is called and with which arguments. Nothing runs until you answer.'
        ),
        trans.__(
          'The same requests are in the side panel, so you can answer there if the cell is out of view. If you reload the page, they are still there.'
        )
      ],
      links: [
        [trans.__('Show what is waiting'), () => showTab('pending')],
        [trans.__('Show the keys'), () => execute('keys')]
      ]
    },
    {
      title: trans.__('Connect a server'),
      texts: [
        trans.__(
          'Servers are listed in `mcp.json` in Jupyter’s configuration directory. The tab “Servers” adds entries to it, shows what each server offers, and says what is wrong with an entry.'
        ),
        trans.__(
          'To begin without a server of your own, open the tool demo: it calls a made-up shop that comes with AgentBox.'
        )
      ],
      links: [
        [trans.__('Show the servers'), () => showTab('servers')],
        [trans.__('Open the tool demo'), () => execute('demo')]
      ]
    },
    {
      title: trans.__('Call a tool'),
      texts: [
        trans.__(
          'In a cell, run `from jupyter_agentbox import tools`, type `tools.` and press Tab. Every server is a module, every tool a function, and what it returns is a Python value. `%agentbox help` lists what else there is.'
        )
      ],
      links: []
    },
    {
      title: trans.__('Answer less often'),
      texts: [
        trans.__(
          'Rules allow or deny calls that need no person. The menu beside the button that allows a call covers more than the one call: for example this tool, in this notebook, until its kernel ends. You can take it back at any time.'
        )
      ],
      links: [[trans.__('Show the rules'), () => showTab('rules')]]
    },
    {
      title: trans.__('See what ran'),
      texts: [
        trans.__(
          'The history has every call: when it was made, with which arguments, who decided, and what became of it. It can be searched and downloaded.'
        )
      ],
      links: [[trans.__('Show all history'), () => execute('history')]]
    },
    {
      title: trans.__('When you look elsewhere'),
      texts: [
        trans.__(
          'The title of the page and its icon count what is waiting. In the settings you can turn on desktop notifications and a sound.'
        )
      ],
      links: [[trans.__('Open the settings'), () => execute('settings')]]
    },
    {
      title: trans.__('If something does not work'),
      texts: [
        trans.__(
          'In a terminal, `jupyter agentbox doctor` checks the installation and says what to do.'
        )
      ],
      links: []
    }
  ];
}

/**
 * A dialog with the keys, for the *Help* menu and the palette.
 */
import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { CommandRegistry } from '@lumino/commands';
import React from 'react';

import { NO_ARGUMENTS } from '../ui/commandArguments';
import { COMMANDS } from './commands';
import { LastFocus } from './lastFocus';

export const SHOW_KEYS = 'jupyter-agentbox:show-keys';

/** Keys, and what they do. */
type Line = readonly [keys: string, does: string];

/** Add the command that shows the keys. */
export function addKeyHelp(
  registry: CommandRegistry,
  trans: TranslationBundle
): void {
  const lastFocus = new LastFocus();
  registry.addCommand(SHOW_KEYS, {
    ...NO_ARGUMENTS,
    label: trans.__('AgentBox Keys'),
    caption: trans.__('Show the keys for tool calls awaiting your approval'),
    execute: () => {
      // A menu that was chosen from has gone, and the dialog can give the focus back to nothing.
      const goBack = lastFocus.hold();
      // A program that runs the command does not wait for a person to close the dialog.
      void showDialog({
        title: trans.__('AgentBox Keys'),
        body: <Keys oldest={keyOf(registry)} trans={trans} />,
        buttons: [Dialog.okButton({ label: trans.__('Close') })]
      }).then(goBack);
    }
  });
}

/** The keys that go to the oldest request: a person can change them. */
function keyOf(registry: CommandRegistry): string | null {
  const binding = registry.keyBindings.find(
    ({ command }) => command === COMMANDS.oldestRequest
  );
  return binding ? CommandRegistry.formatKeystroke([...binding.keys]) : null;
}

export interface IKeysProps {
  /** The keys that go to the oldest request; `null` if there are none. */
  oldest: string | null;
  trans: TranslationBundle;
}

export function Keys({ oldest, trans }: IKeysProps): JSX.Element {
  const groups: [string, readonly Line[]][] = [
    [
      trans.__('On any page'),
      oldest === null
        ? []
        : [
            [
              oldest,
              trans.__(
                'goes to the request or the server’s question that has waited longest'
              )
            ]
          ]
    ],
    [
      trans.__('On a card that has the focus'),
      [
        ['A', trans.__('allows the call once')],
        ['E', trans.__('edits the arguments')],
        ['R', trans.__('asks for a reason, and rejects')],
        [
          'J, K',
          trans.__(
            'go to the next request, or the previous one; tables of requests, and the form that rejects all, are among them'
          )
        ],
        [
          'T',
          trans.__(
            'on a card of a cell with many calls: goes to the table in which all that wait can be decided together'
          )
        ],
        ['?', trans.__('shows the keys that do something now')]
      ]
    ],
    [
      trans.__('On a row of a table of requests'),
      [
        [trans.__('Up, Down, Home, End'), trans.__('go to another row')],
        [
          trans.__('Shift with Up or Down'),
          trans.__('selects rows on the way')
        ],
        [trans.__('Space'), trans.__('selects the row, or deselects it')],
        [
          trans.__('Ctrl+A or Cmd+A'),
          trans.__('selects all rows that can be selected')
        ],
        [trans.__('Enter'), trans.__('opens the row’s card, or closes it')],
        [trans.__('Tab'), trans.__('goes to the buttons')]
      ]
    ],
    [
      trans.__('In a form'),
      [
        [
          trans.__('Enter'),
          trans.__(
            'in the field for the reason: rejects; Shift+Enter begins a new line'
          )
        ],
        [
          trans.__('Ctrl+Enter'),
          trans.__('in the form for the arguments: allows the edited call')
        ],
        [trans.__('Escape'), trans.__('goes back')]
      ]
    ]
  ];
  return (
    <div className="jp-AgentBox-keys">
      {groups
        .filter(([, lines]) => lines.length > 0)
        .map(([title, lines]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {lines.map(([keys, does]) => (
                <div key={keys}>
                  <dt>
                    <kbd>{keys}</kbd>
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      <p>
        {trans.__(
          'A letter counts only on a card to which you went yourself, and whose button you could see for half a second.'
        )}
      </p>
    </div>
  );
}

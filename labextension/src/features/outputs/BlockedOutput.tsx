/**
 * Replaces an output that would have run code in the page.
 */
import React from 'react';

import { useTrans } from '../../ui/context';
import { DecisionButton } from '../../ui/guarded/DecisionButton';
import { Guarded, GuardedCard } from '../../ui/guarded/GuardedCard';
import { TextBlock, VisibleText } from '../../ui/components/VisibleText';

export interface IBlockedOutputProps {
  /** What kind of output it is, in words. */
  kind: string;
  /** The code that would run, if it is text. */
  source?: string;
  /** Whether the kernel is known to be sandboxed; otherwise it is unknown what it is. */
  isSandboxed: boolean;
  /** Whether a part of the output is shown below the card. */
  isPartShown?: boolean;
  /** Whether the output requests its own frame, in which a button is only a picture. */
  isIsolated?: boolean;
  /** Whether it is inside a widget, whose layout its kernel controls. */
  isInWidget?: boolean;
  /** Show the same card in a dialog, whose button no kernel can cover. */
  onReview?: () => void;
  /** Run only this output; the result rejects with the reason if that is not possible. */
  onAllow: () => Promise<void>;
}

/** Says what an output could do in the page, and lets a person allow it. */
export function BlockedOutput(props: IBlockedOutputProps): JSX.Element {
  const trans = useTrans();
  const { kind, onReview } = props;
  const textId = React.useId();
  const [isBusy, setBusy] = React.useState(false);
  const [failure, setFailure] = React.useState('');
  const allow = (): void => {
    setBusy(true);
    setFailure('');
    props
      .onAllow()
      .catch((error: unknown) => {
        setFailure(error instanceof Error ? error.message : String(error));
      })
      .finally(() => {
        setBusy(false);
      });
  };

  return (
    <GuardedCard
      className="jp-AgentBox-blocked jp-mod-waiting"
      isGuarded={!props.isIsolated}
      isInWidget={props.isInWidget}
      data-lm-suppress-shortcuts="true"
      aria-label={trans.__('Blocked output: %1', kind)}
    >
      <div className="jp-AgentBox-headline">
        <span className="jp-AgentBox-title">
          <strong>
            {props.isPartShown
              ? trans.__('Part of this output was blocked')
              : trans.__('Output blocked')}
          </strong>
        </span>
        <span className="jp-AgentBox-hint">
          <VisibleText text={kind} />
        </span>
      </div>
      <p id={textId}>
        {props.isSandboxed
          ? trans.__('It came from a sandboxed or remote kernel.')
          : trans.__('It is not known whether its kernel is sandboxed.')}{' '}
        {trans.__(
          'If run, it could act as you on this page: approve requests, run code in any kernel, and read or change your files.'
        )}
      </p>
      {props.source ? (
        <details className="jp-AgentBox-details">
          <summary>{trans.__('Show code')}</summary>
          <TextBlock text={props.source} name={trans.__('Code')} />
        </details>
      ) : null}
      {props.isIsolated ? (
        <p className="jp-AgentBox-note">
          {trans.__(
            'It requests an isolated frame (“isolated” metadata), where it cannot be allowed.'
          )}
        </p>
      ) : (
        <Guarded
          elsewhere={
            onReview && {
              label: trans.__('Review in a dialog'),
              open: onReview
            }
          }
        >
          <div className="jp-AgentBox-buttons">
            <DecisionButton
              kind="neutral"
              label={trans.__('Run this output')}
              describedBy={textId}
              isBusy={isBusy}
              onActivate={allow}
            />
          </div>
        </Guarded>
      )}
      <div role="alert">
        {failure ? (
          <p className="jp-AgentBox-error">
            <VisibleText text={failure} />
          </p>
        ) : null}
      </div>
    </GuardedCard>
  );
}

/**
 * What an MCP server asks while its tool runs. It looks unlike a request, because nothing is allowed by its answer.
 */
import React from 'react';

import { RequestError } from '../../api/errors';
import type { IJsonObject } from '../../api/json';
import type { IQuestion, QuestionAction } from '../../api/protocol';
import { Countdown } from '../card/Countdown';
import type { IArgumentError } from '../card/useSending';
import { TextBlock } from '../components/VisibleText';
import { useCardContext, useTrans } from '../context';
import { openDraft } from '../form/draft';
import { DecisionButton } from '../guarded/DecisionButton';
import { Guarded, GuardedCard } from '../guarded/GuardedCard';
import { isSecretName } from '../text/secretNames';
import { label } from '../text/visibleText';
import { Address, openPage } from './Address';
import { formOf, presets } from './questionForm';

// The form library is large, and few servers ask.
const FormFields = React.lazy(async () => {
  const { FormFields } = await import('../form/FormFields');
  return { default: FormFields };
});

export interface IQuestionCardProps {
  question: IQuestion;
  onAnswer: (action: QuestionAction, content?: IJsonObject) => Promise<void>;
  isInWidget?: boolean;
  onOpenInPanel?: () => void;
}

export function QuestionCard(props: IQuestionCardProps): JSX.Element {
  const trans = useTrans();
  const { question, onOpenInPanel } = props;
  const titleId = React.useId();
  const { isBusy, failure, error, send } = useAnswering(props);
  const elsewhere = onOpenInPanel && {
    label: trans.__('Answer in the panel'),
    open: onOpenInPanel
  };
  return (
    <GuardedCard
      className="jp-mod-question"
      isGuarded={true}
      isInWidget={props.isInWidget}
      data-question-id={question.id}
      data-lm-suppress-shortcuts="true"
      aria-labelledby={titleId}
    >
      <Header question={question} titleId={titleId} />
      <TextBlock text={question.message} name={trans.__('The question')} />
      <Guarded elsewhere={elsewhere}>
        {question.mode === 'url' ? (
          <PageAnswer
            url={question.url ?? ''}
            describedBy={titleId}
            isBusy={isBusy}
            send={send}
          />
        ) : (
          <FormAnswer
            schema={question.schema ?? {}}
            message={question.message}
            error={error}
            describedBy={titleId}
            isBusy={isBusy}
            send={send}
          />
        )}
      </Guarded>
      <div role="alert">
        {failure ? <p className="jp-AgentBox-error">{failure}</p> : null}
      </div>
    </GuardedCard>
  );
}

function Header(props: { question: IQuestion; titleId: string }): JSX.Element {
  const trans = useTrans();
  const { origins, model } = useCardContext();
  const { question } = props;
  const place = origins.describePlace(question, 60);
  return (
    <div className="jp-AgentBox-header">
      <div className="jp-AgentBox-headline">
        <span id={props.titleId} className="jp-AgentBox-name">
          <span className="jp-AgentBox-questionSign" aria-hidden="true">
            ?
          </span>{' '}
          {trans.__('The server “%1” asks you', label(question.server))}
        </span>
        {question.expires_at ? (
          <Countdown expiresAt={question.expires_at} now={() => model.now()} />
        ) : null}
      </div>
      <p className="jp-AgentBox-note">
        {place
          ? trans.__(
              'While “%1” runs for %2. Your answer goes to the server, and allows nothing.',
              label(question.tool),
              place
            )
          : trans.__(
              'While “%1” runs. Your answer goes to the server, and allows nothing.',
              label(question.tool)
            )}
      </p>
      {question.calls > 1 ? (
        <p className="jp-AgentBox-warning">
          {trans._n(
            '%2 call of this server is running, and it does not say whether it asks for that one.',
            '%2 calls of this server are running, and it does not say for which of them it asks.',
            question.calls,
            question.calls
          )}
        </p>
      ) : null}
    </div>
  );
}

type Send = (action: QuestionAction, content?: IJsonObject) => void;

interface IAnswerProps {
  describedBy: string;
  isBusy: boolean;
  send: Send;
}

function FormAnswer(
  props: IAnswerProps & {
    schema: IJsonObject;
    message: string;
    error: IArgumentError | null;
  }
): JSX.Element {
  const trans = useTrans();
  const { schema, message, error, send, ...rest } = props;
  const form = React.useMemo(() => formOf(schema), [schema]);
  const [draft, setDraft] = React.useState(() =>
    openDraft(presets(schema), form)
  );
  const secrets = secretsIn(schema, message);
  return (
    <div
      className="jp-AgentBox-form"
      onKeyDown={event => {
        event.stopPropagation(); // no key of a field is the card's
      }}
    >
      {secrets.length > 0 ? (
        <p className="jp-AgentBox-warning">
          {trans.__(
            'This looks like a secret: %1. A server must not ask for one in a form; it gets what you type.',
            secrets.map(name => label(name)).join(', ')
          )}
        </p>
      ) : null}
      <React.Suspense fallback={<p>{trans.__('Opening the form…')}</p>}>
        <FormFields
          source={form}
          draft={draft}
          error={error}
          onChange={setDraft}
        />
      </React.Suspense>
      <Buttons
        {...rest}
        label={trans.__('Answer')}
        onAccept={() => {
          send('accept', draft.values);
        }}
        send={send}
      />
    </div>
  );
}

/** The fields that ask for a secret: they say so themselves, or the server does and anything can be typed. */
function secretsIn({ properties }: IJsonObject, message: string): string[] {
  const isAsked = isSecretName(message);
  const fields = Object.entries(
    (properties ?? {}) as Record<string, IJsonObject>
  );
  return fields.flatMap(
    ([name, { title, description, type, enum: choices }]) => {
      const called = typeof title === 'string' ? `${name} ${title}` : name;
      const isFree = type === 'string' && !choices;
      const said = typeof description === 'string' ? description : '';
      return isSecretName(`${called} ${said}`) || (isAsked && isFree)
        ? [called]
        : [];
    }
  );
}

function PageAnswer(props: IAnswerProps & { url: string }): JSX.Element {
  const trans = useTrans();
  const { url, send, ...rest } = props;
  return (
    <>
      <p className="jp-AgentBox-note">
        {trans.__('It wants you to open this page in a new tab:')}
      </p>
      <Address url={url} />
      <Buttons
        {...rest}
        label={trans.__('Open the page')}
        onAccept={() => {
          openPage(url);
          send('accept');
        }}
        send={send}
      />
    </>
  );
}

interface IButtonsProps extends IAnswerProps {
  label: string;
  onAccept: () => void;
}

/** No letters: those of a request must not answer a question. */
function Buttons(props: IButtonsProps): JSX.Element {
  const trans = useTrans();
  const { describedBy, isBusy, send } = props;
  const base = { describedBy, isBusy };
  return (
    <div className="jp-AgentBox-buttons">
      <DecisionButton
        {...base}
        kind="neutral"
        label={props.label}
        onActivate={props.onAccept}
      />
      <DecisionButton
        {...base}
        kind="neutral"
        label={trans.__('Decline')}
        onActivate={() => {
          send('decline');
        }}
      />
      <DecisionButton
        {...base}
        kind="neutral"
        label={trans.__('Cancel')}
        onActivate={() => {
          send('cancel');
        }}
      />
    </div>
  );
}

interface IAnswering {
  isBusy: boolean;
  failure: string;
  /** What is wrong with one of the values. */
  error: IArgumentError | null;
  send: Send;
}

function useAnswering({ onAnswer }: IQuestionCardProps): IAnswering {
  const trans = useTrans();
  const [isBusy, setBusy] = React.useState(false);
  const [failure, setFailure] = React.useState('');
  const [error, setError] = React.useState<IArgumentError | null>(null);
  const send: Send = (action, content) => {
    setBusy(true);
    setFailure('');
    setError(null);
    onAnswer(action, content)
      .catch((reason: unknown) => {
        const isRefused = reason instanceof RequestError;
        if (isRefused && reason.parameter) {
          setError({ parameter: reason.parameter, message: reason.message });
        }
        setFailure(
          isRefused
            ? label(reason.message, 300)
            : trans.__('The server cannot be reached. Try again.')
        );
      })
      .finally(() => {
        setBusy(false);
      });
  };
  return { isBusy, failure, error, send };
}

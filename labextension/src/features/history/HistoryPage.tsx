/**
 * The page of all calls: filters, a table with a line for each, and the cards of opened ones.
 */
import React from 'react';

import type { AuditLogModel, IAuditFilter } from '../../model/auditLog';
import { NO_FILTER } from '../../model/auditLog';
import { SearchField } from '../../ui/components/SearchField';
import { LinkButton } from '../../ui/components/VisibleText';
import { useNameOf, useTrans } from '../../ui/context';
import { useSignal } from '../../ui/hooks/useSignal';
import { HistoryTable } from './HistoryTable';
import { LoadFailure } from './LoadFailure';
import { localeOf } from '../../ui/text/language';
import type { NameOf } from '../../ui/text/reviewers';

/** Milliseconds after the last key until a search begins. */
const TYPING = 300;

export interface IHistoryPageProps {
  log: AuditLogModel;
  /** Is told of the page's node when it is there. */
  onRendered?: (page: HTMLElement) => void;
}

export function HistoryPage(props: IHistoryPageProps): JSX.Element {
  const trans = useTrans();
  const { log } = props;
  const page = React.useRef<HTMLElement>(null);
  const onRendered = React.useRef(props.onRendered);
  React.useLayoutEffect(() => {
    if (page.current) {
      onRendered.current?.(page.current);
    }
  }, []);
  useSignal(log.changed);
  const isFiltered = JSON.stringify(log.filter) !== JSON.stringify(NO_FILTER);
  return (
    <section
      ref={page}
      className="jp-AgentBox-historyPage"
      aria-label={trans.__('AgentBox history')}
    >
      <Filters log={log} />
      {log.state === 'failing' ? (
        <LoadFailure
          onRetry={() => {
            void log.load();
          }}
        />
      ) : null}
      {log.records.length > 0 ? <HistoryTable records={log.records} /> : null}
      {log.records.length === 0 && log.state === 'ready' ? (
        <p className="jp-AgentBox-empty">
          {isFiltered
            ? trans.__('No call matches.')
            : trans.__('No code has called a tool yet.')}
        </p>
      ) : null}
      <Foot log={log} />
    </section>
  );
}

interface ILogProps {
  log: AuditLogModel;
}

function Foot({ log }: ILogProps): JSX.Element {
  const trans = useTrans();
  const until = log.searchedUntil;
  return (
    <div className="jp-AgentBox-historyFoot">
      <span role="status">
        {log.state === 'loading' ? trans.__('Loading…') : null}
      </span>
      {log.hasMore && log.state === 'ready' ? (
        <>
          {log.filter.text.trim() && until ? (
            <span>
              {trans.__(
                'Searched back to %1.',
                new Date(until).toLocaleString(localeOf(trans))
              )}
            </span>
          ) : null}
          <LinkButton
            label={trans.__('Load more')}
            onClick={() => {
              void log.loadMore();
            }}
          />
        </>
      ) : null}
    </div>
  );
}

function Filters({ log }: ILogProps): JSX.Element {
  const trans = useTrans();
  const nameOf = useNameOf();
  const { filter } = log;
  const set = (change: Partial<IAuditFilter>): void => {
    void log.setFilter(change);
  };
  return (
    <form
      className="jp-AgentBox-historyFilters"
      role="search"
      onSubmit={event => {
        event.preventDefault();
      }}
    >
      <TextFilter
        name={trans.__('Search')}
        value={filter.text}
        onChange={text => {
          set({ text });
        }}
        isWide={true}
      />
      <label>
        {trans.__('When')}
        <select
          value={filter.period}
          onChange={event => {
            set({ period: event.target.value as IAuditFilter['period'] });
          }}
        >
          <option value="all">{trans.__('Any time')}</option>
          <option value="today">{trans.__('Today')}</option>
          <option value="yesterday">{trans.__('Yesterday')}</option>
          <option value="week">{trans.__('Last 7 days')}</option>
        </select>
      </label>
      <label>
        {trans.__('Decision')}
        <select
          value={filter.result}
          onChange={event => {
            set({ result: event.target.value as IAuditFilter['result'] });
          }}
        >
          <option value="any">{trans.__('Any')}</option>
          <option value="allowed">{trans.__('Allowed')}</option>
          <option value="rejected">{trans.__('Rejected')}</option>
          <option value="failed">{trans.__('Allowed and failed')}</option>
          <option value="waiting">{trans.__('Waiting')}</option>
          <option value="lapsed">{trans.__('Never answered')}</option>
        </select>
      </label>
      <TextFilter
        name={trans.__('Tool')}
        value={filter.tool}
        onChange={tool => {
          set({ tool });
        }}
      />
      <TextFilter
        name={trans.__('Who')}
        value={filter.reviewer}
        onChange={reviewer => {
          set({ reviewer });
        }}
        choices={whoOf(log, nameOf, trans.__('you'))}
      />
      <TextFilter
        name={trans.__('Notebook')}
        value={filter.notebook}
        onChange={notebook => {
          set({ notebook });
        }}
        choices={notebooksOf(log)}
      />
      <span className="jp-AgentBox-historyActions">
        <LinkButton
          label={trans.__('Refresh')}
          onClick={() => {
            void log.load();
          }}
        />
        <Download
          url={log.url('csv')}
          title={trans.__(
            'Downloads all calls that match the filters, as a table for spreadsheets'
          )}
          text={trans.__('Download CSV')}
        />
        <Download
          url={log.url('jsonl')}
          title={trans.__(
            'Downloads all calls that match the filters, with a JSON object for each'
          )}
          text={trans.__('Download JSON Lines')}
        />
      </span>
    </form>
  );
}

interface IDownloadProps {
  url: string;
  title: string;
  text: string;
}

/** A link that downloads the calls in a format. */
function Download({ url, title, text }: IDownloadProps): JSX.Element {
  return (
    <a className="jp-AgentBox-link" href={url} download="" title={title}>
      {text}
    </a>
  );
}

interface ITextFilterProps {
  name: string;
  value: string;
  onChange: (value: string) => void;
  choices?: readonly string[];
  isWide?: boolean;
}

/** A field whose text is searched for when typing stops. */
function TextFilter(props: ITextFilterProps): JSX.Element {
  const { name, value, onChange, choices } = props;
  const [text, setText] = React.useState(value);
  React.useEffect(() => {
    if (text === value) {
      return;
    }
    const timer = window.setTimeout(() => {
      onChange(text);
    }, TYPING);
    return () => {
      window.clearTimeout(timer);
    };
  }, [text, value, onChange]);
  return (
    <SearchField
      name={name}
      value={text}
      choices={choices}
      isWide={props.isWide}
      onChange={setText}
    />
  );
}

/** The names by which the loaded reviewers are found, as people write them. */
function whoOf(log: AuditLogModel, nameOf: NameOf, you: string): string[] {
  const names = log.records.flatMap(({ decision }) => {
    if (!decision) {
      return [];
    }
    const name = decision.reviewer_name || decision.reviewer;
    return [nameOf(decision) === you ? you : name];
  });
  return [...new Set([...names, 'rule', 'api_token'])].sort();
}

function notebooksOf(log: AuditLogModel): string[] {
  const paths = log.records.flatMap(({ call }) => call.notebook_path ?? []);
  return [...new Set(paths)].sort();
}

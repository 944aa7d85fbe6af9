import { Notification } from '@jupyterlab/apputils';
import { CommandRegistry } from '@lumino/commands';
import { MessageLoop } from '@lumino/messaging';
import { Signal } from '@lumino/signaling';
import { Widget } from '@lumino/widgets';
import { act, fireEvent, render } from '@testing-library/react';
import React from 'react';

import type {
  IApproval,
  IAuditRecord,
  IQuestionRecord
} from '../../src/api/protocol';
import { BlockedOutput } from '../../src/features/outputs/BlockedOutput';
import { readItem } from '../../src/api/threads';
import type { IItemOutput } from '../../src/api/threads';
import { ThreadList } from '../../src/features/threads/ThreadList';
import type { IThreadDialogs } from '../../src/features/threads/threadDialogs';
import { ItemView } from '../../src/ui/items/ItemView';
import { byPerson } from '../person';
import { itemData, thread } from '../threads';
import { DesktopNotifier } from '../../src/features/approvals/desktopNotifier';
import { HubRequestNotifier } from '../../src/features/approvals/hubRequestNotifier';
import { Notifier } from '../../src/features/approvals/notifier';
import { QuestionNotifier } from '../../src/features/approvals/questionNotifier';
import { PendingFilter } from '../../src/features/approvals/pendingFilter';
import { PendingList } from '../../src/features/approvals/PendingList';
import { RejectAllButton } from '../../src/features/approvals/RejectAllButton';
import { HubRequestList } from '../../src/features/hubRequests/HubRequestList';
import { HistoryList } from '../../src/features/history/HistoryList';
import { HistoryTable } from '../../src/features/history/HistoryTable';
import { RuleList } from '../../src/features/rules/RuleList';
import { AddServer } from '../../src/features/servers/AddServer';
import { EMPTY } from '../../src/features/servers/newServer';
import { ServerList } from '../../src/features/servers/ServerList';
import { ApprovalModel } from '../../src/model/approvals';
import type { IRulesModel } from '../../src/model/rules';
import type {
  IHistoryModel,
  IHubRequestsModel,
  IServersModel,
  IThreadsModel
} from '../../src/internalTokens';
import { Forms, OpenForms } from '../../src/ui/card/forms';
import { openDraft } from '../../src/ui/form/draft';
import { RequestCard } from '../../src/ui/card/RequestCard';
import { CardProvider, LanguageProvider } from '../../src/ui/context';
import type { ICardContext } from '../../src/ui/context';
import { addAgentNotebookCommand } from '../../src/shell/agentNotebook';
import { addCommands } from '../../src/shell/commands';
import { addToolDemoCommand } from '../../src/shell/toolDemo';
import { Guide } from '../../src/shell/guide';
import { addKeyHelp, Keys } from '../../src/shell/keyHelp';
import { AgentBoxPanel } from '../../src/shell/sidePanel';
import { StatusButton } from '../../src/shell/status';
import type { IStatusOptions } from '../../src/shell/status';
import { QuestionCard } from '../../src/ui/question/QuestionCard';
import {
  approval,
  approvalAtHub,
  hubList,
  hubRequest,
  origins,
  question,
  summaryOf,
  trans as source
} from '../examples';

// What Jest cannot read of JupyterLab, and two commands need only to know a notebook by.
jest.mock('@jupyterlab/notebook', () => ({ NotebookPanel: jest.fn() }));

/** A language in which each translated text stands in brackets. */
const trans: typeof source = Object.create(source);
for (const name of ['__', '_n', 'gettext', 'ngettext'] as const) {
  const translate = source[name].bind(source) as (...args: never[]) => string;
  trans[name] = ((...args: never[]) => `⟦${translate(...args)}⟧`) as never;
}
const translator = { ...({} as object), load: () => trans } as never;

/** What reads as a word of the page; data of tests have none. */
const WORD = /[A-Za-z]{2,}/;

/** All that a person can read or hear in a node. */
function texts(node: Element): string[] {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const found: string[] = [];
  while (walker.nextNode()) {
    found.push(walker.currentNode.textContent ?? '');
  }
  for (const each of node.querySelectorAll('*')) {
    for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
      found.push(each.getAttribute(name) ?? '');
    }
  }
  return found;
}

/** The texts that are in no brackets. */
function untranslated(node: Element): string[] {
  return texts(node).filter(text => {
    let rest = text;
    while (/⟦[^⟦⟧]*⟧/.test(rest)) {
      rest = rest.replace(/⟦[^⟦⟧]*⟧/g, '');
    }
    return WORD.test(rest);
  });
}

/** A request all of whose data are in Greek. */
function request(fields: Partial<IApproval> = {}): IApproval {
  const base = approval();
  return approval({
    id: '1',
    call: {
      ...base.call,
      server: 'αγορά',
      tool: 'αγοράζω',
      arguments: { ποσό: 7, κείμενο: 'α\u202e'.repeat(900) },
      digest: '1',
      kernel_id: '1',
      notebook_path: 'α',
      cell_id: '1',
      look_alikes: [
        { of: 'value', code: '1', name: 'α', like: '' },
        { of: 'server', code: '1', name: 'α', like: 'α' }
      ]
    },
    tool: {
      title: 'τίτλος',
      description: 'λέξη',
      annotations: {
        readOnlyHint: false,
        destructiveHint: true,
        openWorldHint: true
      },
      input_schema: {
        type: 'object',
        properties: { ποσό: { type: 'integer' } }
      }
    },
    ...fields
  });
}

const decision = {
  decision: 'allow_once' as const,
  reviewer: 'α',
  reviewer_kind: 'user' as const,
  reviewer_name: null,
  via: 'browser' as const,
  reason: '',
  decided_at: '2026-01-01T00:01:00Z',
  arguments: { ποσό: 8 },
  digest: '1'
};

function outcome(state: string, error = ''): Partial<IApproval> {
  return {
    status: 'approved',
    decision,
    outcome: {
      state,
      error,
      started_at: '2026-01-01T00:01:00Z',
      finished_at: state === 'running' ? null : '2026-01-01T00:02:02Z',
      progress: { progress: 1, total: 2, message: 'α' }
    } as IApproval['outcome']
  };
}

const STATES: [string, Partial<IApproval>][] = [
  ['pending', { expires_at: '2026-01-01T00:10:00Z' }],
  ['with a rule', { evaluation: { effect: 'ask', rule: 'α' } }],
  ['running', outcome('running')],
  ['succeeded', outcome('succeeded')],
  ['failed', outcome('failed', 'α')],
  ['cancelled while running', outcome('cancelled')],
  ['rejected', { status: 'rejected', decision }],
  ['expired', { status: 'expired' }],
  ['cancelled', { status: 'cancelled' }],
  ['orphaned', { status: 'orphaned' }]
];

/** A page that knows some requests. */
function context(
  ...known: IApproval[]
): ICardContext & { model: ApprovalModel } {
  const model = new ApprovalModel({
    listApprovals: () => Promise.resolve({ approvals: known, next: null }),
    listSummaries: () =>
      Promise.resolve({ summaries: known.map(summaryOf), next: null }),
    getApproval: id =>
      Promise.resolve(known.find(one => one.id === id) ?? known[0]),
    decide: () => Promise.reject(new Error()),
    extend: () => Promise.reject(new Error('nobody asks')),
    decideAll: () => Promise.reject(new Error()),
    now: () => Date.parse('2026-01-01T00:00:00Z')
  });
  model.remember(known);
  return {
    model,
    origins: {
      closed: origins.closed,
      kernelsChanged: origins.kernelsChanged,
      isOpen: () => false,
      hasPlace: () => false,
      cellOf: () => null,
      isInView: () => true,
      describe: () => '1',
      reveal: () => Promise.resolve(true),
      describePlace: () => '',
      revealPlace: () => Promise.resolve(true)
    },
    nameOf: () => 'α',
    translator,
    trans,
    openInPanel: () => undefined
  };
}

beforeEach(() => {
  // Dates are in the language of the browser.
  jest.spyOn(Date.prototype, 'toLocaleString').mockReturnValue('1.1.2026');
  jest.spyOn(Date.prototype, 'toLocaleTimeString').mockReturnValue('12:00');
});

afterEach(() => {
  jest.restoreAllMocks();
});

test.each(STATES)('no word of a card is only English: %s', (_, fields) => {
  const shared = context(request(fields));
  const { container } = render(
    <CardProvider value={shared}>
      <RequestCard requestId="1" hasLink={true} />
    </CardProvider>
  );
  expect(texts(container).join('')).toContain('⟦');
  expect(untranslated(container)).toEqual([]);
  Signal.clearData(shared.model);
});

test.each(['reject', 'comment', 'edit'] as const)(
  'no word of an open form is only English: %s',
  async mode => {
    const shared = context(request());
    const { call, tool } = request();
    const draft = openDraft(call.arguments, tool.input_schema);
    const forms = new Forms();
    forms.set('1', {
      mode,
      reason: '',
      draft: { ...draft, mode: 'json', text: '{', problem: null }
    });
    const { container } = render(
      <OpenForms.Provider value={forms}>
        <CardProvider value={shared}>
          <RequestCard requestId="1" />
        </CardProvider>
      </OpenForms.Provider>
    );
    await act(async () => {
      await import('../../src/ui/form/EditForm');
    });
    expect(container.querySelector('textarea')).not.toBeNull();
    expect(untranslated(container)).toEqual([]);
    Signal.clearData(shared.model);
  }
);

test.each([
  ['empty', []],
  ['full', [request(), request({ ...outcome('succeeded'), id: '2' })]]
])('no word of the panel is only English: %s', async (_, known) => {
  const changed = new Signal<object, void>({});
  const server = {
    name: 'α',
    transport: 'stdio',
    state: 'stopped',
    error: null,
    log: ['α'],
    tool_count: 1,
    protocol_version: '1',
    calls: 1,
    last_error: 'α'
  };
  const list = { servers: known.length ? [server] : [], problems: [] };
  const servers = { changed, list } as unknown as IServersModel;
  const items = known.filter(({ status }) => status !== 'pending');
  const hasMore = items.length > 0;
  const history = { changed, items, hasMore, state: 'ready' };
  const shared = context(...known);
  await shared.model.refresh();
  const { container } = render(
    <CardProvider value={shared}>
      <PendingList
        filter={new PendingFilter()}
        wanted={null}
        isOpened={false}
        rejectsAll={0}
      />
      <HistoryList history={history as unknown as IHistoryModel} />
      <ServerList servers={servers} />
    </CardProvider>
  );
  await act(() => Promise.resolve());
  // The name of a transport is MCP's, and an example of a file is code.
  const found = untranslated(container).filter(
    text => !/stdio|mcpServers/.test(text)
  );
  expect(found).toEqual([]);
  Signal.clearData(shared.model);
});

test.each(['shown', 'all'])(
  'no word of the form that rejects what is %s is only English',
  async which => {
    const { call } = request();
    const shared = context(
      ...Array.from({ length: 12 }, (_, n) =>
        request({
          id: `${n}`,
          call: { ...call, tool: `α${n}`, notebook_path: `β${n % 2}` }
        })
      )
    );
    await shared.model.refresh();
    const filter = new PendingFilter();
    filter.text = which === 'shown' ? 'α' : '';
    const list = (rejectsAll: number): JSX.Element => (
      <CardProvider value={shared}>
        <RejectAllButton filter={filter} onActivate={() => undefined} />
        <PendingList
          filter={filter}
          wanted={null}
          isOpened={false}
          rejectsAll={rejectsAll}
        />
      </CardProvider>
    );
    const { container, rerender } = render(list(0));
    await act(() => Promise.resolve());
    if (which === 'shown') {
      const [button] = container.querySelectorAll(
        '.jp-AgentBox-rejectAll > button'
      );
      byPerson(button, new MouseEvent('click', { bubbles: true }));
    } else {
      rerender(list(1));
    }
    const late = request({ id: '99', call: { ...call, tool: 'αγ' } });
    act(() => {
      shared.model.remember([late]);
    });
    expect(container.querySelector('textarea')).not.toBeNull();
    expect(
      container.querySelectorAll('[role="status"] .jp-AgentBox-note')
    ).toHaveLength(1);
    expect(untranslated(container)).toEqual([]);
    Signal.clearData(shared.model);
  }
);

test('no word of the guide is only English', () => {
  const links = { showTab: () => undefined, execute: () => undefined };
  const { container } = render(<Guide links={links} trans={trans} />);
  const parts = [...container.querySelectorAll('h1, h2, p, button')];
  const whole = parts.map(part => part.textContent ?? '');
  expect(whole.filter(text => !/^⟦.*⟧$/.test(text))).toEqual([]);
});

test('no word of the help with the keys is only English', () => {
  const { container } = render(<Keys oldest="" trans={trans} />);
  // Letters of keys are what is printed on them.
  expect(untranslated(container)).toEqual([]);
});

test('no word of the list of threads is only English', () => {
  const changed = new Signal<object, void>({});
  const fields = {
    name: '',
    notebook_path: 'α',
    last_prompt: 'α',
    turn_id: '1'
  };
  const known = [
    thread('1', { ...fields, state: 'waiting' }),
    thread('2', { ...fields, is_archived: true })
  ];
  for (const threads of [known, []]) {
    const model = { changed, threads, hasMore: true, showsArchived: true };
    const { container } = render(
      <LanguageProvider value={{ translator, trans }}>
        <ThreadList
          threads={model as unknown as IThreadsModel}
          dialogs={{} as IThreadDialogs}
        />
      </LanguageProvider>
    );
    expect(untranslated(container)).toEqual([]);
  }
});

test.each([
  { type: 'agent_message', text: 'α', phase: 'final_answer' },
  { type: 'agent_message', text: 'α', phase: 'commentary' },
  { type: 'reasoning', text: 'α' },
  { type: 'user_message', text: 'α' },
  { type: 'notice', text: 'α' },
  { type: 'tool_call', server: 'α', tool: 'α', status: 'failed' },
  { type: 'code_run', code: 'α', status: 'declined', error: 'α' }
])('no word of an item is only English: %j', item => {
  const sanitizer = { sanitize: (html: string) => html };
  const { container } = render(
    <CardProvider value={context()}>
      <ItemView
        output={readItem(itemData(item)) as IItemOutput}
        markdown={{ parser: null, typesetter: null, sanitizer, trans }}
        onInsert={() => undefined}
      />
    </CardProvider>
  );
  expect(untranslated(container)).toEqual([]);
});

test('no word of code that asks, and of its edit, is only English', async () => {
  const finding = { code: '1', severity: 'error', message: 'α', line: 1 };
  const base = request();
  const shared = context(
    request({
      call: {
        ...base.call,
        server: 'notebook',
        tool: 'run_code',
        arguments: { code: 'α' }
      },
      tool: { ...base.tool, annotations: { findings: [finding] } }
    })
  );
  const { container } = render(
    <CardProvider value={shared}>
      <RequestCard requestId="1" />
    </CardProvider>
  );
  const names = /notebook|run_code|^code$/;
  const found = untranslated(container).filter(text => !names.test(text));
  expect(found).toEqual([]);
  Signal.clearData(shared.model);
});

test('no word of a blocked output is only English', () => {
  const { container } = render(
    <LanguageProvider value={{ translator, trans }}>
      <BlockedOutput
        kind="α"
        source="α"
        isSandboxed={false}
        onAllow={() => Promise.resolve()}
      />
    </LanguageProvider>
  );
  expect(untranslated(container)).toEqual([]);
});

test.each([
  {
    mode: 'form' as const,
    schema: { type: 'object', properties: { ποσό: { type: 'integer' } } }
  },
  { mode: 'url' as const, schema: null, url: 'https://αγορά.γρ/' }
])('no word of a question is only English: %j', fields => {
  const base = { server: 'α', tool: 'α', message: 'α', calls: 2 };
  const { container } = render(
    <CardProvider value={context()}>
      <QuestionCard
        question={question({ ...base, notebook_path: 'α', ...fields })}
        onAnswer={() => Promise.resolve()}
        onOpenInPanel={() => undefined}
      />
    </CardProvider>
  );
  // The address is the server's.
  const found = untranslated(container).filter(
    text => !/https:|xn--/.test(text)
  );
  expect(found).toEqual([]);
});

test.each(['New rule…', 'Edit as JSON…'])(
  'no word of the rules is only English: %s',
  async button => {
    const rule = { server: 'α', tool: 'α' };
    const effective = ['allow', 'ask', 'deny'].map((effect, line) => ({
      ...rule,
      effect,
      layer: line > 1 ? 'site' : 'user',
      file: 'α',
      line
    }));
    const policy = {
      rules: [],
      file: 'α',
      revision: '1',
      writable: true,
      effective,
      problems: []
    };
    const changed = new Signal<object, void>({});
    const rules = { changed, policy, proposal: null };
    const { container, getByText } = render(
      <LanguageProvider value={{ translator, trans }}>
        <RuleList rules={rules as unknown as IRulesModel} />
      </LanguageProvider>
    );
    await act(async () => {
      const click = new MouseEvent('click', { bubbles: true });
      byPerson(getByText(`⟦${button}⟧`), click);
    });
    expect(container.querySelector('input, textarea')).not.toBeNull();
    // A level has one name, in rules and in settings.
    const levels = /^(srt|landlock|bubblewrap(-host-proc)?)$/;
    const found = untranslated(container).filter(text => !levels.test(text));
    expect(found).toEqual([]);
  }
);

test('no word of what waits at the Hub is only English', () => {
  jest.spyOn(Date.prototype, 'toLocaleString').mockReturnValue('1.1.2026');
  const names = { asked_by: 'α', server: 'αγορά', tool: 'αγοράζω' };
  for (const total of [0, 2]) {
    const requests = total ? [hubRequest(names)] : [];
    const list = { ...hubList(requests, total), problem: 'α' };
    const changed = new Signal<object, void>({});
    const hub = { changed, list, now: () => 0 } as unknown;
    const { container } = render(
      <LanguageProvider value={{ translator, trans }}>
        <HubRequestList hub={hub as IHubRequestsModel} />
      </LanguageProvider>
    );
    expect(untranslated(container)).toEqual([]);
  }
});

test('no word of the table of the history is only English', () => {
  const records = STATES.map(([, fields], index) => {
    const { call, status, evaluation, created_at, ...rest } = request(fields);
    const outcome = rest.outcome && {
      state: rest.outcome.state,
      error: 'α',
      questions: [{} as IQuestionRecord]
    };
    return {
      id: String(index),
      signature: 'αγορά.αγοράζω()',
      ended_at: created_at,
      seconds: 2,
      decision: rest.decision,
      ...{ call, status, evaluation, created_at, outcome }
    } as IAuditRecord;
  });
  jest.spyOn(Date.prototype, 'toLocaleDateString').mockReturnValue('1.1.2026');
  const { container } = render(
    <CardProvider value={context()}>
      <HistoryTable records={records} />
    </CardProvider>
  );
  for (const row of container.querySelectorAll('tbody button')) {
    fireEvent.click(row);
  }
  expect(untranslated(container)).toEqual([]);
});

test.each(['program', 'address', 'json'] as const)(
  'no word of the form of a new server is only English: %s',
  kind => {
    const { container } = render(
      <LanguageProvider value={{ translator, trans }}>
        <AddServer
          start={{ ...EMPTY, kind }}
          servers={{} as never}
          onClose={() => undefined}
        />
      </LanguageProvider>
    );
    expect(container.querySelector('input')).not.toBeNull();
    expect(untranslated(container)).toEqual([]);
  }
);

/** The texts of a list that are in no brackets. */
function notTranslated(found: readonly string[]): string[] {
  const node = document.createElement('div');
  node.replaceChildren(...found);
  return untranslated(node);
}

test('no word of the status bar is only English', () => {
  for (const count of [0, 1, 2]) {
    const many = <T,>(one: T): T[] => Array.from({ length: count }, () => one);
    const changed = new Signal<never, never>({} as never);
    const options = {
      model: {
        changed,
        pending: many(request()),
        atHub: many(approvalAtHub())
      },
      hub: { changed, list: hubList([]) },
      questions: { changed, questions: many(question()) },
      panel: {},
      trans
    };
    const { container } = render(
      <StatusButton {...(options as unknown as IStatusOptions)} />
    );
    expect(texts(container).join('')).toContain('⟦');
    expect(untranslated(container)).toEqual([]);
  }
});

test('no word of the commands is only English', async () => {
  const registry = new CommandRegistry();
  const ids = addCommands(registry, { trans } as never);
  addKeyHelp(registry, trans);
  const said = registry
    .listCommands()
    .flatMap(id => [
      registry.label(id),
      registry.label(id, { isPalette: true }),
      registry.caption(id)
    ]);
  const options = { trans, kernelspecs: {} as never, whyOff: () => '' };
  addAgentNotebookCommand(registry, options);
  addToolDemoCommand(registry, options);
  for (const id of registry.listCommands()) {
    const { args } = await registry.describedBy(id);
    expect(args).not.toBeNull();
    const properties = Object.values(args?.['properties'] ?? {});
    said.push(...properties.map(({ description }) => String(description)));
  }
  expect(said.filter(text => text.includes('⟦')).length).toBeGreaterThan(
    2 * ids.length
  );
  expect(notTranslated(said)).toEqual([]);
});

test('no word of the panel’s own, nor of its tabs, is only English', () => {
  const panel = new AgentBoxPanel({
    shell: {} as never,
    restored: Promise.resolve(),
    trans
  });
  Widget.attach(panel, document.body);
  for (const count of [0, 1, 2]) {
    const section = panel.addSection({
      id: `s${count}`,
      label: 'α',
      rank: count,
      widget: new Widget()
    });
    section.count = count;
  }
  MessageLoop.flush();
  expect(texts(panel.node).join('')).toContain('⟦');
  expect(untranslated(panel.node)).toEqual([]);
  expect(notTranslated([panel.title.caption, panel.title.label])).toEqual([]);
  panel.dispose();
});

test('no word of a notification, in the page or on the desktop, is only English', async () => {
  jest.useFakeTimers();
  const shown: string[] = [];
  class Shown extends EventTarget {
    static readonly permission = 'granted';

    constructor(title: string, options: NotificationOptions) {
      super();
      shown.push(title, options.body ?? '');
    }

    close(): void {
      shown.push('');
    }
  }
  window.Notification = Shown as never;
  const shared = context();
  const elsewhere = { ...shared.origins, isInView: () => false };
  const changed = new Signal<object, void>({});
  const questions = { changed, questions: [] as unknown[] };
  const hub = { changed, list: hubList([]) };
  const common = {
    model: shared.model,
    origins: elsewhere,
    panel: { isVisible: false },
    restored: Promise.resolve(),
    trans
  };
  const desktop = new DesktopNotifier({ ...common, show: () => undefined });
  desktop.isEnabled = true;
  jest.spyOn(document, 'hasFocus').mockReturnValue(false);
  const all = [
    desktop,
    new Notifier(common as never),
    new QuestionNotifier({ ...common, desktop, questions } as never),
    new HubRequestNotifier({ ...common, desktop, hub } as never)
  ];
  for (const count of [1, 2]) {
    const expires_at = '2026-01-01T00:01:00Z';
    const created_at = '2025-12-31T23:00:00Z';
    const id = String(count);
    shared.model.remember([request({ id, expires_at, created_at })]);
    questions.questions.push(question({ id, server: 'α', tool: 'α' }));
    const asked = { id, asked_by: 'α', server: 'α', tool: 'α' };
    hub.list = hubList([...hub.list.requests, hubRequest(asked)]);
    changed.emit();
    await jest.advanceTimersByTimeAsync(10_000);
    for (const { message, options } of Notification.manager.notifications) {
      shown.push(message);
      for (const { label, caption } of options.actions ?? []) {
        shown.push(label, caption ?? '');
      }
    }
  }
  expect(shown.filter(text => text.includes('⟦')).length).toBeGreaterThan(10);
  expect(notTranslated(shown)).toEqual([]);
  all.forEach(one => {
    one.dispose();
  });
  Signal.clearData(shared.model);
  jest.useRealTimers();
});

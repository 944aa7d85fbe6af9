import { Signal } from '@lumino/signaling';
import { act, fireEvent, render, screen } from '@testing-library/react';
import React from 'react';

import type { IListedTool, IServer } from '../../../src/api/protocol';
import { ServerList } from '../../../src/features/servers/ServerList';
import type { ITrying } from '../../../src/features/servers/TryTool';
import type { IServersModel } from '../../../src/internalTokens';
import { layOut, setCovered, waitForButtons } from '../../layout';
import { byPerson } from '../../person';

beforeEach(() => {
  jest.useFakeTimers();
  layOut();
});

afterEach(() => {
  jest.useRealTimers();
});

const done = (): Promise<void> => Promise.resolve();

const PAGE = {
  address: 'https://provider.example/authorize?state=s',
  host: 'provider.example',
  redirect: 'http://localhost/callback'
};

const WHOLE = {
  description: 'Adds. Then it waits.',
  input_schema: { type: 'object', properties: { a: { type: 'integer' } } }
};

function toolsOf(...names: string[]): IListedTool[] {
  return names.map(name => ({
    name,
    title: '',
    description: 'Adds. Then',
    annotations: {},
    digest: name
  }));
}

const showRequest = jest.fn();

function show(
  server: Partial<IServer>,
  tools: IListedTool[] = [],
  changed: Record<string, number> = {}
): IServersModel {
  const servers = [
    {
      name: 'db',
      state: 'running',
      transport: 'stdio',
      error: '',
      protocol_version: '',
      tool_count: null,
      log: [],
      calls: 0,
      last_error: '',
      is_signed_in: false,
      ...server
    } as IServer
  ];
  const model = {
    changed: new Signal<object, void>({}),
    list: { servers, problems: [], changed_tools: changed },
    run: jest.fn(done),
    review: jest.fn(() => Promise.resolve('a1')),
    beginSignIn: jest.fn(() => Promise.resolve(PAGE)),
    cancelSignIn: jest.fn(done),
    signOut: jest.fn(done),
    distrust: jest.fn(done),
    refresh: jest.fn(done),
    lookAtTools: jest.fn(done),
    listTools: jest.fn(() => Promise.resolve(tools)),
    getTool: jest.fn((_: string, name: string) =>
      Promise.resolve({ ...tools.find(tool => tool.name === name), ...WHOLE })
    )
  } as unknown as IServersModel;
  render(
    <ServerList
      servers={model}
      trying={{ approvals: {} as ITrying['approvals'], showRequest }}
    />
  );
  return model;
}

/** Press a button that has been there for a while. */
async function press(name: string): Promise<void> {
  waitForButtons();
  await pressAtOnce(name);
}

async function pressAtOnce(name: string): Promise<void> {
  await act(async () => {
    byPerson(
      screen.getByRole('button', { name }),
      new MouseEvent('click', { bubbles: true })
    );
  });
}

test('a server of the project that is not trusted is reviewed, not restarted', async () => {
  const model = show({ state: 'needs_trust', error: 'is not trusted yet' });
  expect(screen.queryByRole('button', { name: 'Restart db' })).toBeNull();
  await press('Review db');
  expect(model.review).toHaveBeenCalledWith('db');
  expect(showRequest).toHaveBeenCalledWith('a1'); // its card says what would start
  expect(model.run).not.toHaveBeenCalled();
});

test.each([
  [true, 'http · this project’s .mcp.json'],
  [false, 'http']
])(
  'a server that is not trusted says whether it is of the project: %s',
  (isOfProject, facts) => {
    show({
      state: 'needs_trust',
      transport: 'http',
      is_of_project: isOfProject
    });
    expect(document.body.textContent).toContain('not trusted');
    const said = document.querySelector('.jp-AgentBox-serverFacts');
    expect(said?.textContent).toContain(facts);
    expect(document.body.textContent?.includes('project’s')).toBe(isOfProject);
  }
);

test('a server that runs is restarted', async () => {
  const model = show({});
  await press('Restart db');
  expect(model.run).toHaveBeenCalledWith('db', 'restart');
  expect(model.review).not.toHaveBeenCalled();
});

test('the second click of a double click on “Stop” does not start the server again', async () => {
  const model = show({});
  await press('Stop db');
  expect(model.run).toHaveBeenCalledWith('db', 'stop');
  const [server] = model.list?.servers ?? [];
  act(() => {
    Object.assign(model, {
      list: { ...model.list, servers: [{ ...server, state: 'stopped' }] }
    });
    (model.changed as Signal<object, void>).emit();
  });
  await pressAtOnce('Start db');
  expect(model.run).toHaveBeenCalledTimes(1);
  await press('Start db');
  expect(model.run).toHaveBeenLastCalledWith('db', 'start');
});

test('without servers, the file is named with an example to paste', () => {
  const model = {
    changed: new Signal<object, void>({}),
    list: {
      servers: [],
      problems: [],
      file: { path: '/home/ada/.jupyter/mcp.json', document: null }
    }
  } as unknown as IServersModel;
  const { container } = render(<ServerList servers={model} />);
  screen.getByText(
    'No MCP servers are configured. List them in /home/ada/.jupyter/mcp.json, for example:'
  );
  const example = container.querySelector('pre')?.textContent ?? '';
  expect(example.split('\n')).toHaveLength(3);
  expect(JSON.parse(example)).toEqual({
    mcpServers: {
      shop: { command: 'python', args: ['-m', 'jupyter_agentbox.demo.shop'] }
    }
  });
});

test('a button that something covers stops no server', async () => {
  const model = show({});
  waitForButtons();
  setCovered(true);
  await press('Stop db');
  expect(model.run).not.toHaveBeenCalled();
});

test('no script restarts a server', () => {
  const model = show({});
  fireEvent.click(screen.getByRole('button', { name: 'Restart db' }));
  expect(model.run).not.toHaveBeenCalled();
});

test('its buttons look like those of the panel', () => {
  show({ is_signed_in: true });
  const names = ['Stop db', 'Restart db', 'Sign out of db'];
  for (const name of names) {
    expect(screen.getByRole('button', { name }).className).toBe(
      'jp-AgentBox-button jp-mod-neutral'
    );
  }
});

test('a button keeps the focus while what it does is being done', async () => {
  const model = show({});
  let finish = (): void => undefined;
  jest.mocked(model.run).mockReturnValueOnce(
    new Promise(resolve => {
      finish = resolve;
    })
  );
  const button = screen.getByRole('button', { name: 'Restart db' });
  button.focus();
  await press('Restart db');
  await press('Restart db');
  expect(model.run).toHaveBeenCalledTimes(1);
  expect(button).toHaveProperty('disabled', false);
  expect(button.getAttribute('aria-disabled')).toBe('true');
  await act(async () => {
    finish();
  });
  expect(button.getAttribute('aria-disabled')).toBe('false');
});

test('a review that the server refuses says why', async () => {
  const model = show({ state: 'needs_trust' });
  jest.mocked(model.review).mockRejectedValueOnce(new Error('no such server'));
  await press('Review db');
  expect(document.body.textContent).toContain('no such server');
});

test.each([
  [{ state: 'stopped' }, ['Start db']],
  [{ state: 'stopped', error: 'disabled in its configuration' }, []],
  [{ state: 'starting' }, ['Stop db']],
  [{ state: 'running' }, ['Stop db', 'Restart db']],
  [{ state: 'failed', error: 'it ended' }, ['Start db']],
  [{ state: 'needs_configuration' }, []],
  [{ state: 'needs_trust' }, ['Review db']],
  [{ state: 'needs_sign_in' }, ['Sign in to db']],
  [
    { state: 'needs_sign_in', sign_in_url: 'https://hub.example/servers' },
    ['Sign in to db', 'Start db']
  ],
  [
    { state: 'needs_sign_in', is_signed_in: true },
    ['Sign in to db', 'Sign out of db']
  ],
  [
    { state: 'running', is_signed_in: true },
    ['Stop db', 'Restart db', 'Sign out of db']
  ]
] as [Partial<IServer>, string[]][])(
  'a server has the buttons that make sense now: %j',
  (server, names) => {
    show(server);
    const buttons = screen.queryAllByRole('button', { name: / db$/ });
    expect(buttons.map(button => button.getAttribute('aria-label'))).toEqual(
      names
    );
  }
);

function openIt(): void {
  const button = screen.getByRole('button', { name: 'Open the page' });
  fireEvent.click(button); // a script's click does nothing
  byPerson(button, new MouseEvent('click', { bubbles: true }));
}

test('a person sees the host of the page to sign in on before it opens, and opens it', async () => {
  const opened = jest.spyOn(window, 'open').mockReturnValue(null);
  const model = show({ state: 'needs_sign_in', error: 'it wants you' });
  await press('Sign in to db');
  expect(model.beginSignIn).toHaveBeenCalledWith('db');
  expect(opened).not.toHaveBeenCalled();
  const host = document.querySelector('.jp-AgentBox-address strong');
  expect(host?.textContent).toBe('provider.example');
  openIt();
  expect(opened).toHaveBeenCalledTimes(1);
  expect(opened).toHaveBeenCalledWith(
    PAGE.address,
    '_blank',
    'noopener,noreferrer'
  );
});

test('a sign-in to a server of the Hub is on the Hub’s page, and nothing is begun here', async () => {
  const opened = jest.spyOn(window, 'open').mockReturnValue(null);
  opened.mockClear();
  const url = 'https://hub.example/services/agentbox/servers';
  const model = show({ state: 'needs_sign_in', sign_in_url: url });
  await press('Sign in to db');
  const host = document.querySelector('.jp-AgentBox-address strong');
  expect(host?.textContent).toBe('hub.example');
  openIt();
  expect(opened.mock.calls).toEqual([[url, '_blank', 'noopener,noreferrer']]);
  expect(screen.getByText(/come back, and press “Start”/)).not.toBeNull();
  await pressAtOnce('Cancel');
  expect(document.querySelector('.jp-AgentBox-address')).toBeNull();
  expect(model.beginSignIn).not.toHaveBeenCalled();
  expect(model.cancelSignIn).not.toHaveBeenCalled();
});

test('the page of a sign-in that has ended is not offered again', async () => {
  const model = show({ state: 'needs_sign_in' });
  await press('Sign in to db');
  expect(document.querySelector('.jp-AgentBox-address')).not.toBeNull();
  const become = (state: string): void => {
    const [server] = model.list?.servers ?? [];
    act(() => {
      Object.assign(model, {
        list: { ...model.list, servers: [{ ...server, state }] }
      });
      (model.changed as Signal<object, void>).emit();
    });
  };
  become('running');
  become('needs_sign_in');
  expect(document.querySelector('.jp-AgentBox-address')).toBeNull();
});

test('an address that is no page is never opened', async () => {
  const opened = jest.spyOn(window, 'open').mockReturnValue(null);
  opened.mockClear();
  const model = show({ state: 'needs_sign_in' });
  const page = { ...PAGE, address: 'javascript:alert(1)' };
  jest.mocked(model.beginSignIn).mockResolvedValueOnce(page);
  await press('Sign in to db');
  openIt();
  expect(opened).not.toHaveBeenCalled();
});

test('signing out, and a provider that cannot be found, say what happened', async () => {
  const model = show({ state: 'needs_sign_in', is_signed_in: true });
  await press('Sign out of db');
  expect(model.signOut).toHaveBeenCalledWith('db');
  jest
    .mocked(model.beginSignIn)
    .mockRejectedValueOnce(new Error('no provider'));
  await press('Sign in to db');
  expect(document.body.textContent).toContain('no provider');
  expect(document.querySelector('.jp-AgentBox-address')).toBeNull();
});

test('a trusted server of the project says that it is one, and can be distrusted', async () => {
  const model = show({ state: 'running', is_of_project: true });
  expect(document.body.textContent).toContain('this project’s .mcp.json');
  await press('Stop trusting db');
  expect(model.distrust).toHaveBeenCalledWith('db');
});

test.each([true, false])(
  'a server of the user’s own can be distrusted if it is trusted: %s',
  isTrusted => {
    show({ state: 'running', is_trusted: isTrusted });
    const found = document.body.textContent?.includes('Stop trusting');
    expect(found).toBe(isTrusted);
  }
);

test('a sign-in that came to nothing is told, and its page goes', async () => {
  const model = show({ state: 'needs_sign_in' });
  await press('Sign in to db');
  const [server] = model.list?.servers ?? [];
  const failed = { ...server, sign_in_error: 'it was denied \u202e' };
  act(() => {
    Object.assign(model, { list: { ...model.list, servers: [failed] } });
    (model.changed as Signal<object, void>).emit();
  });
  const status = screen.getByText('it was denied \\u202e').parentElement;
  expect(status?.getAttribute('role')).toBe('status');
  expect(document.querySelector('.jp-AgentBox-address')).toBeNull();
});

test('a sign-in that is cancelled is given up at the server, and the focus goes back', async () => {
  const model = show({ state: 'needs_sign_in' });
  await press('Sign in to db');
  screen.getByRole('button', { name: 'Cancel' }).focus();
  await pressAtOnce('Cancel');
  expect(model.cancelSignIn).toHaveBeenCalledWith('db');
  expect(document.querySelector('.jp-AgentBox-address')).toBeNull();
  expect(document.body.textContent).toContain('You cancelled the sign-in.');
  expect(document.activeElement?.getAttribute('aria-label')).toBe(
    'Sign in to db'
  );
  await press('Sign in to db');
  expect(document.body.textContent).not.toContain('You cancelled');
});

/** Open or close a disclosure as a browser does. */
async function toggle(text: RegExp, isOpen: boolean): Promise<void> {
  const summary = screen
    .getAllByText(text)
    .map(node => node.closest('summary'))
    .find(node => node !== null);
  const details = summary?.parentElement as HTMLDetailsElement;
  await act(async () => {
    details.open = isOpen;
    fireEvent(details, new Event('toggle'));
  });
}

const open = (text: RegExp): Promise<void> => toggle(text, true);
const close = (text: RegExp): Promise<void> => toggle(text, false);

test('of 1,203 tools some are shown, and a search finds any of them', async () => {
  const names = Array.from({ length: 1203 }, (_, index) => `tool_${index}`);
  show({ tool_count: 1203 }, toolsOf(...names));
  await open(/^1203 tools$/);
  expect(document.querySelectorAll('.jp-AgentBox-tool')).toHaveLength(50);
  await press('Show 50 more (1203 in total)');
  expect(document.querySelectorAll('.jp-AgentBox-tool')).toHaveLength(100);
  fireEvent.change(screen.getByRole('searchbox'), {
    target: { value: 'TOOL_1202' }
  });
  expect(document.querySelectorAll('.jp-AgentBox-tool')).toHaveLength(1);
  expect(screen.getByText('1 tool found')).not.toBeNull();
});

test('a tool says its first sentence, and opens to the whole and its schema', async () => {
  const model = show({ tool_count: 1 }, toolsOf('add'));
  await open(/^1 tool$/);
  expect(document.body.textContent).toContain('Adds.');
  expect(document.body.textContent).not.toContain('Then');
  await open(/^add$/);
  expect(model.getTool).toHaveBeenCalledWith('db', 'add');
  expect(document.body.textContent).toContain('Adds. Then it waits.');
  expect(document.body.textContent).toContain('"integer"');
});

test('a tool that changed is marked until it was opened, and others are noted as seen', async () => {
  const [add, drop] = toolsOf('add', 'drop');
  const model = show({ name: 'marked', tool_count: 2 }, [
    { ...add, mark: 'changed' },
    { ...drop, mark: null }
  ]);
  await open(/^2 tools$/);
  expect(model.lookAtTools).toHaveBeenCalledTimes(1);
  expect(model.lookAtTools).toHaveBeenCalledWith('marked', { drop: 'drop' });
  expect(screen.getByText('changed')).toBeTruthy();
  await open(/^add$/);
  expect(model.lookAtTools).toHaveBeenCalledTimes(1);
  await close(/^add$/);
  expect(model.lookAtTools).toHaveBeenCalledWith('marked', { add: 'add' });
});

test('a server says how many of its tools changed', () => {
  show({ name: 'db' }, [], { db: 2 });
  expect(document.body.textContent).toContain('2 tools are new or changed');
});

test('what servers say of themselves cannot hide in their list', async () => {
  const name = 'a\u202eb';
  const [tool] = toolsOf(name);
  show(
    {
      name,
      tool_count: 1,
      last_error: '\u001b[2Jgone',
      log: ['\u001b[31mred\u202e']
    },
    [{ ...tool, description: 'x'.repeat(100_000) }]
  );
  await open(/^1 tool$/);
  await open(/^Log/);
  const text = document.body.textContent ?? '';
  expect(text).not.toContain('\u202e');
  expect(text).not.toContain('\u001b');
  expect(text).toContain('\\u202e');
  expect(text.length).toBeLessThan(2000);
});

test('a long error still ends with where to look', () => {
  show({ state: 'failed', error: `${'x'.repeat(4000)}\nIts entry is here.` });
  expect(document.body.textContent).toContain('… Its entry is here.');
});

test('an error that is over is told as the last one', () => {
  show({ state: 'running', last_error: 'it was killed', calls: 3 });
  expect(document.body.textContent).toContain('The last error: it was killed');
  expect(document.body.textContent).toContain('3 calls');
});

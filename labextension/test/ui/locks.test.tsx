/**
 * What the site's administrator turned off: each control that it fixes does nothing, and says why.
 */
import { Signal } from '@lumino/signaling';
import { act, render, screen } from '@testing-library/react';
import React from 'react';

import type { IServer } from '../../src/api/protocol';
import type { FeatureName, IPolicy } from '../../src/api/rules';
import { ServerList } from '../../src/features/servers/ServerList';
import { ThreadList } from '../../src/features/threads/ThreadList';
import type { IServersModel, IThreadsModel } from '../../src/internalTokens';
import { RulesModel } from '../../src/model/rules';
import { Deciding } from '../../src/ui/card/Deciding';
import { Forms, OpenForms } from '../../src/ui/card/forms';
import { LocksProvider } from '../../src/ui/context';
import { GUARD_TIME } from '../../src/ui/guarded/guardTime';
import { CardGuard } from '../../src/ui/guarded/GuardedCard';
import { approval } from '../examples';
import { layOut } from '../layout';
import { byPerson } from '../person';

const FILE = '/etc/jupyter/agentbox_rules.json';

/** The rules of a server on which features are off. */
async function rulesWithout(...features: FeatureName[]): Promise<RulesModel> {
  const off = {
    lock: 'force-off' as const,
    message: 'it is off: set by your administrator',
    layer: 'site',
    files: [FILE]
  };
  const policy = {
    features: Object.fromEntries(features.map(name => [name, off]))
  } as unknown as IPolicy;
  const rules = new RulesModel({
    getPolicy: () => Promise.resolve(policy),
    putPolicy: jest.fn(),
    tryRule: jest.fn()
  });
  await rules.refresh();
  return rules;
}

/** Press a button as a person does, after it would have become ready. */
async function press(name: string): Promise<void> {
  act(() => {
    jest.advanceTimersByTime(GUARD_TIME);
  });
  await act(async () => {
    byPerson(
      screen.getByRole('button', { name }),
      new MouseEvent('click', { bubbles: true })
    );
  });
}

/** Expect that a button can have the focus, says why it does nothing, and shows it when it is pressed. */
async function expectLocked(name: string, what: string): Promise<void> {
  const button = screen.getByRole('button', { name });
  const why = `Set by your administrator: ${what} (${FILE})`;
  const described = button.getAttribute('aria-describedby') ?? '';
  const reason = document.getElementById(described);
  expect(button.getAttribute('aria-disabled')).toBe('true');
  expect(button.getAttribute('title')).toBe(why);
  expect(reason?.textContent).toBe(why);
  expect(reason?.hidden).toBe(true);
  button.focus();
  expect(document.activeElement).toBe(button);
  await press(name);
  expect(reason?.hidden).toBe(false);
}

/** A request whose card can be seen. */
function decide(rules: RulesModel) {
  const send = jest.fn();
  const guard = {
    exposure: 'exposed' as const,
    refusal: null,
    confirm: () => true,
    refuse: jest.fn()
  };
  const sending = {
    send,
    interrupt: jest.fn(),
    forget: jest.fn(),
    isBusy: false,
    failure: null,
    typed: '',
    argumentError: null
  };
  render(
    <LocksProvider value={rules}>
      <OpenForms.Provider value={new Forms()}>
        <CardGuard.Provider value={guard}>
          <Deciding
            approval={approval()}
            sending={sending}
            describedBy="title"
            hasUnseen={false}
          />
        </CardGuard.Provider>
      </OpenForms.Provider>
    </LocksProvider>
  );
  return send;
}

function showServers(rules: RulesModel, servers: Partial<IServer>[] = []) {
  const model = {
    changed: new Signal<object, void>({}),
    list: {
      servers: servers.map(server => ({
        transport: 'stdio',
        error: '',
        last_error: '',
        log: [],
        calls: 0,
        tool_count: null,
        protocol_version: '',
        is_signed_in: false,
        ...server
      })),
      problems: [],
      file: null
    },
    run: jest.fn(() => Promise.resolve()),
    review: jest.fn(() => Promise.resolve('r1')),
    previewServer: jest.fn(),
    listOtherServers: jest.fn(() => Promise.resolve([]))
  };
  render(
    <LocksProvider value={rules}>
      <ServerList servers={model as unknown as IServersModel} />
    </LocksProvider>
  );
  return model;
}

function showThreads(rules: RulesModel): string {
  const threads = { changed: new Signal<object, void>({}), threads: [] };
  render(
    <LocksProvider value={rules}>
      <ThreadList
        threads={threads as unknown as IThreadsModel}
        dialogs={{} as never}
      />
    </LocksProvider>
  );
  return document.body.textContent ?? '';
}

beforeEach(() => {
  jest.useFakeTimers();
  layOut();
});

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

test('arguments are not edited where that is off, and the call can be allowed as it is', async () => {
  const send = decide(await rulesWithout('edit'));
  await expectLocked('Edit', 'Arguments cannot be edited.');
  expect(screen.queryByRole('textbox')).toBeNull();
  await press('Allow once');
  expect(send).toHaveBeenCalledWith({ decision: 'allow_once' });
});

test('nothing is allowed for good where that is off; what is refused for good is', async () => {
  const send = decide(await rulesWithout('grants'));
  await press('Let it run more often…');
  const group = screen.getByRole('group', { name: 'More ways to allow' });
  const locked = [...group.querySelectorAll('.jp-mod-locked')];
  const others = [...group.querySelectorAll('button:not(.jp-mod-locked)')];
  expect(locked.length).toBeGreaterThan(1);
  expect(others.map(button => button.textContent)).toEqual([
    'Allow once with a comment…'
  ]);
  for (const button of locked) {
    await expectLocked(
      button.textContent ?? '',
      'Lasting answers that allow are off.'
    );
  }
  expect(send).not.toHaveBeenCalled();
  await press('Keep it from running…');
  expect(document.querySelector('.jp-mod-locked')).toBeNull();
});

test.each(['Add server…', 'Import servers of other programs'])(
  '“%s” leads nowhere where servers of users are off',
  async name => {
    showServers(await rulesWithout('local_servers'));
    await expectLocked(name, 'MCP servers of your own are off.');
    expect(screen.getByRole('button', { name })).toBeTruthy();
  }
);

test('a server of the project is not trusted where servers of users are off', async () => {
  const server = { name: 'shop', state: 'needs_trust' as const };
  const model = showServers(await rulesWithout('local_servers'), [server]);
  await expectLocked('Review shop', 'MCP servers of your own are off.');
  expect(model.review).not.toHaveBeenCalled();
});

test('a server of the user is not started where those are off, and one of the site is', async () => {
  const error = `it is off: set by your administrator (${FILE})`;
  const model = showServers(await rulesWithout('local_servers'), [
    { name: 'own', state: 'needs_configuration', error },
    { name: 'site', state: 'stopped' }
  ]);
  await expectLocked('Start own', 'MCP servers of your own are off.');
  await press('Start site');
  expect(model.run.mock.calls).toEqual([['site', 'start']]);
});

test('where agents are off nobody is told how to ask one', async () => {
  const said = showThreads(await rulesWithout('agents', 'models'));
  expect(said).toContain(
    `Set by your administrator: Agents are off. (${FILE})`
  );
  expect(said).toContain('The model of agents cannot be chosen.');
  expect(said).not.toContain('%%agent');
});

test('while it is not known what is off, controls are as if nothing were', async () => {
  const rules = new RulesModel({
    getPolicy: () => Promise.reject(new Error('unreachable')),
    putPolicy: jest.fn(),
    tryRule: jest.fn()
  });
  await rules.refresh();
  decide(rules);
  await press('Edit');
  expect(screen.getByRole('button', { name: 'Cancel' })).toBeTruthy();
  expect(document.querySelector('.jp-mod-locked')).toBeNull();
});

test('a control is locked as soon as the page hears of it, and free when it is no longer', async () => {
  const features: Record<string, object> = {
    edit: { lock: 'user-choice', message: null }
  };
  const rules = new RulesModel({
    getPolicy: () => Promise.resolve({ features: { ...features } } as never),
    putPolicy: jest.fn(),
    tryRule: jest.fn()
  });
  const edit = (): Element | null =>
    screen.getByRole('button', { name: 'Edit' });
  decide(rules);
  await act(() => rules.refresh());
  expect(edit()?.className).not.toContain('jp-mod-locked');
  features['edit'] = { lock: 'force-off', message: 'x' };
  await act(() => rules.refresh());
  expect(edit()?.getAttribute('title')).toBe(
    'Set by your administrator: Arguments cannot be edited.'
  );
  features['edit'] = { lock: 'user-choice', message: null };
  await act(() => rules.refresh());
  expect(edit()?.className).not.toContain('jp-mod-locked');
});

import { Token } from '@lumino/coreutils';
import { Signal } from '@lumino/signaling';

import manifest from '../../package.json';
import { PublicApprovals } from '../src/features/approvals/publicApprovals';
import * as internal from '../src/internalTokens';
import { ApprovalModel } from '../src/model/approvals';
import * as tokens from '../src/tokens';
import { approval, source } from './examples';

test.each([...Object.entries(tokens), ...Object.entries(internal)])(
  'the id of %s is the package and the name',
  (name, token) => {
    expect(token).toBeInstanceOf(Token);
    expect(token.name).toBe(`${manifest.name}:${name}`);
  }
);

test('other extensions get what they read and the panel, and nothing that decides', () => {
  expect(Object.keys(tokens).sort()).toEqual(['IAgentBoxPanel', 'IApprovals']);
});

test('what they read is a copy, and leads to nothing that decides', () => {
  const model = new ApprovalModel(source());
  const approvals = new PublicApprovals(model);
  const arrived: unknown[] = [];
  approvals.arrived.connect((_, requests) => arrived.push(...requests));
  model.remember([approval()]);

  const summary = {
    id: 'a1',
    status: 'pending',
    server: 'shop',
    tool: 'delete_order',
    kernelId: 'k1',
    notebookPath: 'orders.ipynb',
    cellId: 'c1',
    createdAt: '2026-01-01T00:00:00Z',
    expiresAt: null
  };
  expect(arrived).toEqual([summary]);
  expect(approvals.pending).toEqual([summary]);
  expect(approvals.get('a1')).toEqual(summary);
  expect(approvals.get('a2')).toBeNull();
  expect(approvals.isConnected).toBe(false);
  expect(Object.values(approvals)).not.toContain(model);
  expect('decide' in approvals).toBe(false);
  approvals.dispose();
  Signal.clearData(model);
});

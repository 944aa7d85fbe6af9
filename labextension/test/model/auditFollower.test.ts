import { Signal } from '@lumino/signaling';

import type { IApproval, IAuditRecord } from '../../src/api/protocol';
import type { IApprovalModel } from '../../src/internalTokens';
import { AuditFollower } from '../../src/model/auditFollower';
import type { AuditLogModel } from '../../src/model/auditLog';
import { allowed, approval } from '../examples';

beforeEach(() => {
  jest.useFakeTimers();
});

afterEach(() => {
  jest.useRealTimers();
});

/** Records that are what the test says, and count how often they are fetched. */
class Log {
  readonly changed = new Signal<this, void>(this);
  records: IAuditRecord[] = [];
  updates = 0;

  update(): Promise<void> {
    this.updates += 1;
    return Promise.resolve();
  }
}

/** Requests that say which of them are tracked. */
class Approvals {
  readonly arrived = new Signal<this, readonly IApproval[]>(this);
  readonly changed = new Signal<this, string | null>(this);
  readonly finished = new Signal<this, string>(this);
  readonly settled = new Signal<this, IApproval>(this);
  readonly tracked = new Set<string>();

  track(id: string): { dispose: () => void; isDisposed: boolean } {
    this.tracked.add(id);
    return { isDisposed: false, dispose: () => this.tracked.delete(id) };
  }
}

function setUp(): { log: Log; approvals: Approvals; follower: AuditFollower } {
  const log = new Log();
  const approvals = new Approvals();
  const follower = new AuditFollower(
    log as unknown as AuditLogModel,
    approvals as unknown as IApprovalModel
  );
  follower.isActive = true;
  return { log, approvals, follower };
}

async function wait(): Promise<void> {
  await jest.advanceTimersByTimeAsync(1_000);
}

test.each([
  ['arrives', ({ arrived }: Approvals) => arrived.emit([approval()])],
  ['ends', ({ settled }: Approvals) => settled.emit(allowed())],
  ['of another page ends', ({ finished }: Approvals) => finished.emit('r9')]
])('when a request %s, the newest records are fetched', async (_, happens) => {
  const { log, approvals } = setUp();
  happens(approvals);
  await wait();
  expect(log.updates).toBe(1);
});

test('many events in a second lead to one question', async () => {
  const { log, approvals } = setUp();
  for (let count = 0; count < 60; count++) {
    approvals.settled.emit(allowed({ id: `r${count}` }));
  }
  await wait();
  expect(log.updates).toBe(1);
});

test('the end of a call that is listed as running is noticed, and then it is followed no longer', async () => {
  const { log, approvals } = setUp();
  const running = { id: 'r1', status: 'approved', outcome: null };
  const ended = { id: 'r2', status: 'rejected', outcome: null };
  log.records = [running, ended] as IAuditRecord[];
  log.changed.emit();
  expect([...approvals.tracked]).toEqual(['r1']);
  approvals.changed.emit('r2');
  await wait();
  expect(log.updates).toBe(0);
  approvals.changed.emit('r1');
  await wait();
  expect(log.updates).toBe(1);
  log.records = [ended] as IAuditRecord[];
  log.changed.emit();
  expect([...approvals.tracked]).toEqual([]);
});

test('a page that nobody sees asks nothing, and asks once when it is seen again', async () => {
  const { log, approvals, follower } = setUp();
  follower.isActive = false;
  approvals.settled.emit(allowed());
  await wait();
  expect(log.updates).toBe(0);
  follower.isActive = true;
  await wait();
  expect(log.updates).toBe(1);
  follower.isActive = false;
  follower.isActive = true;
  await wait();
  expect(log.updates).toBe(1);
});

test('after its end, nothing is followed', async () => {
  const { log, approvals, follower } = setUp();
  log.records = [{ id: 'r1', status: 'pending' }] as IAuditRecord[];
  log.changed.emit();
  follower.dispose();
  approvals.arrived.emit([approval()]);
  await wait();
  expect(log.updates).toBe(0);
  expect([...approvals.tracked]).toEqual([]);
});

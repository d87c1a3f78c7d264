// Tests the session database under load: 100,000 calls must create 100,000 rows. If the disk is
// temporarily full, no record may be lost (block), or exactly the counted records (spill).
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { assert, fake, program, run, show, test, until } from '../e2e/lib.mjs';
import { Records } from '../e2e/records.mjs';
import { statusOf } from '../e2e/status.mjs';

const records = { plugin: 'telemetry-sqlite' };
const profile = (telemetry = {}) => ({
  mcpServers: { local: fake('--tool', 'ok') },
  telemetry: { records: { ...records, ...telemetry } },
});
const isCall = "FROM mcp_calls WHERE method = 'tools/call'";

async function calls(client, count, answered = () => {}) {
  let next = 0;
  await Promise.all(Array.from({ length: 16 }, async () => {
    while (next < count) {
      const i = next++;
      await client.tool('local__ok', { i }).then(() => answered(true), (error) => answered(false, error));
    }
  }));
}

for (const args of [[], ['--single-process']]) {
  test(`100,000 calls create exactly 100,000 rows ${args}`, async (t) => {
    const count = Number(process.env.TELEMETRY_CALLS ?? 100_000);
    const gateway = await t.gateway(profile(), { args });
    const client = await t.http(gateway);
    await calls(client, count);
    await gateway.stop();
    const read = new Records(gateway);
    assert.deepEqual(await read.rows(`SELECT count(*), count(DISTINCT request_preview) ${isCall}`), [[count, count]]);
    const [report] = JSON.parse((await read.verify('--json')).stdout);
    assert.ok(report.whole && report.notes.length === 0 && report.unsigned_rows === 0, show(report));
  }, { timeout: 600_000 });
}

// Starts a gateway whose state directory is on a small disk in a private mount namespace. Returns
// undefined if this user is not permitted to create it. `inside` runs a program in the namespace.
async function onSmallDisk(t, telemetry) {
  const state = t.path('state');
  mkdirSync(state, { mode: 0o700 });
  const mount = (size) => `mount -t tmpfs -o size=${size},mode=0700 tmpfs '${state}'`;
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', mount('64k')], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  const gateway = await t.gateway(
    { ...profile({ spill_bytes: 262_144, flush_ms: 20, ...telemetry }), state_dir: state },
    { wrap: ['unshare', '-m', 'sh', '-c', `${mount("96m")} && exec "$@"`, 'sh'] });
  const there = (path) => `/proc/${gateway.pid}/root${join(state, path)}`;
  // SQLite follows links itself, so it must run in the mount namespace.
  const file = join(state, 'plugins/records/calls-1-000001.db');
  const rows = (sql) => JSON.parse(execFileSync(
    'nsenter', ['-t', String(gateway.pid), '-m', program, 'inspect', sql, '--json', '--file', file],
    { env: gateway.env(), encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).rows;
  return { gateway, there, rows };
}

test('a full disk, on_failure = "block": calls are rejected, and all executed calls are recorded', async (t) => {
  const disk = await onSmallDisk(t, { on_failure: 'block' });
  if (!disk) t.skip('this user cannot mount');
  const { gateway, there, rows } = disk;
  const client = await t.http(gateway);
  execFileSync('sh', ['-c', `head -c 200m /dev/zero > '${there('ballast')}' || true`], { stdio: 'ignore' });
  let ran = 0;
  const refused = [];
  await calls(client, 60_000, (ok, error) => (ok ? ++ran : refused.push(error)));
  assert.ok(refused.length > 0, `${ran} ran`);
  assert.match(refused[0].message, /cannot record calls at the moment/);
  rmSync(there('ballast'));
  await until('calls run again', () => client.tool('local__ok', {}).then(() => ++ran, () => false), 20_000);
  const count = () => rows(`SELECT count(*) ${isCall}`)[0][0];
  await until('all calls are recorded', () => count() >= ran, 60_000);
  assert.equal(count(), ran);
  assert.equal((await statusOf(gateway)).counters.dropped_records, 0);
}, { timeout: 300_000 });

test('a full disk, on_failure = "spill": calls continue, and lost records are counted', async (t) => {
  const disk = await onSmallDisk(t, {});
  if (!disk) t.skip('this user cannot mount');
  const { gateway, there, rows } = disk;
  const client = await t.http(gateway);
  execFileSync('sh', ['-c', `head -c 200m /dev/zero > '${there('ballast')}' || true`], { stdio: 'ignore' });
  const count = 20_000;
  await calls(client, count, (ok, error) => assert.ok(ok, error?.message));
  const counters = async () => (await statusOf(gateway)).counters;
  const lost = await until('the spill file is full', async () => (await counters())['records.records_lost']);
  assert.ok((await counters())['records.records_spilled'] > 0);
  rmSync(there('ballast'));
  await until('the other calls are recorded', async () => {
    const now = await counters();
    const [[written]] = rows(`SELECT count(*) ${isCall}`);
    return written + now['records.records_lost'] >= count;
  }, 60_000);
  const [[marks]] = rows("SELECT count(*) FROM audit_marks WHERE kind = 'lost'");
  assert.ok(marks >= 1 && lost > 0, show({ marks, lost }));
}, { timeout: 300_000 });

test('a full disk, mode "full": restarted processes execute no unrecorded call', async (t) => {
  const disk = await onSmallDisk(t, { mode: 'full' });
  if (!disk) t.skip('this user cannot mount');
  const { gateway, there, rows } = disk;
  const client = await t.http(gateway);
  let ran = 0;
  for (let i = 0; i < 20; ++i) await client.tool('local__ok', { i }).then(() => ++ran);
  execFileSync('sh', ['-c', `head -c 200m /dev/zero > '${there('ballast')}' || true`], { stdio: 'ignore' });
  const compartment = async (name) => (await statusOf(gateway)).compartments.find((one) => one.name === name);
  const kill = async (name) => {
    const { pid } = await until(`${name} runs`, async () => {
      const one = await compartment(name);
      return one?.state === 'running' && one;
    });
    process.kill(pid, 'SIGKILL');
    await until(`${name} is restarted`, async () => {
      const one = await compartment(name);
      return one?.state === 'running' && one.pid !== pid;
    });
  };
  await kill('telemetry.records');
  await kill('endpoint');
  const late = await t.http(gateway).then((fresh) => fresh.tool('local__ok', { i: 'late' })).catch((error) => error);
  assert.match(String(late?.message), /could not record/, show(late));
  rmSync(there('ballast'));
  const fresh = await until('the gateway answers again', () => t.http(gateway).catch(() => undefined), 30_000);
  await until('calls run again', () => fresh.tool('local__ok', {}).then(() => ++ran, () => false), 30_000);
  const [[answered]] = rows(`SELECT count(*) ${isCall} AND outcome = 'ok'`);
  assert.ok(answered >= ran, show({ answered, ran }));
}, { timeout: 300_000 });

await run({ parallel: 1 });

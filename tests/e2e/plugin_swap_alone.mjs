// Tests the swap of plugins whose versions must not run at the same time: exclusive tools plugins and
// telemetry plugins. The new version is tried without being started; then the former process is
// stopped, and calls and records wait.
import { appendFileSync, copyFileSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert, build, fake, run, runProgram, show, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';
import { Records } from './records.mjs';

const testing = join(build, 'core/plugin/testing_plugins/plugins');
const own = join(build, 'lib/bulkhead/plugins');

// Copies a build of the exclusive plugin "held" to the path, as an installation would. Returns the path.
function install(path, name) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(join(dirname(path), 'held.plugin.toml'), `id = "held"\nversion = "${name}"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\nexclusive = true\n`);
  copyFileSync(join(testing, `held-${name}.so`), `${path}.new`);
  renameSync(`${path}.new`, path);
  return path;
}
// Copies a plugin of the program with `bytes` more bytes at its end, which no loader looks at: another
// file with the same code. Returns the path.
function copyOf(t, id, bytes) {
  const path = t.path(`${id}-${bytes}/${id}.so`);
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(join(own, `${id}.plugin.toml`), join(dirname(path), `${id}.plugin.toml`));
  copyFileSync(join(own, `${id}.so`), path);
  appendFileSync(path, 'x'.repeat(bytes));
  return path;
}
const said = async (client, tool) => (await client.tool(tool)).content[0].text;
const processesOf = async (gateway, name) => (await statusOf(gateway)).compartments.filter((one) => one.name === name && one.pid > 0);
const allRun = (gateway) => until('all processes run', async () => (await statusOf(gateway)).compartments.every((one) => one.state === 'running'));
const inFlight = (gateway, count) => until(`${count} calls run`, async () => (await statusOf(gateway)).in_flight === count);
const swap = (gateway, id, file) => ask(gateway, 'POST', `/plugins/swap/${id}`, file === undefined ? {} : { file });

const held = async (t) => {
  const paths = { first: install(t.path('a/held.so'), 'one'), second: install(t.path('b/held.so'), 'one') };
  const gateway = await t.gateway({
    tools: Object.fromEntries(Object.entries(paths).map(([name, plugin]) => [name, { plugin }])),
    limits: { drain_ms: 60_000, plugin_init_ms: 1_000, first_list_wait_ms: 60_000 },
  });
  const client = await t.http(gateway);
  await client.toolNames();
  await allRun(gateway);
  return { gateway, client, paths };
};
const both = async (client) => [await said(client, 'first__which'), await said(client, 'second__which')];

test('an exclusive plugin completes its calls before the new version starts, and other calls wait', async (t) => {
  const { gateway, client } = await held(t);
  const [old] = await processesOf(gateway, 'first');
  const [other] = await processesOf(gateway, 'second');
  const before = [1, 2, 3].map(() => said(client, 'first__hold'));
  await inFlight(gateway, 3);
  const answer = swap(gateway, 'first', install(t.path('next/held.so'), 'two'));
  await until('the former version finishes its calls', async () => (await processesOf(gateway, 'first')).some((one) => one.pid === old.pid && one.state === 'draining'));
  // There is no moment at which two versions run.
  assert.deepEqual((await processesOf(gateway, 'first')).filter((one) => one.state === 'running'), []);
  const waiting = [1, 2].map(() => said(client, 'first__which'));
  assert.equal(await said(client, 'second__which'), 'one');
  process.kill(old.pid, 'SIGUSR1');
  assert.deepEqual(await Promise.all(before), ['one', 'one', 'one']);
  assert.deepEqual(await Promise.all(waiting), ['two', 'two']);
  const done = await answer;
  assert.equal(done.status, 200, show(done));
  assert.deepEqual([done.from.version, done.to.version], ['one', 'two']);
  assert.deepEqual(await both(client), ['two', 'one']);
  assert.deepEqual((await processesOf(gateway, 'second')).map((one) => one.pid), [other.pid]);
  const back = await ask(gateway, 'POST', '/plugins/rollback/first', {});
  assert.equal(back.status, 200, show(back));
  assert.deepEqual(await both(client), ['one', 'one']);
});

for (const [name, reason] of Object.entries({
  'hangs-in-constructor': /static constructors/, 'fails-in-init': /the moon is full/, 'crashes-in-init': /SIGABRT|exited/, 'wrong-major': /ABI/,
}))
  test(`an exclusive version that ${name.replaceAll('-', ' ')} costs nothing but its message`, async (t) => {
    const { gateway, client } = await held(t);
    const [old] = await processesOf(gateway, 'first');
    const calls = [1, 2].map(() => said(client, 'first__hold'));
    await inFlight(gateway, 2);
    const done = await swap(gateway, 'first', install(t.path('next/held.so'), name));
    assert.notEqual(done.status, 200, show(done));
    assert.match(show(done), reason);
    assert.deepEqual((await processesOf(gateway, 'first')).map((one) => [one.pid, one.state]), [[old.pid, 'running']]);
    assert.deepEqual(await both(client), ['one', 'one']);
    process.kill(old.pid, 'SIGUSR1');
    assert.deepEqual(await Promise.all(calls), ['one', 'one']);
  }, { timeout: 90_000 });

for (const [name, reason] of Object.entries({ fails: /no such device/, crashes: /SIGABRT|exited/ }))
  test(`if an exclusive version ${name} in start, the former one is started again`, async (t) => {
    const { gateway, client } = await held(t);
    const done = await swap(gateway, 'first', install(t.path('next/held.so'), name));
    assert.notEqual(done.status, 200, show(done));
    assert.match(show(done), reason);
    assert.deepEqual(await both(client), ['one', 'one']);
    const now = await until('it runs', async () => {
      const found = await processesOf(gateway, 'first');
      return found.length === 1 && found[0].state === 'running' && found;
    });
    assert.equal(now.length, 1);
    // A working version can still be put into use.
    const later = await swap(gateway, 'first', install(t.path('later/held.so'), 'two'));
    assert.equal(later.status, 200, show(later));
    assert.deepEqual(await both(client), ['two', 'one']);
  }, { timeout: 90_000 });

test('the former version is started again even if its file was replaced', async (t) => {
  const { gateway, client, paths } = await held(t);
  install(paths.first, 'fails');
  const done = await swap(gateway, 'first', undefined);
  assert.notEqual(done.status, 200, show(done));
  assert.match(done.error, /no such device/);
  assert.deepEqual(await both(client), ['one', 'one']);
  // It also runs after a crash and after a reload, until the file changes again.
  const [now] = await processesOf(gateway, 'first');
  process.kill(now.pid, 'SIGKILL');
  await until('it runs again', async () => (await processesOf(gateway, 'first')).some((one) => one.pid !== now.pid && one.state === 'running'));
  assert.deepEqual(await both(client), ['one', 'one']);
  assert.equal((await ask(gateway, 'POST', '/reload-config')).status, 200);
  assert.deepEqual(await both(client), ['one', 'one']);
  install(paths.first, 'two');
  const later = await swap(gateway, 'first', undefined);
  assert.equal(later.status, 200, show(later));
  assert.deepEqual(await both(client), ['two', 'one']);
}, { timeout: 90_000 });

for (const mode of ['batch', 'full'])
  test(`swaps of telemetry plugins lose and double no record (${mode})`, async (t) => {
    const gateway = await t.gateway({
      mcpServers: { local: fake('--tool', 'ok') },
      telemetry: { records: { plugin: 'telemetry-sqlite', mode, flush_ms: 50 } },
    });
    const records = new Records(gateway);
    const clients = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => t.http(gateway)));
    await clients[0].tool('local__ok', { i: 0 });
    await allRun(gateway);
    let next = 1;
    let over = false;
    const load = clients.map(async (client) => {
      while (!over) await client.tool('local__ok', { i: next++ });
    });
    const [first] = await processesOf(gateway, 'telemetry.records');
    const answers = [];
    for (let i = 1; i <= 6; ++i) {
      answers.push(await swap(gateway, 'records', copyOf(t, 'telemetry-sqlite', i)));
      const seen = next;
      await until('calls continue', () => next > seen + 20);
    }
    over = true;
    await Promise.all(load);
    assert.deepEqual(answers.map(({ status }) => status), Array(6).fill(200), show(answers));
    const [last] = await processesOf(gateway, 'telemetry.records');
    assert.notEqual(last.pid, first.pid);
    const shown = (await statusOf(gateway)).plugins.find((one) => one.id === 'records');
    assert.equal(shown.swapped, true);
    await gateway.stop();
    const rows = await records.rows("SELECT count(*), count(DISTINCT request_preview) FROM mcp_calls WHERE method = 'tools/call'");
    assert.deepEqual(rows, [[next, next]]);
    assert.deepEqual(await records.rows("SELECT count(*) FROM audit_marks WHERE kind = 'plugin' AND detail LIKE 'telemetry.records: swap: %'"), [[6]]);
    const [report] = JSON.parse((await records.verify('--json')).stdout);
    assert.equal(report.whole, true, show(report));
  }, { timeout: 120_000 });

test('a plugin of another kind, and a policy in the endpoint, are refused', async (t) => {
  const gateway = await t.gateway({
    mcpServers: { local: fake('--tool', 'ok') },
    policies: { inside: { plugin: 'policy-allow' } },
    telemetry: { apart: { plugin: 'telemetry-sqlite' } },
  });
  await allRun(gateway);
  const cases = [
    ['inside', copyOf(t, 'policy-allow', 1), /policies\.inside runs in the endpoint/],
    ['apart', join(own, 'telemetry-otlp.so'), /is the plugin "telemetry-otlp", but telemetry\.apart uses "telemetry-sqlite"/],
    ['apart', join(own, 'telemetry-sqlite.so'), /telemetry\.apart already uses this file/],
  ];
  for (const [id, file, reason] of cases) {
    const done = await swap(gateway, id, file);
    assert.notEqual(done.status, 200, show(done));
    assert.match(done.error, reason);
  }
  const done = runProgram(t, ['plugin', 'swap', 'apart', copyOf(t, 'telemetry-sqlite', 1)], { env: gateway.env() });
  assert.equal(done.code, 0, show(done));
});

run();

// Tests `plugin swap` and `plugin rollback`: the old version completes its calls, no call is lost, and
// a version that does not work is never put into use.
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Gateway } from './gateway.mjs';
import { assert, build, run, runProgram, show, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';

const built = join(build, 'core/plugin/testing_plugins/plugins');
const manifestOf = (version, more = '') => `id = "held"\nversion = "${version}"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n${more}`;

// Copies this build of the plugin "held" to the path, as an installation would. Returns the path.
function install(path, name, { version = name, more = '' } = {}) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(join(dirname(path), 'held.plugin.toml'), manifestOf(version, more), { mode: 0o644 });
  copyFileSync(join(built, `held-${name}.so`), `${path}.new`);
  renameSync(`${path}.new`, path);
  return path;
}

const said = async (client, tool) => (await client.tool(tool)).content[0].text;
// Starts calls, which the test awaits later.
const start = (client, tool, count) => Array.from({ length: count }, () => {
  const call = said(client, tool);
  call.catch(() => {});
  return call;
});
const processesOf = async (gateway, name) => (await statusOf(gateway)).compartments.filter((one) => one.name === name && one.pid > 0);
const inFlight = (gateway, count) =>
  until(`${count} calls run`, async () => (await statusOf(gateway)).in_flight === count);
const inspect = (t, gateway, sql) => {
  const done = runProgram(t, ['inspect', '--json', sql], { env: gateway.env() });
  assert.equal(done.code, 0, show(done));
  return JSON.parse(done.stdout).rows.map(([value]) => value);
};
const marks = (t, gateway) => inspect(t, gateway, "SELECT detail FROM audit_marks WHERE kind = 'plugin' ORDER BY id");

const settings = { limits: { drain_ms: 60_000, plugin_init_ms: 1_000 }, telemetry: { records: { plugin: 'telemetry-sqlite' } } };
const two = async (t, { required = true } = {}) => {
  const paths = { first: install(t.path('a/held.so'), 'one'), second: install(t.path('b/held.so'), 'one') };
  const tools = Object.fromEntries(Object.entries(paths).map(([name, plugin]) => [name, { plugin, required }]));
  const gateway = await t.gateway({ ...settings, tools });
  const client = await t.http(gateway);
  await client.toolNames();
  // Lists are complete before all processes are ready, and a swap is possible only then.
  await until('all processes run', async () => (await statusOf(gateway)).compartments.every((one) => one.state === 'running'));
  const plugin = (...words) => runProgram(t, ['plugin', ...words], { env: gateway.env(), cwd: gateway.dir });
  return { gateway, client, plugin, paths, tools };
};
const both = async (client) => [await said(client, 'first__which'), await said(client, 'second__which')];

test('calls complete in the version that received them, and others go to the new one', async (t) => {
  const { gateway, client, plugin } = await two(t);
  const next = install(t.path('next/held.so'), 'two', { version: '2.0' });
  const [old] = await processesOf(gateway, 'first');
  const [other] = await processesOf(gateway, 'second');
  const held = [...start(client, 'first__hold', 3), ...start(client, 'second__hold', 2)];
  await inFlight(gateway, 5);
  const done = plugin('swap', 'first', next);
  assert.equal(done.code, 0, show(done));
  assert.match(done.stdout, /: held 2\.0 \(sha256 [0-9a-f]{12}\) replaced one \(sha256 [0-9a-f]{12}\)\n.*plugin rollback first/);
  assert.deepEqual(await both(client), ['two', 'one']);
  const now = await processesOf(gateway, 'first');
  assert.deepEqual(now.map((one) => one.state).sort(), ['draining', 'running']);
  assert.equal(now.find((one) => one.state === 'draining').pid, old.pid);
  assert.deepEqual((await processesOf(gateway, 'second')).map((one) => one.pid), [other.pid]);
  process.kill(old.pid, 'SIGUSR1');
  process.kill(other.pid, 'SIGUSR1');
  assert.deepEqual(await Promise.all(held), Array(5).fill('one'));
  await until('the old process has exited', async () => (await processesOf(gateway, 'first')).length === 1);
  // The other plugin, by JSON and over the socket.
  const answer = await ask(gateway, 'POST', '/plugins/swap/second', { file: next });
  assert.deepEqual([answer.status, answer.instance, answer.plugin, answer.from.version, answer.to.version], [200, 'second', 'held', 'one', '2.0']);
  assert.match(answer.to.sha256, /^[0-9a-f]{64}$/);
  assert.ok(Math.abs(answer.rollback_until - Date.now() - 3_600_000) < 600_000);
  assert.deepEqual(await both(client), ['two', 'two']);
});

test('a rollback restores the version before, also if its file was overwritten', async (t) => {
  const { gateway, client, plugin, paths } = await two(t);
  const none = plugin('rollback', 'first');
  assert.equal(none.code, 1, show(none));
  assert.match(none.stdout, /tools\.first has no earlier version that can be restored/);
  for (const path of Object.values(paths)) install(path, 'two', { version: '2.0' });  // the profile's own file
  for (const name of ['first', 'second']) assert.equal(plugin('swap', name).code, 0);
  assert.deepEqual(await both(client), ['two', 'two']);
  const done = plugin('rollback', 'first', '--json');
  assert.equal(done.code, 0, show(done));
  const [{ from, to, rollback_until: until_ }] = JSON.parse(done.stdout).gateways;
  assert.deepEqual([from.version, to.version, until_], ['2.0', 'one', undefined]);
  assert.deepEqual(await both(client), ['one', 'two']);
  assert.equal(plugin('rollback', 'first').code, 1, 'only once');
  // A crash does not bring the rejected version back.
  const [now] = (await processesOf(gateway, 'first')).filter((one) => one.state === 'running');
  process.kill(now.pid, 'SIGKILL');
  await until('it runs again', async () => (await processesOf(gateway, 'first')).some((one) => one.pid !== now.pid && one.state === 'running'));
  assert.deepEqual(await both(client), ['one', 'two']);
  await until('there are three marks', () => marks(t, gateway).length === 3);
  const found = marks(t, gateway);
  assert.match(found[0], /^tools\.first: swap: one \(sha256 [0-9a-f]{64}\) replaced by 2\.0 \(sha256 [0-9a-f]{64}\)$/);
  assert.match(found[1], /^tools\.second: swap: /);
  assert.match(found[2], /^tools\.first: rollback: 2\.0 \(sha256 [0-9a-f]{64}\) replaced by one \(sha256 [0-9a-f]{64}\)$/);
});

const broken = {
  'hangs-in-constructor': /static constructors/, 'hangs-in-init': /init/, 'fails-in-init': /the moon is full/, 'crashes-in-init': /SIGABRT|exited/,
  'wrong-major': /ABI/, 'fails-in-start': /no such device/, 'crashes-in-start': /SIGABRT|exited/, 'hangs-in-start': /not ready in time|did not return|SIGKILL/,
};
for (const [name, reason] of Object.entries(broken))
  test(`a version that ${name.replaceAll('-', ' ')} is not put into use, and the old one keeps its calls`, async (t) => {
    const { gateway, client, plugin } = await two(t);
    const [old] = await processesOf(gateway, 'first');
    const held = start(client, 'first__hold', 2);
    await inFlight(gateway, 2);
    const done = plugin('swap', 'first', install(t.path('next/held.so'), name));
    assert.equal(done.code, 1, show(done));
    assert.match(done.stdout, reason, show(done));
    assert.deepEqual(await both(client), ['one', 'one']);
    assert.deepEqual((await processesOf(gateway, 'first')).map((one) => [one.pid, one.state]), [[old.pid, 'running']]);
    process.kill(old.pid, 'SIGUSR1');
    assert.deepEqual(await Promise.all(held), ['one', 'one']);
    assert.deepEqual(marks(t, gateway), []);
    // A working version can still be put into use.
    assert.equal(plugin('swap', 'first', install(t.path('later/held.so'), 'two')).code, 0);
    assert.deepEqual(await both(client), ['two', 'one']);
  }, { timeout: 90_000 });

test('a version that fails is not put into use, also if the profile does not require the plugin', async (t) => {
  const { gateway, client, plugin } = await two(t, { required: false });
  for (const name of ['fails_in_start', 'crashes_in_init', 'wrong_major'].map((one) => one.replaceAll('_', '-'))) {
    const done = plugin('swap', 'second', install(t.path(`${name}/held.so`), name));
    assert.equal(done.code, 1, show(done));
    assert.deepEqual(await both(client), ['one', 'one']);
  }
  assert.equal(plugin('swap', 'second', install(t.path('later/held.so'), 'two')).code, 0);
  assert.deepEqual(await both(client), ['one', 'two']);
  const status = await statusOf(gateway);
  assert.deepEqual(status.compartments.filter((one) => one.name === 'second').map((one) => one.state), ['running']);
});

// Sends a swap that takes several seconds, because the new version hangs, and waits until it is started.
const slowSwap = async (t, gateway) => {
  const answer = ask(gateway, 'POST', '/plugins/swap/first', { file: install(t.path('slow/held.so'), 'hangs-in-start') });
  let early;
  answer.then((it) => (early = it), (error) => (early = error));
  await until('there is a second process', async () => {
    assert.equal(early, undefined, `the swap has ended: ${show(early)}`);
    return (await processesOf(gateway, 'first')).length === 2;
  });
  return answer;
};
const failed = (answer) => assert.deepEqual([answer.status, /not ready in time|SIGKILL/.test(answer.error)], [400, true], JSON.stringify(answer));

test('processes that are killed while a new version starts are started again with the old one', async (t) => {
  const { gateway, client } = await two(t);
  for (const name of ['first', 'endpoint']) {
    const answer = slowSwap(t, gateway);
    await until('there is a second process', async () => (await processesOf(gateway, 'first')).length === 2);
    const [victim] = (await statusOf(gateway)).compartments.filter((one) => one.name === name && one.state === 'running');
    process.kill(victim.pid, 'SIGKILL');
    failed(await answer);
    await until(`${name} runs again`, async () => (await statusOf(gateway)).compartments.some((one) => one.name === name && one.state === 'running' && one.pid !== victim.pid));
    const own = await t.http(gateway);
    await until('the calls reach the old version', async () => JSON.stringify(await both(own).catch(() => [])) === '["one","one"]');
  }
  assert.equal((await ask(gateway, 'POST', '/plugins/swap/first', { file: install(t.path('good/held.so'), 'two') })).status, 200);
  assert.deepEqual(await both(await t.http(gateway)), ['two', 'one']);
  assert.ok(client);
});

test('a reload, another swap and a stop during a swap wait for it', async (t) => {
  const { gateway, client } = await two(t);
  const slow = slowSwap(t, gateway);
  await until('there is a second process', async () => (await processesOf(gateway, 'first')).length === 2);
  const good = install(t.path('good/held.so'), 'two');
  const [reload, second] = await Promise.all([ask(gateway, 'POST', '/reload-config'), ask(gateway, 'POST', '/plugins/swap/second', { file: good }), slow.then(failed)]);
  assert.deepEqual([reload.applied, second.status], ['all', 200], JSON.stringify([reload, second]));
  assert.deepEqual(await both(client), ['one', 'two']);
  slowSwap(t, gateway).catch(() => {});
  await until('there is a second process', async () => (await processesOf(gateway, 'first')).length === 2);
  await gateway.stop();
});

test('a version that crashes when it is called can be rolled back', async (t) => {
  const { gateway, client, plugin } = await two(t);
  assert.equal(plugin('swap', 'first', install(t.path('next/held.so'), 'two')).code, 0);
  assert.deepEqual(await both(client), ['two', 'one']);
  // The process can no longer be started.
  const [compartment] = (await processesOf(gateway, 'first')).filter((one) => one.state === 'running');
  const store = join(gateway.dir, 'state/bulkhead/swapped');
  for (const folder of readdirSync(store)) {
    if (readFileSync(join(store, folder, 'held.plugin.toml'), 'utf8').includes('"two"')) rmSync(join(store, folder, 'held.so'));
  }
  process.kill(compartment.pid, 'SIGKILL');
  await until('it is not running', async () => !(await processesOf(gateway, 'first')).some((one) => one.state === 'running'));
  const worse = plugin('swap', 'first', install(t.path('worse/held.so'), 'fails-in-start'));
  assert.equal(worse.code, 1, show(worse));
  assert.match(worse.stdout, /no such device/);
  const done = plugin('rollback', 'first');
  assert.equal(done.code, 0, show(done));
  await until('calls succeed', async () => JSON.stringify(await both(client).catch(() => [])) === '["one","one"]');
});

test('no call is lost while versions are swapped under load', async (t) => {
  const { gateway, client, plugin } = await two(t);
  const next = [install(t.path('x/held.so'), 'two'), t.path('a/held.so'), install(t.path('y/held.so'), 'two')];
  let stop = false, calls = 0;
  const load = Promise.all(Array.from({ length: 8 }, async (_, i) => {
    const own = await t.http(gateway);
    for (; !stop; ++calls) {
      const text = await said(own, i % 2 ? 'first__which' : 'second__which');
      assert.ok(text === 'one' || text === 'two', text);
    }
  }));
  for (let round = 0; round < 6; ++round) {
    const name = ['first', 'second'][round % 2];
    await until('nothing drains', async () => (await processesOf(gateway, name)).length === 1);
    const before = calls;
    const done = await ask(gateway, 'POST', `/plugins/swap/${name}`, { file: next[Math.floor(round / 2)] });
    assert.equal(done.status, 200, JSON.stringify(done));
    await until('calls continue', () => calls > before + 20);
  }
  stop = true;
  await load;
  assert.deepEqual(await both(client), ['two', 'two']);
  // Records are written in batches.
  const sql = "SELECT count(*) FROM mcp_calls WHERE method = 'tools/call' AND decision = 'allowed'";
  await until('each call has one row', () => inspect(t, gateway, sql)[0] >= calls + 2);
  assert.equal(inspect(t, gateway, sql)[0], calls + 2);
  assert.equal(marks(t, gateway).length, 6);
});

test('a reload keeps a swap until the profile specifies another file', async (t) => {
  const { gateway, client, plugin, paths, tools } = await two(t);
  assert.equal(plugin('swap', 'first', install(t.path('next/held.so'), 'two')).code, 0);
  const reload = async (config) => {
    writeFileSync(gateway.config, JSON.stringify({ ...settings, ...config }));
    const answer = await ask(gateway, 'POST', '/reload-config');
    assert.equal(answer.applied, 'all', JSON.stringify(answer));
    return answer;
  };
  const [before] = await processesOf(gateway, 'first');
  assert.deepEqual((await reload({ tools })).changed, []);
  assert.deepEqual((await processesOf(gateway, 'first')).map((one) => one.pid), [before.pid]);
  assert.deepEqual(await both(client), ['two', 'one']);
  assert.deepEqual((await reload({ tools: { ...tools, first: { plugin: paths.first, say: 'hello' } } })).changed, ['first']);
  assert.deepEqual(await both(client), ['two hello', 'one']);
  // The profile's file is replaced: it counts again.
  install(paths.first, 'one', { version: '3.0' });
  await reload({ tools });
  assert.deepEqual(await both(client), ['one', 'one']);
  const rollback = plugin('rollback', 'first');
  assert.equal(rollback.code, 1, show(rollback));
});

test('a rejected reload keeps a swap, and versions that are built in place count as one file', async (t) => {
  const { gateway, client, plugin, paths, tools } = await two(t);
  for (const version of ['2.0', '3.0']) {
    install(paths.first, version === '2.0' ? 'two' : 'one', { version });
    const done = plugin('swap', 'first');
    assert.equal(done.code, 0, show(done));
  }
  assert.deepEqual(await both(client), ['one', 'one']);
  writeFileSync(gateway.config, '{');
  assert.equal((await ask(gateway, 'POST', '/reload-config')).status, 500);
  writeFileSync(gateway.config, JSON.stringify({ ...settings, tools: { ...tools, third: { plugin: t.path('none/held.so') } } }));
  assert.notEqual((await ask(gateway, 'POST', '/reload-config')).status, 200);
  const done = plugin('rollback', 'first');
  assert.equal(done.code, 0, show(done));
  assert.deepEqual(await both(client), ['two', 'one']);
  writeFileSync(gateway.config, JSON.stringify({ ...settings, tools }));
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.deepEqual([answer.applied, answer.changed], ['all', []]);
  assert.deepEqual(await both(client), ['two', 'one'], 'version 3.0 was rejected');
  // Other programs of the user still use this gateway.
  const tool = runProgram(t, ['call', 'first__which', '--config', gateway.config], { env: gateway.env(), cwd: gateway.dir });
  assert.match(tool.stdout, /two/, show(tool));
});

test('a digest that the profile states later ends a swap', async (t) => {
  const { gateway, client, plugin, paths, tools } = await two(t);
  assert.equal(plugin('swap', 'first', install(t.path('next/held.so'), 'two')).code, 0);
  assert.deepEqual(await both(client), ['two', 'one']);
  const sha256 = createHash('sha256').update(readFileSync(paths.first)).digest('hex');
  writeFileSync(gateway.config, JSON.stringify({ ...settings, tools: { ...tools, first: { ...tools.first, sha256 } } }));
  assert.equal((await ask(gateway, 'POST', '/reload-config')).applied, 'all');
  assert.deepEqual(await both(client), ['one', 'one']);
  const done = plugin('swap', 'first', t.path('next/held.so'));
  assert.equal(done.code, 1, show(done));
  assert.match(done.stdout, /pins the file of tools\.first/);
});

test('a file that is overwritten in place is not taken for the version in use', async (t) => {
  const { gateway, client, plugin, paths } = await two(t);
  writeFileSync(paths.first, readFileSync(join(built, 'held-two.so')));
  const done = plugin('swap', 'first', install(t.path('next/held.so'), 'two'));
  assert.equal(done.code, 1, show(done));
  assert.match(done.stdout, /was overwritten while it is in use/);
  assert.deepEqual(marks(t, gateway), []);
  assert.equal(await said(client, 'second__which'), 'one');
});

test('requests that cannot be carried out state the reason', async (t) => {
  const pinned = install(t.path('p/held.so'), 'one');
  const digest = '0'.repeat(64);
  const { gateway, plugin, paths } = await two(t);
  const other = install(t.path('o/held.so'), 'two');
  rmSync(t.path('o/held.plugin.toml'));
  const cases = [
    [['swap', 'third'], /the gateway has no tools, policy or telemetry plugin "third"; it has: .*tools\.first, tools\.second, telemetry\.records/],
    [['swap', 'http'], /transports\.http cannot be swapped: only tools plugins, policies and telemetry plugins can/],
    [['swap', 'records'], /telemetry\.records already uses this file/],
    [['swap', 'first', paths.first], /tools\.first already uses this file: version one/],
    [['swap', 'first', paths.second], /tools\.first already uses this file/],
    [['swap', 'first', other], /manifest/],
    [['swap', 'first', t.path('none.so')], /none\.so/],
    [['swap', 'first', join(build, 'lib/bulkhead/plugins/builtin-http.so')], /is the plugin "builtin-http", but tools\.first uses "held"/],
  ];
  for (const [words, reason] of cases) {
    const done = plugin(...words);
    assert.equal(done.code, 1, show(done));
    assert.match(done.stdout, reason, words.join(' '));
  }
  assert.equal(plugin('swap', 'a/b').code, 2);
  for (const body of [{ file: 'relative.so' }, { file: 7 }]) {
    const answer = await ask(gateway, 'POST', '/plugins/swap/first', body);
    assert.equal(answer.status, 400, JSON.stringify([body, answer]));
  }
  await gateway.stop();
  assert.equal(plugin('swap', 'first').code, 3);
  const single = await t.gateway({ tools: { first: { plugin: pinned, sha256: digest, required: false }, second: { plugin: paths.second } } });
  const locked = runProgram(t, ['plugin', 'swap', 'first', other], { env: single.env(), cwd: single.dir });
  assert.match(locked.stdout, /the profile pins the file of tools\.first with `sha256`/);
  await single.stop();
  const corp = t.path('corp.toml');
  writeFileSync(corp, `[tools.second]\nplugin = "${paths.second}"\n`, { mode: 0o644 });
  const held = await t.gateway({ tools: { first: { plugin: paths.first } } }, { env: { BULKHEAD_CORP_PROFILE: corp } });
  const better = install(t.path('f/held.so'), 'two');
  for (const [name, code] of [['first', 0], ['second', 1]]) {
    const done = runProgram(t, ['plugin', 'swap', name, better], { env: held.env(), cwd: held.dir });
    assert.equal(done.code, code, show(done));
    if (code === 1) assert.match(done.stdout, /tools\.second is locked/);
  }
  await held.stop();
  const alone = await t.gateway({ tools: { second: { plugin: paths.second } } }, { args: ['--single-process'] });
  const refused = runProgram(t, ['plugin', 'swap', 'second'], { env: alone.env(), cwd: alone.dir });
  assert.equal(refused.code, 1, show(refused));
  assert.match(refused.stdout, /it runs with --single-process/);
});

test('a watched plugin is swapped when its file changes, and no other plugin is', async (t) => {
  const paths = Object.fromEntries(['first', 'second', 'third'].map((name) => [name, install(t.path(`${name}/held.so`), 'one')]));
  const tools = Object.fromEntries(Object.entries(paths).map(([name, plugin]) => [name, { plugin, watch: name !== 'third' }]));
  const gateway = await t.gateway({ ...settings, tools });
  const client = await t.http(gateway);
  await client.toolNames();
  const versions = async () => Object.fromEntries(await Promise.all(Object.keys(paths).map(async (name) => [name, await said(client, `${name}__which`)])));
  const watched = async () => Object.fromEntries((await statusOf(gateway)).plugins.filter((one) => one.id in paths).map((one) => [one.id, one.watched]));
  await until('all processes run', async () => (await statusOf(gateway)).compartments.every((one) => one.state === 'running'));
  assert.deepEqual(await watched(), { first: true, second: true, third: false });
  assert.match(runProgram(t, ['status'], { env: gateway.env(), cwd: gateway.dir }).stdout, /plugin first: watched, version one/);

  // A call that runs when the file changes completes in the version that received it.
  const held = start(client, 'first__hold', 2);
  await inFlight(gateway, 2);
  const [old] = await processesOf(gateway, 'first');
  install(paths.third, 'two');
  install(paths.first, 'two');
  await until('the new version answers', async () => (await versions()).first === 'two');
  assert.deepEqual(await versions(), { first: 'two', second: 'one', third: 'one' });
  process.kill(old.pid, 'SIGUSR1');
  assert.deepEqual(await Promise.all(held), ['one', 'one']);

  // A file that is not a plugin is rejected once. The next file is used.
  const before = gateway.stderr().length;
  const failures = () => gateway.stderr().slice(before).split('\n').filter((line) => /swap: .*second/.test(line)).length;
  writeFileSync(`${paths.second}.new`, 'not a library', { mode: 0o755 });
  renameSync(`${paths.second}.new`, paths.second);
  await until('it is rejected', () => failures() === 1);
  assert.equal(await said(client, 'second__which'), 'one');
  install(paths.second, 'two');
  await until('the repaired file is used', async () => (await versions()).second === 'two');
  assert.equal(failures(), 1, gateway.stderr().slice(before));
  assert.deepEqual(await versions(), { first: 'two', second: 'two', third: 'one' });
  await until('both swaps are recorded', () => marks(t, gateway).filter((detail) => /swap: one .* replaced by two/.test(detail)).length === 2);
});

test('two watched instances of one file are both swapped', async (t) => {
  const plugin = install(t.path('same/held.so'), 'one');
  const gateway = await t.gateway({ ...settings, tools: { first: { plugin, watch: true }, second: { plugin, watch: true } } });
  const client = await t.http(gateway);
  await client.toolNames();
  await until('all processes run', async () => (await statusOf(gateway)).compartments.every((one) => one.state === 'running'));
  assert.deepEqual(await both(client), ['one', 'one']);
  install(plugin, 'two');
  await until('both have the new version', async () => (await both(client)).every((version) => version === 'two'));
});

test('watch is refused where a swap would be', async (t) => {
  const path = install(t.path('w/held.so'), 'one');
  const corp = t.path('corp.toml');
  writeFileSync(corp, `[[directives]]\noperation = "lock"\npath = 'plugin_dirs'\n`, { mode: 0o644 });
  const digest = createHash('sha256').update(readFileSync(path)).digest('hex');
  const cases = [
    [{ tools: { mine: { plugin: path, sha256: digest, watch: true } } }, /tools\.mine\.watch: the profile pins the file/],
    [{ policies: { rules: { plugin: 'policy-rules', watch: true } } }, /policies\.rules\.watch: policies\.rules runs in the endpoint/],
    [{ plugin_trust: { require_signatures: true }, tools: { mine: { plugin: 'builtin-http', watch: true } } }, /tools\.mine\.watch: plugin_trust\.require_signatures is set/],
    [{ tools: { mine: { plugin: path, watch: true } } }, /tools\.mine\.watch: tools\.mine cannot be swapped, because plugin_dirs is locked/, { BULKHEAD_CORP_PROFILE: corp }],
    [{ tools: { mine: { plugin: path, watch: true } } }, /mine: watch = true is not possible with --single-process/, {}, ['--single-process']],
    [{ transports: { http: { watch: true } } }, /watch/],
  ];
  for (const [profile, reason, env = {}, args = []] of cases) {
    const config = t.path('refused.json');
    writeFileSync(config, JSON.stringify(profile));
    const done = runProgram(t, ['serve', '--config', config, '--listen', '127.0.0.1:0', ...args], { env });
    assert.equal(done.code, 1, show([profile, done]));
    assert.match(done.stderr, reason);
  }
  const gateway = await t.gateway({ ...settings, tools: { mine: { plugin: path } } });
  writeFileSync(gateway.config, JSON.stringify({ ...settings, tools: { mine: { plugin: path, sha256: digest, watch: true } } }));
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.notEqual(answer.status, 200, show(answer));
  assert.match(show(answer), /tools\.mine\.watch: the profile pins the file/);
});

test('a gateway removes copies that no gateway uses when it starts', async (t) => {
  const { gateway, plugin } = await two(t);
  assert.equal(plugin('swap', 'first', install(t.path('next/held.so'), 'two')).code, 0);
  const store = join(gateway.state ?? join(gateway.dir, 'state/bulkhead'), 'swapped');
  assert.ok(existsSync(store), store);
  assert.equal(readdirSync(store).length, 2);
  await gateway.stop();
  await gateway.again();
  await until('they are gone', () => readdirSync(store).length === 0);
});

test('a swap, a rollback and a reload are rejected while the gateway is starting', async (t) => {
  const tools = {
    first: { plugin: install(t.path('a/held.so'), 'one') },
    second: { plugin: install(t.path('b/held.so'), 'hangs-in-constructor'), required: false },
  };
  const gateway = new Gateway(t.dir, { limits: { plugin_init_ms: 60_000 }, tools });
  t.defer(() => gateway.stop());
  gateway.serve().catch(() => {}); // prints its address when all processes have started
  await until('the first plugin runs, and the second one starts', async () => {
    const { compartments } = await statusOf(gateway).catch(() => ({ compartments: [] }));
    return compartments.some(({ name, state }) => name === 'first' && state === 'running') &&
      compartments.some(({ name, state }) => name === 'second' && state === 'starting');
  });
  for (const args of [['plugin', 'swap', 'first'], ['plugin', 'rollback', 'first'], ['reload']]) {
    const done = runProgram(t, args, { env: gateway.env(), cwd: gateway.dir });
    assert.equal(done.code, 1, show(done));
    assert.match(done.stdout, /the gateway is still starting; try again in a few seconds/);
  }
});

run();

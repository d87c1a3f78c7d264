// Tests replacing policies in compartments of their own, by `plugin swap`, `plugin rollback` and
// `reload`: the process that has received a call also decides it, no call is left undecided, and a
// version or a configuration that does not work is never put into use.
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert, build, run, runProgram, show, sleep, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';

const built = join(build, 'core/plugin/testing_plugins/plugins');

// Copies this build of a plugin to the path, as an installation would. Returns the path.
function install(path, id, file, kind, version) {
  mkdirSync(dirname(path), { recursive: true });
  const manifest = `id = "${id}"\nversion = "${version}"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["${kind}"]\n`;
  writeFileSync(join(dirname(path), `${id}.plugin.toml`), manifest, { mode: 0o644 });
  copyFileSync(join(built, file), `${path}.new`);
  renameSync(`${path}.new`, path);
  return path;
}
const policy = (t, folder, name) => install(t.path(`${folder}/held-policy.so`), 'held-policy', `held-policy-${name}.so`, 'bh.policy/1', name);
const tools = (t) => install(t.path('tools/held.so'), 'held', 'held-one.so', 'bh.tools/1', 'one');

// Two policies decide each call, one after the other, unless `second` is null. The first is swapped.
const guarded = async (t, { first = {}, second = {} } = {}) => {
  const policies = { guard: { plugin: policy(t, 'guard', 'one'), ...first } };
  if (second !== null) policies.other = { plugin: policy(t, 'other', 'one'), ...second };
  const limits = { drain_ms: 60_000, plugin_init_ms: 1_000, policy_timeout_ms: 30_000 };
  const gateway = await t.gateway({ limits, policies, tools: { mine: { plugin: tools(t) } }, telemetry: { records: { plugin: 'telemetry-sqlite' } } });
  const client = await t.http(gateway);
  await until('calls are decided', async () => (await client.tool('mine__which').catch(() => undefined)) !== undefined);
  await until('all processes run', async () => (await statusOf(gateway)).compartments.every((one) => one.state === 'running'));
  return { gateway, client, plugin: (...words) => runProgram(t, ['plugin', ...words], { env: gateway.env(), cwd: gateway.dir }) };
};
const processesOf = async (gateway, name) => (await statusOf(gateway)).compartments.filter((one) => one.name === name && one.pid > 0);
function write(gateway, change) {
  const path = gateway.config;
  const profile = JSON.parse(readFileSync(path, 'utf8'));
  change(profile);
  writeFileSync(path, JSON.stringify(profile));
}
// Changes the configurations of policies in the profile ({name: text to say}) and reloads it.
function reload(gateway, configurations) {
  write(gateway, (profile) => {
    for (const [name, say] of Object.entries(configurations)) profile.policies[name].config = { say };
  });
  return ask(gateway, 'POST', '/reload-config');
}
// Calls tools with 8 clients until `stop` of the result is called, which returns the failures and the number of calls.
async function load(t, gateway, client) {
  const clients = [client, ...await Promise.all(Array.from({ length: 7 }, () => t.http(gateway)))];
  const failures = [];
  const state = { calls: 0, over: false };
  const loads = clients.map(async (one, i) => {
    for (let n = 0; !state.over; ++n) {
      const mark = `${i}-${n}`;
      const result = await one.tool('mine__sleep', { ms: n % 3, mark }).catch((error) => error);
      if (result instanceof Error || result.content[0].text !== `one ${mark}`) failures.push(`${mark}: ${result.message ?? show(result)}`);
      ++state.calls;
    }
  });
  state.more = (count) => { const before = state.calls; return until('calls are made', () => state.calls > before + count); };
  state.stop = async () => { state.over = true; await Promise.all(loads); return { failures, calls: state.calls }; };
  return state;
}
const handlesUsr1 = (pid) => (BigInt(`0x${/^SigCgt:\s*(\w+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))[1]}`) & 0x200n) !== 0n;
const refusal = (client, tool) => client.tool(tool).then((result) => assert.fail(show(result)), (error) => error.message);
const decider = async (client) => /decided by (\w+( \w+)?)/.exec(await refusal(client, 'mine__hold_large'))?.[1];
const marks = (t, gateway) => {
  const done = runProgram(t, ['inspect', '--json', "SELECT detail FROM audit_marks WHERE kind = 'plugin' ORDER BY id"], { env: gateway.env() });
  assert.equal(done.code, 0, show(done));
  return JSON.parse(done.stdout).rows.map(([value]) => value);
};

test('a call is decided by the version that received it, and later calls by the new one', async (t) => {
  const { gateway, client, plugin } = await guarded(t, { second: null });
  const [old] = await processesOf(gateway, 'policy.guard');
  assert.ok((await client.toolNames()).includes('mine__hold_secret'));
  const held = [refusal(client, 'mine__hold'), refusal(client, 'mine__hold')];
  await until('two calls wait', async () => (await statusOf(gateway)).in_flight === 2);
  const done = plugin('swap', 'guard', policy(t, 'next', 'two'));
  assert.equal(done.code, 0, show(done));
  assert.match(done.stdout, /: held-policy two \(sha256 [0-9a-f]{12}\) replaced one \(sha256 [0-9a-f]{12}\)/);
  await until('the new version decides', async () => (await decider(client)) === 'two');
  const state = async () => Object.fromEntries((await statusOf(gateway)).plugins.map((one) => [one.id, [one.version, one.swapped]]));
  assert.deepEqual([(await state()).guard, (await state()).mine], [['two', true], ['one', false]]);
  const text = runProgram(t, ['status'], { env: gateway.env() }).stdout;
  assert.match(text, /^  plugin guard: swapped, version two$/m);
  assert.doesNotMatch(text, /plugin mine/);
  const now = await processesOf(gateway, 'policy.guard');
  assert.deepEqual(now.map((one) => one.state).sort(), ['draining', 'running'], show(now));
  assert.equal(now.find((one) => one.state === 'draining').pid, old.pid);
  // Lists are filtered by the new version.
  await until('hold_secret is hidden', async () => !(await client.toolNames()).includes('mine__hold_secret'));
  process.kill(old.pid, 'SIGUSR1');
  for (const message of await Promise.all(held)) assert.match(message, /held by one/);
  await until('the old process has exited', async () => (await processesOf(gateway, 'policy.guard')).length === 1);
  assert.equal(await decider(client), 'two');

  const back = plugin('rollback', 'policies.guard');
  assert.equal(back.code, 0, show(back));
  await until('the former version decides', async () => (await decider(client)) === 'one');
  const [restoredPlugin] = (await statusOf(gateway)).plugins.filter((one) => one.id === 'guard');
  assert.equal(restoredPlugin.version, 'one');
  await until('hold_secret is listed', async () => (await client.toolNames()).includes('mine__hold_secret'));
  await until('there are two marks', () => marks(t, gateway).length === 2);
  const [swapped, restored] = marks(t, gateway);
  assert.match(swapped, /^policies\.guard: swap: one \(sha256 [0-9a-f]{64}\) replaced by two \(sha256 [0-9a-f]{64}\)$/);
  assert.match(restored, /^policies\.guard: rollback: two /);
});

test('with several policies, a rejection by the old version is final', async (t) => {
  const { gateway, client, plugin } = await guarded(t);
  const [old] = await processesOf(gateway, 'policy.guard');
  const [other] = await processesOf(gateway, 'policy.other');
  const held = refusal(client, 'mine__hold');
  await until('a call waits', async () => (await statusOf(gateway)).in_flight === 1);
  assert.equal(plugin('swap', 'guard', policy(t, 'next', 'two')).code, 0);
  await until('the new version decides', async () => (await decider(client)) === 'two');
  process.kill(old.pid, 'SIGUSR1');
  assert.match(await held, /held by one/);
  await until('the old process has exited', async () => (await processesOf(gateway, 'policy.guard')).length === 1);
  assert.deepEqual((await processesOf(gateway, 'policy.other')).map((one) => one.pid), [other.pid]);
});

test('no call is left undecided while a policy is swapped under load', async (t) => {
  const { gateway, client, plugin } = await guarded(t);
  const clients = await load(t, gateway, client);
  const files = { one: policy(t, 'v1', 'one'), two: policy(t, 'v2', 'two') };
  for (let i = 0; i < 10; ++i) {
    const name = i % 2 === 0 ? 'two' : 'one';
    // A version can be replaced when the one before it has exited.
    await until('the swap is possible', () => plugin('swap', 'guard', files[name]).code === 0, 30_000);
    await clients.more(20);
  }
  const { failures, calls } = await clients.stop();
  assert.deepEqual(failures.slice(0, 5), []);
  assert.equal(await decider(client), 'one');
  assert.ok(calls > 200);
}, { timeout: 120_000 });

test('no call is rejected or left undecided while configurations of policies are reloaded under load', async (t) => {
  const { gateway, client } = await guarded(t);
  const clients = await load(t, gateway, client);
  for (let i = 0; i < 8; ++i) {
    const done = await reload(gateway, { guard: `g${i}`, other: `o${i % 3 === 2 ? i - 1 : i}` }); // one or both are changed
    assert.equal(done.status, 200, show(done));
    // The answer of `reload` means that the former configuration decides no more.
    assert.equal(await decider(client), `one g${i}`);
    await clients.more(20);
    const rejected = await reload(gateway, { guard: 'never', other: 'fail' });
    assert.equal(rejected.status, 500, show(rejected));
    assert.match(show(rejected), /the configuration says fail/);
    assert.equal(await decider(client), `one g${i}`, 'no policy has the rejected profile');
    await clients.more(20);
  }
  const { failures, calls } = await clients.stop();
  assert.deepEqual(failures.slice(0, 5), []);
  assert.ok(calls > 300);
  await until('the former processes have exited', async () => (await processesOf(gateway, 'policy.guard')).length === 1 && (await processesOf(gateway, 'policy.other')).length === 1);
}, { timeout: 120_000 });

test('a reload that a policy in the endpoint rejects leaves the policies in compartments as they were', async (t) => {
  const second = { plugin: join(build, 'tests/judges/refusing-policy.so'), compartment: 'endpoint', rules: false };
  const { gateway, client } = await guarded(t, { second });
  const [guard] = await processesOf(gateway, 'policy.guard');
  const clients = await load(t, gateway, client);
  for (let i = 0; i < 3; ++i) {
    write(gateway, (profile) => {
      profile.policies.guard.config = { say: 'never' };
      profile.policies.other.config = { status: -1 };
    });
    const done = await ask(gateway, 'POST', '/reload-config');
    assert.equal(done.status, 500, show(done));
    assert.match(show(done), /policies\.other: the test refuses this configuration/);
    assert.equal(await decider(client), 'one');
    await clients.more(20);
  }
  assert.deepEqual((await clients.stop()).failures.slice(0, 5), []);
  await until('the rejected processes have exited', async () => (await processesOf(gateway, 'policy.guard')).length === 1);
  assert.equal((await processesOf(gateway, 'policy.guard'))[0].pid, guard.pid);
  write(gateway, (profile) => delete profile.policies.other.config);
  const done = await ask(gateway, 'POST', '/reload-config');
  assert.equal(done.status, 200, show(done));
  assert.equal(await decider(client), 'one never');
});

test('a call that a policy decides during a reload is decided by the process that has received it', async (t) => {
  const { gateway, client } = await guarded(t, { second: null });
  const [old] = await processesOf(gateway, 'policy.guard');
  const held = refusal(client, 'mine__hold');
  await until('a call waits', async () => (await statusOf(gateway)).in_flight === 1);
  for (const say of ['again', 'more']) {
    const done = await reload(gateway, { guard: say });
    assert.equal(done.status, 200, show(done));
    assert.equal(await decider(client), `one ${say}`);
  }
  const states = (await processesOf(gateway, 'policy.guard')).map((one) => one.state);
  assert.ok(states.includes('draining') && states.includes('running'), show(states));
  process.kill(old.pid, 'SIGUSR1');
  assert.match(await held, /held by one/);
  await until('the old process has exited', async () => (await processesOf(gateway, 'policy.guard')).length === 1);
  assert.equal(await decider(client), 'one more');
});

test('an endpoint that exits during a reload does not use the new profile with the former policies', async (t) => {
  const { gateway, client } = await guarded(t, { second: null });
  const [endpoint] = await processesOf(gateway, 'endpoint');
  write(gateway, (profile) => {
    profile.policies.guard.config = { say: 'slowly' };
    profile.tools.more = profile.tools.mine;
  });
  let status;
  const reloading = ask(gateway, 'POST', '/reload-config').then((answer) => (status = answer.status));
  const [starting] = await until('the new process is starting', async () => {
    const found = (await processesOf(gateway, 'policy.guard')).filter((one) => one.state === 'starting');
    return found.length === 1 && found;
  });
  process.kill(endpoint.pid, 'SIGKILL');
  let before = 0;
  while (status === undefined) {
    const names = await client.toolNames().catch(() => undefined);
    const decided = await decider(client).catch(() => undefined);
    if (names === undefined || decided === undefined) continue;
    if (names.includes('more__which')) assert.equal(decided, 'one slowly');
    // The new endpoint process works with the former profile until the policy has started.
    if (decided === 'one' && ++before >= 3 && handlesUsr1(starting.pid)) process.kill(starting.pid, 'SIGUSR1');
  }
  assert.ok(before >= 3);
  assert.equal(await reloading, 200);
  assert.equal(await decider(client), 'one slowly');
  assert.ok((await client.toolNames()).includes('more__which'));
  assert.notEqual((await processesOf(gateway, 'endpoint'))[0].pid, endpoint.pid);
});

for (const [name, reason] of Object.entries({ fails: /no such rule book/, crashes: /SIGABRT|exited/ }))
  test(`a policy that ${name} is not put into use, and the old one keeps deciding`, async (t) => {
    const { gateway, client, plugin } = await guarded(t);
    const [old] = await processesOf(gateway, 'policy.guard');
    const held = refusal(client, 'mine__hold');
    await until('a call waits', async () => (await statusOf(gateway)).in_flight === 1);
    const done = plugin('swap', 'guard', policy(t, 'next', name));
    assert.equal(done.code, 1, show(done));
    assert.match(done.stdout, reason, show(done));
    assert.equal(await decider(client), 'one');
    process.kill(old.pid, 'SIGUSR1');
    assert.match(await held, /held by one/);
    assert.deepEqual((await processesOf(gateway, 'policy.guard')).map((one) => [one.pid, one.state]), [[old.pid, 'running']]);
    assert.equal(plugin('swap', 'guard', policy(t, 'later', 'two')).code, 0);
    await until('the new version decides', async () => (await decider(client)) === 'two');
  });

test('a crash of the new version never leaves calls without a decision, and does not bring the old one back', async (t) => {
  const { gateway, client, plugin } = await guarded(t);
  assert.equal(plugin('swap', 'guard', policy(t, 'next', 'two')).code, 0);
  await until('the new version decides', async () => (await decider(client)) === 'two');
  const [now] = (await processesOf(gateway, 'policy.guard')).filter((one) => one.state === 'running');
  process.kill(now.pid, 'SIGKILL');
  // Until the process has been restarted, calls are rejected; they are never allowed without a decision.
  for (let i = 0; i < 50; ++i) assert.match(await refusal(client, 'mine__hold_large'), /decided by two|policy failed|being restarted/);
  await until('it decides again', async () => (await decider(client)) === 'two');
  const reload = runProgram(t, ['reload'], { env: gateway.env() });
  assert.equal(reload.code, 0, show(reload));
  await sleep(200);
  assert.equal(await decider(client), 'two', 'a reload keeps the swap');
});

test('requests that cannot be carried out state the reason', async (t) => {
  const { client, plugin } = await guarded(t, { second: { compartment: 'endpoint' } });
  for (const [words, reason] of [
    [['swap', 'other', policy(t, 'next', 'two')], /policies\.other runs in the endpoint, so its code cannot be replaced at run time\. Set compartment = \\?"own\\?"/],
    [['swap', 'guard', tools(t)], /is the plugin "held", but policies\.guard uses "held-policy"/],
    [['swap', 'guard', policy(t, 'same', 'one')], /policies\.guard already uses this file: version one/],
    [['rollback', 'guard'], /policies\.guard has no earlier version/],
    [['swap', 'nothing'], /the gateway has no tools, policy or telemetry plugin "nothing"; it has: tools\.mine, policies\.guard/],
    [['swap', 'records'], /telemetry\.records already uses this file/],
  ]) {
    const done = plugin(...words);
    assert.equal(done.code, 1, show(done));
    assert.match(done.stdout, reason);
  }
  assert.equal(await decider(client), 'one');
});

await run();

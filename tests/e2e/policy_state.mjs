// Tests that a policy keeps its state (bh.state/1) when its process is replaced by `plugin swap` or
// by a reload: budgets are neither renewed nor counted twice, and if the state cannot be moved, the
// former process continues and the reason is reported.
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert, build, fake, run, runProgram, show, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';

// Copies a plugin to the path, as an installation would, with `bytes` more bytes, which makes it a
// different build. Returns the path.
function install(from, path, id, version, provides, bytes = 0) {
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(from, path);
  appendFileSync(path, Buffer.alloc(bytes));
  const list = provides.map((one) => `"${one}"`).join(', ');
  writeFileSync(join(dirname(path), `${id}.plugin.toml`), `id = "${id}"\nversion = "${version}"\nabi_major = 1\nabi_minor_needed = 0\nprovides = [${list}]\n`, { mode: 0o644 });
  return path;
}
const counting = (t, version) => install(
  join(build, `core/plugin/testing_plugins/plugins/counting-policy-${version}.so`), t.path(`${version}/counting-policy.so`),
  'counting-policy', version, version === 'stateless' ? ['bh.policy/1'] : ['bh.policy/1', 'bh.state/1']);
const rulesPlugin = (t, bytes) => install(
  join(build, 'lib/bulkhead/plugins/policy-rules.so'), t.path(`rules-${bytes}/policy-rules.so`), 'policy-rules', '0.1.0',
  ['bh.policy/1', 'bh.explain/1', 'bh.state/1'], bytes);

const swapper = (t, gateway) => (file) => runProgram(t, ['plugin', 'swap', 'default', file], { env: gateway.env(), cwd: gateway.dir });
const processesOf = async (gateway) => (await statusOf(gateway)).compartments.filter((one) => one.name === 'policy.default' && one.pid > 0);
const tool = (client, args = {}) => client.tool('local__a', args).then(() => undefined, (error) => error.message);

// On a busy machine, a state may not be moved within 50 ms. Then nothing has changed.
const late = /state was not moved: [^"]* within 50 ms/;

// ---- budgets of policy-rules -------------------------------------------------------------------

const budgetRule = (calls) => ({ on: 'mcp.request', if: 'has(mcp.request.arguments.mark)', decision: 'block', over: { calls, by: [] } });
const profile = (calls, policies, extra = {}) => ({
  mcpServers: { local: fake('--tool', 'a') },
  policies,
  limits: { drain_ms: 60_000, policy_timeout_ms: 30_000 },
  security: { rules: { mcp: { budget: budgetRule(calls), ...extra } } },
});
const other = (i) => ({ [`other${i}`]: { on: 'mcp.request', if: `mcp.request.tool_name == "no-${i}"`, decision: 'block' } });

// Calls the tool with 8 clients until `stop` of the result is called. Two clients send
// arguments that policy-rules evaluates on its thread pool, so that calls may be pending there when
// the state is exported.
async function load(t, gateway) {
  const clients = await Promise.all(Array.from({ length: 8 }, () => t.http(gateway)));
  const state = { allowed: 0, calls: 0, failures: [], over: false };
  const large = Array(100_000).fill(1);
  const loads = clients.map(async (client, i) => {
    while (!state.over) {
      const failure = await tool(client, i % 4 === 0 ? { mark: i, large } : { mark: i });
      ++state.calls;
      if (failure === undefined) ++state.allowed;
      else state.failures.push(failure);
    }
  });
  state.more = (count) => { const before = state.calls; return until('calls are made', () => state.calls > before + count, 60_000); };
  state.stop = async () => { state.over = true; await Promise.all(loads); };
  return state;
}

// Makes calls until one is blocked. Returns the number of allowed calls.
async function rest(client) {
  for (let allowed = 0; allowed < 1_000; ++allowed) {
    const failure = await tool(client, { mark: 'rest' });
    if (failure === undefined) continue;
    assert.match(failure, /blocked by policy \(security\.rules\.mcp\.budget\)/);
    return allowed;
  }
  return assert.fail('no call was blocked');
}

for (const [mode, args, compartment] of [['compartments', [], 'own'], ['one process', ['--single-process'], 'endpoint']])
  test(`a budget is exact while its policy is reloaded and swapped under load (${mode})`, async (t) => {
    const swaps = args.length === 0;
    const files = [rulesPlugin(t, 1), rulesPlugin(t, 2)];
    const policies = { default: { plugin: rulesPlugin(t, 0), compartment } };
    const gateway = await t.gateway(profile(1_000_000, policies), { args });
    const client = await t.http(gateway);
    await until('calls are decided', async () => (await tool(client)) === undefined, 60_000);
    const write = (calls, extra) => writeFileSync(gateway.config, JSON.stringify(profile(calls, policies, extra)));
    const reload = async () => {
      const done = await ask(gateway, 'POST', '/reload-config');
      if (done.status === 200) return true;
      assert.match(show(done), late);
      return false;
    };
    const swap = swapper(t, gateway);
    const state = await load(t, gateway);
    let reloads = 0, swapped = 0;
    for (let i = 0; reloads < 22; ++i) {
      assert.ok(i < 200, 'most reloads are possible');
      write(1_000_000, other(i));
      if (await reload()) ++reloads;
      await state.more(8);
      if (!swaps || i % 2 === 0) continue;
      const done = swap(files[swapped % 2]);
      if (done.code === 0) ++swapped;
      else assert.match(show(done), /have not completed|within 50 ms/);
      await state.more(8);
    }
    await state.stop();
    assert.deepEqual(state.failures, []);
    assert.equal(state.allowed, state.calls);
    if (swaps) assert.ok(swapped >= 3, `${swapped} swaps`);
    // The calls so far count against a new limit, so exactly 40 more are possible.
    write(state.allowed + 40, other('last'));
    await until('the new limit is in force', reload, 60_000);
    assert.equal(await rest(client), 40);
    if (!swaps) return;
    await until('the swap is possible', () => swap(files[swapped % 2]).code === 0, 60_000);
    assert.equal(await rest(client), 0);
  }, { timeout: 600_000 });

test('the process of a policy that has exited begins without counts, as after each crash', async (t) => {
  const policies = { default: { plugin: 'policy-rules', compartment: 'own' } };
  const gateway = await t.gateway(profile(3, policies));
  const client = await t.http(gateway);
  await until('calls are decided', async () => (await tool(client)) === undefined, 60_000);
  assert.equal(await rest(client), 3);
  const [old] = await processesOf(gateway);
  process.kill(old.pid, 'SIGKILL');
  await until('it decides again', async () => (await tool(client)) === undefined, 60_000);
  assert.equal(await rest(client), 3);
});

// ---- states that cannot be moved ---------------------------------------------------------------

const counted = async (t, version, most = 1_000) => {
  const policies = { default: { plugin: counting(t, version), config: { most } } };
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a') }, policies, limits: { plugin_init_ms: 1_000 } });
  const client = await t.http(gateway);
  await until('calls are decided', async () => (await tool(client)) === undefined, 60_000);
  const reload = () => {
    policies.default.config.most = --most;
    const path = gateway.config;
    const changed = JSON.parse(readFileSync(path, 'utf8'));
    changed.policies.default.config.most = most;
    writeFileSync(path, JSON.stringify(changed));
    return ask(gateway, 'POST', '/reload-config');
  };
  return { gateway, client, reload, swap: swapper(t, gateway) };
};
// Allows as many calls as remain, and returns the reason of the first call that is blocked.
async function used(client) {
  for (let i = 0; i < 100; ++i) {
    const failure = await tool(client);
    if (failure !== undefined) return failure;
  }
  return assert.fail('no call was blocked');
}

for (const [version, reason] of Object.entries({
  'import-fails': /the new process rejects the state: no such count is known here/,
  'import-slow': /the new process has not imported its state within 50 ms/,
  'import-crashes': /the new process/,
})) {
  test(`a version of a policy that ${version} is not put into use`, async (t) => {
    const { gateway, client, swap } = await counted(t, 'one', 5);
    const [old] = await processesOf(gateway);
    const done = swap(counting(t, version));
    assert.equal(done.code, 1, show(done));
    assert.match(done.stdout, /the new version was not put into use: compartment "policy\.default": the policy was not replaced, because its state was not moved: /);
    assert.match(done.stdout, reason);
    assert.match(await used(client), /5 calls, decided by one/);
    await until('the new process has exited', async () => (await processesOf(gateway)).length === 1);
    assert.equal((await processesOf(gateway))[0].pid, old.pid);
    assert.equal(swap(counting(t, 'two')).code, 0);
    assert.match(await used(client), /5 calls, decided by two/);
  });
}

for (const [version, reason] of Object.entries({
  'export-fails': /the count is unreadable/,
  'export-large': /its state has 1048577 bytes; the limit is 1048576/,
  'export-slow': /it has not exported its state within 50 ms/,
})) {
  test(`a policy whose state cannot be moved continues: ${version}`, async (t) => {
    const { gateway, client, reload, swap } = await counted(t, version, 5);
    const [old] = await processesOf(gateway);
    const swapped = swap(counting(t, 'two'));
    assert.equal(swapped.code, 1, show(swapped));
    assert.match(swapped.stdout, reason);
    const reloaded = await reload();
    assert.equal(reloaded.status, 500, show(reloaded));
    assert.match(show(reloaded), reason);
    assert.match(await used(client), new RegExp(`5 calls, decided by ${version}`));
    await until('the new processes have exited', async () => (await processesOf(gateway)).length === 1, 30_000);
    assert.equal((await processesOf(gateway))[0].pid, old.pid);
  });
}

test('if the process of a policy exits while it exports its state, the new one begins without it', async (t) => {
  const { gateway, client, swap } = await counted(t, 'export-crashes', 5);
  assert.match(await used(client), /5 calls, decided by export-crashes/);
  const done = swap(counting(t, 'two'));
  assert.equal(done.code, 0, show(done));
  await until('the new version decides', async () => (await tool(client)) === undefined);
  assert.match(await used(client), /5 calls, decided by two/);
  assert.equal((await processesOf(gateway)).length, 1);
});

test('a version without state replaces one with state, and the log reports it', async (t) => {
  const { gateway, client, swap } = await counted(t, 'one', 5);
  assert.match(await used(client), /5 calls, decided by one/);
  assert.equal(swap(counting(t, 'stateless')).code, 0);
  assert.match(await used(client), /5 calls, decided by stateless/);
  await until('it is logged', () => /policy\.default.*accepts no state \(bh\.state\/1\); its counters begin again/.test(gateway.stderrText));
  // A former version without state has nothing to move.
  assert.equal(swap(counting(t, 'two')).code, 0);
  assert.match(await used(client), /5 calls, decided by two/);
});

test('a reload of the configuration keeps the state, and the new limit applies to it', async (t) => {
  const { client, reload } = await counted(t, 'one', 5);
  for (let i = 0; i < 2; ++i) assert.equal(await tool(client), undefined);
  const done = await reload();
  assert.equal(done.status, 200, show(done));
  assert.match(await used(client), /4 calls, decided by one/);
});

await run();

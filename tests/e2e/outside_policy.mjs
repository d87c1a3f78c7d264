// Tests a policy plugin that is built outside the repository (examples/policy-plugin) with the
// installed SDK. Changing the profile is enough to use it instead of policy-rules. Its faults are
// tested in a private compartment and in the endpoint.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { assert, build, fake, root, run, runProgram, show, Skip, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const telemetryPlugin = join(build, 'tests/judges/test-telemetry.so');
const refused = 3;
const timeout = 120_000; // building the plugin takes time

process.umask(0o022); // a plugin that other users can modify is not loaded
const work = mkdtempSync(join(tmpdir(), 'bulkhead-outside-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

function step(command, args) {
  const done = spawnSync(command, args, { encoding: 'utf8', cwd: work, timeout: 300_000 });
  if (done.error?.code === 'ENOENT') throw new Skip(`${command} is not there`);
  assert.equal(done.status, 0, `${command} ${args.join(' ')}\n${done.stdout}${done.stderr}`);
}
// The plugin is built once, as its README describes. Sanitizer builds require plugins that are
// built with the same sanitizer.
let plugin;
let failure;
function outside() {
  if (failure) throw failure;
  if (plugin) return plugin;
  try {
    plugin = buildOutside();
  } catch (error) {
    failure = error;
    throw error;
  }
  return plugin;
}
function buildOutside() {
  cpSync(join(root, 'examples/policy-plugin'), join(work, 'policy-plugin'), { recursive: true });
  step('cmake', ['--install', build, '--component', 'sdk', '--prefix', join(work, 'prefix')]);
  step('cmake', [
    '-S', 'policy-plugin', '-B', 'policy-plugin/build', '-DCMAKE_BUILD_TYPE=Release',
    `-DCMAKE_PREFIX_PATH=${join(work, 'prefix')}`, '-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wshadow -Werror',
  ]);
  step('cmake', ['--build', 'policy-plugin/build']);
  step('cmake', ['--install', 'policy-plugin/build', '--prefix', join(work, 'prefix')]);
  const file = join(work, 'policy-plugin/build/policy-words.so');
  assert.ok(existsSync(file));
  return file;
}

const call = (client, args) => client.tool('local__a', args).then((result) => ({ result }), (error) => ({ error }));
const compartment = async (gateway, name) => (await statusOf(gateway)).compartments.find((one) => one.name === name);
function records(gateway) {
  const file = readdirSync(gateway.dir, { recursive: true }).find((name) => name.endsWith('records.jsonl'));
  if (file === undefined) return [];
  return readFileSync(join(gateway.dir, file), 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
}
async function judged(t, policy = {}) {
  const gateway = await t.gateway({
    mcpServers: { local: fake('--tool', 'a') },
    policies: { default: { plugin: outside(), words: 'password,id_rsa', rehearse: true, ...policy } },
    telemetry: { book: { plugin: telemetryPlugin } },
    limits: { policy_timeout_ms: 3000 },
  });
  const client = await t.http(gateway);
  await until('calls are decided', async () => (await call(client, { n: 0 })).result);
  return { gateway, client };
}

test('the profile alone replaces policy-rules by this plugin', async (t) => {
  const mcpServers = { local: fake('--tool', 'a') };
  const rules = await t.http(await t.gateway({
    mcpServers,
    security: { rules: { mcp: { no_password: { on: 'mcp.request', if: 'mcp.request.arguments_text.contains("password")', decision: 'block' } } } },
  }));
  assert.match((await call(rules, { say: 'the password' })).error.message, /blocked by policy \(.*no_password\)/);
  const gateway = await t.gateway({ mcpServers, policies: { default: { plugin: outside(), words: 'password,id_rsa' } } });
  const client = await t.http(gateway);
  assert.match((await call(client, { say: 'the PassWord' })).error.message, /blocked by policy \(words\): the word "password" is not allowed/);
  assert.deepEqual((await call(client, { say: 'hello' })).result.echo, { say: 'hello' });
  assert.deepEqual((await call(client, { rehearse: 'throw' })).result.echo, { rehearse: 'throw' }, 'without the option it does not fail');
  const { compartments, plugins } = await statusOf(gateway);
  assert.ok(compartments.some(({ name }) => name === 'policy.default'), show(compartments));
  assert.ok(!plugins.some((one) => one.plugin === 'policy-rules'), show(plugins));
}, { timeout });

test('its configuration is validated against its own schema before it is loaded', (t) => {
  const { code, stderr } = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], {
    profile: { mcpServers: {}, policies: { default: { plugin: outside(), words: 'a b' } } },
  }, { timeout });
  assert.notEqual(code, 0);
  assert.match(stderr, /words/);
}, { timeout });

for (const where of ['own', 'endpoint']) {
  test(`exceptions, errors, invalid verdicts and missing verdicts reject the call and are recorded (${where})`, async (t) => {
    const { gateway, client } = await judged(t, where === 'own' ? {} : { compartment: where });
    assert.equal((await compartment(gateway, 'policy.default')) !== undefined, where === 'own');
    for (const [fault, rule] of [['throw', 'failed'], ['error', 'failed'], ['garbage', 'failed'], ['silence', 'timeout']]) {
      const { error, result } = await call(client, { rehearse: fault });
      assert.match(error?.message ?? show(result), new RegExp(`MCP request blocked by policy \\(policy-${rule}\\)`), fault);
      assert.ok((await call(client, { n: 1 })).result, `after ${fault}`);
      await until(`${fault} is recorded`, () => records(gateway).some((one) => one.outcome === refused && one.rule === `policy-${rule}`));
    }
    assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
    if (where === 'own') assert.equal((await compartment(gateway, 'policy.default')).restarts, 0);
  }, { timeout });
}

for (const [fault, rule] of [['crash', 'failed'], ['hang', 'timeout']]) {
  test(`in its own compartment a ${fault} rejects the call and is recorded, and the endpoint continues`, async (t) => {
    const { gateway, client } = await judged(t);
    const { pid } = await compartment(gateway, 'policy.default');
    const { error, result } = await call(client, { rehearse: fault });
    assert.match(error?.message ?? show(result), new RegExp(`MCP request blocked by policy \\(policy-${rule}\\)`));
    await until('it is restarted', async () => {
      const one = await compartment(gateway, 'policy.default');
      return one.state === 'running' && one.pid !== pid;
    });
    await until('the policy decides again', async () => (await call(client, { n: 1 })).result);
    assert.match((await call(client, { say: 'password' })).error.message, /\(words\)/);
    await until('it is recorded', () => records(gateway).some((one) => one.outcome === refused && one.rule === `policy-${rule}`));
    assert.equal((await compartment(gateway, 'endpoint')).restarts, 0);
  }, { timeout });

  test(`in the endpoint a ${fault} ends the endpoint${fault === 'hang' ? ', by watchdog' : ''}; it is restarted, and the log has the reason`, async (t) => {
    const { gateway, client } = await judged(t, { compartment: 'endpoint' });
    const { pid } = await compartment(gateway, 'endpoint');
    const { error, result } = await call(client, { rehearse: fault });
    assert.ok(error, show(result));
    const fresh = await until('it is restarted', async () => {
      const one = await compartment(gateway, 'endpoint');
      return one.state === 'running' && one.pid !== pid && one;
    }, 60_000);
    assert.equal(fresh.restarts, 1);
    const other = await t.http(gateway);
    assert.ok((await call(other, { n: 1 })).result);
    assert.match((await call(other, { say: 'password' })).error.message, /\(words\)/);
    const why = fault === 'hang' ? /the policy "default" has not returned for more than 3000 ms/ : /endpoint: the compartment was killed by SIG/;
    assert.match(gateway.stderr(), why);
  }, { timeout });
}

// The plugin is built first, so that the build does not slow down tests with time limits.
try {
  outside();
} catch { /* each test reports it */ }
await run();

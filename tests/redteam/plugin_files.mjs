// Attempts to lose calls or to stop the gateway with plugin files: files that change while calls
// are in flight, and plugins that never return from their static constructors. Also attempts to
// add rules that no policy evaluates.
import { copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { alive, assert, build, fake, run, runProgram, show, test, until } from '../e2e/lib.mjs';
import { ask, statusOf } from '../e2e/status.mjs';

const built = join(build, 'core/plugin/testing_plugins/plugins');
const modes = [['in compartments', []], ['in one process', ['--single-process']]];
const hanging = 'hangs-in-constructor.so';

function install(path, file = 'held-one.so') {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(join(dirname(path), 'held.plugin.toml'), 'id = "held"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n');
  copyFileSync(join(built, file), `${path}.new`);
  renameSync(`${path}.new`, path);
}
const said = async (client, tool) => (await client.tool(tool)).content[0].text;
const processOf = async (gateway, name) => (await statusOf(gateway)).compartments.find((one) => one.name === name && one.state === 'running')?.pid;

const replace = (path, text) => {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
};
// Each of these replaces a plugin's file with one that cannot run, and may have the reason that the
// next call gets.
const damages = {
  'text': [(path) => replace(path, 'no library\n')],
  'an empty file': [(path) => replace(path, '')],
  'no file': [(path) => rmSync(path)],
  'a plugin that hangs in a static constructor': [(path) => install(path, hanging), /static constructors/],
  'a plugin that fails': [(path) => install(path, 'fails-in-init.so'), /failed to initialize/],
};
for (const [what, [damage, fails]] of Object.entries(damages)) {
  test(`red team: calls in flight complete although the file of their plugin becomes ${what}`, async (t) => {
    const [first, second] = [t.path('a/held.so'), t.path('b/held.so')];
    install(first);
    install(second);
    const gateway = await t.gateway({
      limits: { drain_ms: 60_000, plugin_init_ms: 700 }, mcpServers: { s: fake('--tool', 'x') },
      tools: { first: { plugin: first, required: false }, second: { plugin: second, required: false } },
    });
    const client = await t.http(gateway);
    await until('all are listed', async () => { const names = await client.toolNames(); return ['first__hold', 'second__hold', 's__x'].every((name) => names.includes(name)); });
    const pids = { first: await processOf(gateway, 'first'), second: await processOf(gateway, 'second') };
    const held = ['first__hold', 'first__hold', 'first__hold', 'second__hold'].map((tool) => said(client, tool).catch((error) => error.message));
    await until('they run', async () => (await statusOf(gateway)).in_flight === 4);
    damage(first);
    const answer = ask(gateway, 'POST', '/reload-config');
    answer.catch(() => {}); // is awaited below
    assert.equal(await said(client, 'second__which'), 'one', 'the other plugin works');
    assert.equal(await said(client, 's__x'), 'fake/x', 'servers work');
    // The plugin either keeps its process or drains it. In both cases its calls complete there.
    assert.ok(alive(pids.first), 'the process with the calls runs');
    for (const pid of Object.values(pids)) process.kill(pid, 'SIGUSR1');
    assert.deepEqual(await Promise.all(held), Array(4).fill('one'));
    const reloaded = await answer;
    const { success, files, not_connected: failed, needs_restart: kept } = reloaded;
    const expected = fails
      ? { success: true, files: ['tools.first: file changed; new version does not run'], failed: ['first'], kept: [] }
      : { success: false, files: [], failed: [], kept: ['tools.first: file is missing or not a plugin; the old version runs until a restart'] };
    assert.deepEqual({ success, files, failed: failed.map(({ name }) => name), kept }, expected, show(reloaded));
    // A file without a plugin is not loaded, so the old version stays.
    const after = await said(client, 'first__which').catch((error) => error.message);
    assert.match(after, fails ?? /^one$/);
    // A good file makes the plugin work again.
    install(first, 'held-two.so');
    await ask(gateway, 'POST', '/reload-config');
    await until('the new version runs', async () => (await said(client, 'first__which').catch(() => '')) === 'two', 20_000);
    assert.equal(await processOf(gateway, 'second'), pids.second);
  }, { timeout: 60_000 });
}

test('red team: plugins that hang in static constructors are named and stop nothing else', async (t) => {
  const bad = { plugin: join(built, hanging), required: false };
  const good = t.path('good/held.so');
  install(good);
  const profile = { limits: { plugin_init_ms: 500 }, mcpServers: { s: fake('--tool', 'x') }, tools: { one: bad, two: bad, good: { plugin: good } } };
  const gateway = await t.gateway(profile);
  const client = await t.http(gateway);
  await until('the others are listed', async () => { const names = await client.toolNames(); return names.includes('s__x') && names.includes('good__which'); });
  assert.deepEqual([await said(client, 's__x'), await said(client, 'good__which')], ['fake/x', 'one']);
  const { plugins, servers } = await statusOf(gateway);
  for (const name of ['one', 'two']) {
    assert.match(plugins.find(({ id }) => id === name).state, /^failed/, name);
    assert.match(servers.find((one) => one.name === name).reason, /static constructors/, name);
    await assert.rejects(client.tool(`${name}__x`), (error) => error.code < 0);
  }
  assert.match(gateway.stderr(), /hangs-in-constructor[^\n]*static constructors/);
  // In one process, no plugin can be loaded after one that hangs. The start then fails with the reason.
  const { code, stderr } = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}', '--single-process'], { profile });
  assert.equal(code, 1);
  for (const why of [/one: plugin hangs-in-constructor .*static constructors/, /held\.so: cannot be mapped: the static constructors of plugin hangs-in-constructor/]) assert.match(stderr, why);
}, { timeout: 60_000 });

const foreign = join(build, 'tests/judges/test-policy.so');
for (const [mode, args] of modes) {
  test(`red team: a reload never accepts rules beside a policy that does not evaluate them, ${mode}`, async (t) => {
    for (const [what, policy] of [['policy-allow', { plugin: 'policy-allow' }], ['a foreign policy', { plugin: foreign }]]) {
      const profile = (more) => ({ mcpServers: { s: fake('--tool', 'x', '--tool', 'y') }, policies: { mine: policy }, ...more });
      const security = { rules: { mcp: { no: { on: 'mcp.request', if: 'mcp.request.tool_name == "x"', decision: 'block' } } } };
      const gateway = await t.gateway(profile({}), { args });
      const client = await t.http(gateway);
      await until('calls are decided', async () => (await said(client, 's__x').catch(() => '')) === 'fake/x');
      writeFileSync(gateway.config, JSON.stringify(profile({ security })));
      for (let round = 0; round < 2; ++round) {
        const { code, stdout, stderr } = runProgram(t, ['reload'], { env: gateway.env() });
        assert.equal(code, 1, `${what}: ${stdout}${stderr}`);
        assert.match(stdout + stderr, /policies\.mine: the profile has rules, but this plugin does not evaluate them/, what);
        assert.doesNotMatch(stdout + stderr, /in force|rules? added/, what);
      }
      assert.equal(await said(client, 's__x'), 'fake/x', 'the old profile is in force');
      // With a policy that evaluates them, the gateway says that it must be restarted.
      writeFileSync(gateway.config, JSON.stringify(profile({ security, policies: { mine: { ...policy, rules: false }, rules: { plugin: 'policy-rules' } } })));
      const { code, stdout, stderr } = runProgram(t, ['reload'], { env: gateway.env() });
      assert.notEqual(code, 0, `${what}: ${stdout}${stderr}`);
      assert.match(stdout + stderr, /policies\.[a-z]+[^\n]*restart/, show([what, stdout, stderr]));
      await gateway.stop();
    }
  }, { timeout: 60_000 });
}

await run({ parallel: 2 });

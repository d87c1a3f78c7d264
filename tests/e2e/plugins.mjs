// Tests plugin files: exported symbols, missing plugins and faulty plugins.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, build, descendants, fake, program, root, run, runProgram, show, test } from './lib.mjs';
import { statusOf } from './status.mjs';

const pluginDir = process.env.BULKHEAD_PLUGINS ?? join(build, 'lib/bulkhead/plugins');
const badDir = join(build, 'core/plugin/testing_plugins/plugins');
const firstAbi = join(build, 'tests/first_abi');
// The version in core.h, such as 1.0-rc1.
const core = readFileSync(join(root, 'sdk/include/bulkhead/abi/core.h'), 'utf8');
const abiNumber = (name) => Number(new RegExp(`^#define BH_ABI_${name} (\\d+)u$`, 'm').exec(core)[1]);
const abi = `${abiNumber('MAJOR')}.${abiNumber('MINOR')}${abiNumber('RC') ? `-rc${abiNumber('RC')}` : ''}`;
const libraries = (dir) => readdirSync(dir).filter((name) => name.endsWith('.so'));

test('H02 each plugin exports its entry and nothing else', async () => {
  const found = libraries(pluginDir);
  assert.ok(found.length >= 8, found.join(' '));
  for (const name of found) {
    const symbols = execFileSync('nm', ['-D', '--defined-only', join(pluginDir, name)], { encoding: 'utf8' });
    const names = symbols.trim().split('\n').map((line) => line.split(' ').at(-1));
    assert.deepEqual(names, ['bh_plugin_entry_v1'], name);
  }
});

test('libcurl is mapped only by http-client, and only in compartments that use it', async (t) => {
  const needs = (file) => /\[libcurl[.-]/.test(execFileSync('readelf', ['-d', file], { encoding: 'utf8' }));
  assert.deepEqual(libraries(pluginDir).filter((name) => needs(join(pluginDir, name))), ['http-client.so']);
  assert.equal(needs(program), false);
  const upstream = await t.fakeHttp();
  const gateway = await t.gateway({ mcpServers: { h: { url: upstream.url }, s: fake('--tool', 'x') } });
  assert.ok((await (await t.http(gateway)).toolNames()).includes('s__x'));
  for (const pid of [gateway.pid, ...descendants(gateway.pid)]) assert.doesNotMatch(readFileSync(`/proc/${pid}/maps`, 'utf8'), /libcurl/);
});

test('H02 plugins include only the SDK', async () => {
  const grep = (...args) => execFileSync('sh', ['-c', 'grep -rnE "$@" || true', 'sh', ...args], { encoding: 'utf8', cwd: root });
  assert.equal(grep('#include *[<"]((\\.\\./)*(core|host)|base|mcp|route|catalog|profile|reactor|plugin)/', 'plugins', 'sdk'), '');
});

const serveOnce = (t, profile) => runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], { profile });

test('H02 a plugin of another major version is rejected, and the error names it', async (t) => {
  const refused = serveOnce(t, { mcpServers: {}, tools: { extra: { plugin: join(badDir, 'wrong-major.so') } } });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /wrong-major/);
  assert.match(refused.stderr, /ABI|major/i);
});

const rejectedAbi = (kind) => new RegExp(`first-${kind}.*uses plugin ABI 0\\.x, but this Bulkhead uses ${abi}; rebuild the plugin with the SDK of this Bulkhead`);

for (const kind of ['tools', 'policy', 'telemetry', 'transport']) {
  test(`H02 a ${kind} plugin that was built against the headers of ABI 0.1 is rejected with both versions and the fix`, (t) => {
    const file = join(firstAbi, `first-${kind}.so`);
    const uses = {
      tools: { tools: { old: { plugin: file } } }, policy: { policies: { old: { plugin: file } } }, telemetry: { telemetry: { old: { plugin: file } } },
      transport: { transports: { http: { plugin: 'transport-http', listen: '127.0.0.1:0' }, old: { plugin: file } } },
    };
    const refused = serveOnce(t, { mcpServers: {}, ...uses[kind] });
    assert.equal(refused.code, 1, refused.stderr);
    assert.match(refused.stderr, rejectedAbi(kind));
  });
}

test('H02 a connector plugin that was built against the headers of ABI 0.1 is rejected, and its servers state the reason', async (t) => {
  const server = { type: 'first', url: 'http://127.0.0.1:1/' };
  const gateway = await t.gateway({ connectors: { first: join(firstAbi, 'first-connector.so') }, mcpServers: { one: server, two: server, three: fake('--tool', 'x') } });
  assert.deepEqual(await (await t.http(gateway)).toolNames(), ['three__x']);
  const { servers } = await statusOf(gateway);
  for (const name of ['one', 'two']) assert.match(servers.find((one) => one.name === name).reason, rejectedAbi('connector'));
});

test('H02 a plugin without the entry point of this ABI is rejected, whatever its manifest states', (t) => {
  mkdirSync(t.path('old'), { mode: 0o755 });
  const file = t.path('old/first-tools.so');
  cpSync(join(firstAbi, 'first-tools.so'), file);
  writeFileSync(t.path('old/first-tools.plugin.toml'), 'id = "first-tools"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n', { mode: 0o644 });
  const refused = serveOnce(t, { mcpServers: {}, tools: { old: { plugin: file } } });
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, new RegExp(`exports bh_plugin_entry_v0, but this Bulkhead uses ${abi} and requires bh_plugin_entry_v1\\); rebuild the plugin`));
});

test('H02 a plugin of another release candidate is rejected with both versions', (t) => {
  const refused = serveOnce(t, { mcpServers: {}, tools: { extra: { plugin: join(badDir, 'other-candidate.so') } } });
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, new RegExp(`other-candidate.*was built for plugin ABI 1\\.0-rc\\d+, but this Bulkhead uses ${abi};`));
});

const hostile = join(build, 'tests/hostile/hostile-tools.so');

test('plugin list and doctor include plugins named by path, even if they are invalid', async (t) => {
  const named = join(badDir, 'good.so');
  const missing = t.path('nowhere.so');
  const profile = {
    tools: { old: { plugin: named }, again: { plugin: named }, gone: { plugin: missing, required: false }, bad: { plugin: join(badDir, 'no-entry.so'), required: false } },
    policies: { words: { plugin: join(badDir, 'held-policy-one.so') } },
    connectors: { strange: hostile },
  };
  const cli = (...words) => runProgram(t, [...words, '--config', '{config}'], { profile });
  const listed = JSON.parse(cli('plugin', 'list', '--json').stdout);
  const at = (path) => {
    const found = listed.filter((one) => one.path === path);
    assert.equal(found.length, 1, `${path}: ${show(found)}`);
    return found[0];
  };
  assert.deepEqual([at(named).id, at(named).used_for, at(named).error], ['good', 'tools.old, tools.again', '']);
  assert.equal(at(join(badDir, 'held-policy-one.so')).used_for, 'policies.words');
  assert.equal(at(hostile).used_for, 'servers of type strange');
  assert.equal(at(missing).used_for, 'tools.gone');
  assert.match(at(missing).error, /nowhere/);
  assert.match(at(join(badDir, 'no-entry.so')).error, /not a Bulkhead plugin/);
  assert.ok(listed.some((one) => one.id === 'builtin-http' && one.error === ''), 'those of the folders');
  assert.match(cli('plugin', 'list').stdout, /^good \(.*good\.so\) .*tools\.old, tools\.again/m);
  const doctor = cli('doctor').stdout;
  assert.match(doctor, /^ok +\d+ plugins can be loaded; named by path: .*good\.so/m);
  assert.match(doctor, /^FAIL +plugin .*nowhere\.so: /m);
  assert.match(doctor, /^FAIL +plugin .*no-entry\.so: .*not a Bulkhead plugin/m);
});

// See docs/plugins.md, "Where a plugin runs".
test('a plugin in a compartment has no control, and no environment variables except those that connections need', async (t) => {
  const env = { TZ: 'Pacific/Chatham', SECRET_CANARY: '1', BULKHEAD_ANY: '1', LANG: 'C.UTF-8', https_proxy: 'http://127.0.0.1:9', SSL_CERT_DIR: '/etc/ssl/certs', LOGNAME: 'x', SHELL: '/bin/sh', TERM: 'dumb', USER: 'x' };
  const grants = ['network', 'control'];
  const tools = { alone: { plugin: hostile, grants: ['control'] }, caller: { plugin: hostile, grants } };
  const textOf = async (client, name) => (await client.tool(`${name}__surroundings`)).content[0].text;
  const client = await t.http(await t.gateway({ tools }, { env }));
  assert.match(await textOf(client, 'alone'), /^variables:; offset: -?\d+; control: no$/);
  const called = /^variables:(.*); offset: (-?\d+); control: no$/.exec(await textOf(client, 'caller'));
  assert.deepEqual(called[1].trim().split(' ').sort(), ['HOME', 'LANG', 'LOGNAME', 'PATH', 'SHELL', 'SSL_CERT_DIR', 'TERM', 'USER', 'https_proxy']);
  assert.ok(![45_900, 49_500].includes(Number(called[2])), `not that of TZ: ${called[2]}`);
  // In a single process, the plugin has the same access as the gateway.
  const one = await textOf(await t.http(await t.gateway({ tools }, { env, args: ['--single-process'] })), 'alone');
  assert.match(one, /variables:.* SECRET_CANARY/);
  assert.match(one, /control: yes$/);
});

test('H02 nothing beyond the end of a plugin\'s structs is read', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') }, tools: { extra: { plugin: join(badDir, 'shorter.so'), required: false } } });
  const { plugins } = await statusOf(gateway);
  assert.ok(!/ABI|major/i.test(plugins.find((plugin) => plugin.id === 'extra').state));
});

test('H04 connectors are separate files: without HTTP, stdio works and HTTP reports the reason', async (t) => {
  const dir = t.path('plugins');
  mkdirSync(dir, { mode: 0o755 });
  cpSync(pluginDir, dir, { recursive: true });
  for (const name of readdirSync(dir)) if (/^connector-http\b/.test(name)) rmSync(join(dir, name));
  assert.ok(existsSync(join(dir, 'connector-stdio.so')));
  const gateway = await t.gateway(
    { mcpServers: { local: fake('--tool', 'a'), remote: { type: 'http', url: 'http://127.0.0.1:9/mcp' } } },
    { args: ['--plugin-dir', dir] },
  );
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['local__a']);
  await client.tool('local__a');
  const remote = (await statusOf(gateway)).servers.find((server) => server.name === 'remote');
  assert.equal(remote.state, 'failed');
  assert.match(remote.reason, /connector-http/);
});

for (const [plugin, why] of [['fails-in-init.so', /fails-in-init/], ['hangs-in-init.so', /hangs-in-init/],
  ['hangs-in-constructor.so', /hangs-in-constructor.*static constructors/], ['good.so', /good\.so.*does not offer tools/]]) {
  test(`H06 ${plugin}: a failed plugin stops the start or not, depending on the profile`, async (t) => {
    const tools = (required) => ({ limits: { plugin_init_ms: 3000 }, mcpServers: { a: fake('--tool', 'x') }, tools: { extra: { plugin: join(badDir, plugin), required } } });
    const gateway = await t.gateway(tools(false));
    const client = await t.http(gateway);
    assert.deepEqual(await client.toolNames(), ['a__x']);
    const { plugins } = await statusOf(gateway);
    assert.match(plugins.find((entry) => entry.id === 'extra').state, /^failed/);
    const { state, reason } = (await statusOf(gateway)).servers.find((entry) => entry.name === 'extra');
    assert.equal(state, 'failed');
    assert.ok(reason.length > 0);
    await assert.rejects(client.tool('extra__x'), (error) => error.code < 0);
    assert.match(gateway.stderr(), why);
    const stopped = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], { profile: tools(true) });
    assert.equal(stopped.code, 1);
    assert.match(stopped.stderr, why);
  });
}

for (const args of [[], ['--single-process']]) {
  test(`H06 a required plugin that hangs in its constructors, or offers no tools, stops the start ${args}`, async (t) => {
    for (const [plugin, why] of [['hangs-in-constructor.so', /hangs-in-constructor.*static constructors/], ['good.so', /good\.so.*does not offer tools/]]) {
      const profile = { limits: { plugin_init_ms: 3000 }, mcpServers: { a: fake('--tool', 'x') }, tools: { extra: { plugin: join(badDir, plugin) } } };
      const stopped = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}', ...args], { profile });
      assert.equal(stopped.code, 1, plugin);
      assert.match(stopped.stderr, why);
    }
  });

  test(`H06 a call that a plugin completes without a result fails immediately ${args}`, async (t) => {
    const gateway = await t.gateway({ tools: { extra: { plugin: join(badDir, 'unfinished.so') } } }, { args });
    const client = await t.http(gateway);
    assert.deepEqual((await client.toolNames()).sort(), ['extra__nothing', 'extra__slow', 'extra__thread']);
    for (let round = 0; round < 3; ++round) {
      await assert.rejects(client.tool('extra__nothing'), (error) => error.code === -32603 && /BH_OK without a result/.test(error.message));
      assert.equal((await client.tool('extra__thread')).content[0].text, 'done', 'a result of another thread is not missed');
    }
    const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => client.tool(`extra__${n % 2 ? 'thread' : 'nothing'}`).then(() => 1, () => 0)));
    assert.equal(answers.reduce((a, b) => a + b), 25);
    assert.equal((await statusOf(gateway)).in_flight, 0);
  });
}

test('H06 a missing or corrupt plugin is reported', async (t) => {
  for (const name of ['no-such-plugin', join(root, 'README.md')]) {
    const done = runProgram(t, ['serve', '--listen', '127.0.0.1:0', '--config', '{config}'], { profile: { mcpServers: {}, tools: { extra: { plugin: name } } } });
    assert.equal(done.code, 1);
    assert.ok(done.stderr.includes(name.split('/').at(-1)), done.stderr);
  }
});

await run();

// Tests the first start of a server, which downloads its program, and later starts with stored
// lists.
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { assert, fake, fakeMcp, program, run, runProgram, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};

// A server that starts when the file `go` exists in its directory, with the arguments in `args`. It
// exits if the file `broken` exists.
class Gated {
  constructor(t, name) {
    this.folder = t.path(name);
    mkdirSync(this.folder);
    writeFileSync(this.at('start'), '#!/bin/sh\ncd "$(dirname "$0")" || exit 1\n[ ! -e broken ] || exit 7\n'
      + 'until [ -e go ]; do sleep 0.02; done\nexec "$1" $(cat args)\n');
    chmodSync(this.at('start'), 0o755);
    this.lists('a');
    this.definition = { command: '/bin/sh', args: [this.at('start'), fakeMcp] };
  }
  at(name) {
    return join(this.folder, name);
  }
  lists(...tools) {
    writeFileSync(this.at('args'), tools.map((tool) => `--tool ${tool}`).join(' '));
  }
  async go(open) {
    if (open) writeFileSync(this.at('go'), '');
    else rmSync(this.at('go'));
  }
}
const stateOf = async (gateway, name) => (await statusOf(gateway)).servers.find((one) => one.name === name).state;

// Runs a gateway with this server once. Returns the profile.
async function ranOnce(t, server, args, more = {}) {
  const state = t.path('state');
  mkdirSync(state, { mode: 0o700 });
  const profile = { state_dir: state, limits: { first_list_wait_ms: 20_000, connect_timeout_ms: 20_000, grace_ms: 0 }, mcpServers: { s: server.definition, ...more } };
  await server.go(true);
  const first = await t.gateway(profile, { args });
  assert.ok((await (await t.http(first)).toolNames()).includes('s__a'));
  await until('its list is on disk', () => existsSync(join(state, 'lists/s')));
  await first.stop();
  assert.equal(statSync(join(state, 'lists/s')).mode & 0o777, 0o600);
  await server.go(false);
  return profile;
}

both('the second start lists an eager server before it is ready, and its calls wait for it', async (t, args) => {
  const server = new Gated(t, 'server');
  const profile = await ranOnce(t, server, args);
  const gateway = await t.gateway(profile, { args });
  const client = await t.http(gateway);
  await client.listen();
  assert.deepEqual(await client.toolNames(), ['s__a']);
  assert.equal(await stateOf(gateway, 's'), 'connecting');
  // Clients with other capabilities see the same list until the server has returned a list for
  // their capabilities.
  assert.deepEqual(await (await t.http(gateway, { capabilities: { sampling: {} } })).toolNames(), ['s__a']);
  const call = client.tool('s__a');
  server.lists('a', 'b');
  await server.go(true);
  assert.equal((await call).content[0].text, 'fake/a');
  await client.note('notifications/tools/list_changed');
  assert.deepEqual((await client.toolNames()).sort(), ['s__a', 's__b']);
});

both('a server that fails to start is no longer listed', async (t, args) => {
  const server = new Gated(t, 'server');
  const profile = await ranOnce(t, server, args, { good: fake('--tool', 'x') });
  writeFileSync(server.at('broken'), '');
  const gateway = await t.gateway(profile, { args });
  const client = await t.http(gateway);
  await until('only the other one is listed', async () => (await client.toolNames()).join() === 'good__x');
  await assert.rejects(client.tool('s__a'), { message: /server "s" is not available/ });
});

both('stdio names servers without stored lists in its instructions, and lists other servers immediately', async (t, args) => {
  const server = new Gated(t, 'server');
  const state = t.path('state');
  mkdirSync(state, { mode: 0o700 });
  const profile = { state_dir: state, limits: { first_list_wait_ms: 20_000, connect_timeout_ms: 20_000 }, mcpServers: { slow: server.definition, idle: { ...fake('--tool', 'i'), start: 'lazy' } } };
  const begin = async () => {
    const client = await t.stdio(profile, { args, initialize: false });
    return [client, (await client.initialize()).instructions ?? ''];
  };
  const [first, said] = await begin();
  assert.match(said, /^Servers that are starting for the first time and may still be downloading: slow\. Their tools are listed as soon as they are ready/);
  await server.go(true);
  await until('it is listed', async () => (await first.toolNames()).includes('slow__a'));
  await until('its list is on disk', () => existsSync(join(state, 'lists/slow')));
  await first.close();
  await server.go(false);
  const [second, then] = await begin();
  assert.doesNotMatch(then, /first time/);
  assert.ok((await second.toolNames()).includes('slow__a'));
  await server.go(true);
  assert.equal((await second.tool('slow__a')).content[0].text, 'fake/a');
});

// Simulates an npx that downloads missing packages to its cache.
function fakeNpx(t) {
  const folder = t.path('bin');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'npx');
  writeFileSync(file, '#!/bin/sh\nif [ -e "$HOME/.npm/there" ]; then how=cached; else how=downloaded; mkdir -p "$HOME/.npm"; echo x > "$HOME/.npm/there"; fi\n'
    + 'exec "$3" --tool $how\n');
  chmodSync(file, 0o755);
  return { command: file, args: ['-y', 'some-package', fakeMcp] };
}

// Returns the only cache folder of the server.
function cacheOf(state, server = 's') {
  const names = readdirSync(join(state, 'cache', server));
  assert.equal(names.length, 1, show(names));
  return join(state, 'cache', server, names[0]);
}

// The two servers `one` and `two` have been started by a command. Their lists are known, and in the
// gateway each of them finds its own cache.
async function findsCaches(t, home, file) {
  const state = join(home, '.local/state/bulkhead');
  for (const name of ['one', 'two']) {
    assert.ok(existsSync(join(cacheOf(state, name), 'npm/there')), name);
    assert.ok(existsSync(join(state, 'lists', name)), name);
  }
  assert.ok(!existsSync(join(home, '.npm')), 'the cache of the user is not used');
  const env = { HOME: home, XDG_STATE_HOME: '', XDG_CONFIG_HOME: '' };
  const gateway = await t.gateway(readFileSync(file, 'utf8'), { env });
  const client = await t.http(gateway);
  await until('both servers have found their caches', async () =>
    (await client.toolNames()).sort().join() === 'one__cached,two__cached');
  for (const name of ['one', 'two']) assert.equal((await client.tool(`${name}__cached`)).content[0].text, 'fake/cached');
}

test('import fills the private cache of each server for the next start', async (t) => {
  const home = t.path('home');
  mkdirSync(home, { mode: 0o700 });
  writeFileSync(join(home, '.claude.json'), JSON.stringify({ mcpServers: { one: fakeNpx(t), two: fakeNpx(t) } }));
  const file = join(home, 'profile.toml');
  const done = runProgram(t, ['import', '--write', file], { env: { HOME: home, XDG_STATE_HOME: '', XDG_CONFIG_HOME: '' } });
  assert.equal(done.code, 0, show(done));
  for (const name of ['one', 'two']) assert.match(done.stdout, new RegExp(`^${name} +stdio +ready +1 `, 'm'));
  await findsCaches(t, home, file);
});

test('mcp add fills the private cache of each server for the next start', async (t) => {
  const home = t.path('home');
  mkdirSync(home, { mode: 0o700 });
  const env = { HOME: home, XDG_STATE_HOME: '', XDG_CONFIG_HOME: '' };
  for (const name of ['one', 'two']) {
    const { command, args } = fakeNpx(t);
    const done = runProgram(t, ['mcp', 'add', name, '--', command, ...args], { env });
    assert.equal(done.code, 0, show(done));
    assert.match(done.stdout, new RegExp(`^${name} +stdio +ready +1 `, 'm'));
  }
  await findsCaches(t, home, join(home, '.config/bulkhead/profile.toml'));
});

test('warm fills the private cache and stores the list before the first start', async (t) => {
  const state = t.path('state');
  mkdirSync(state, { mode: 0o700 });
  const profile = {
    state_dir: state,
    mcpServers: { s: { ...fakeNpx(t), start: 'lazy' }, own: { ...fake('--tool', 'o'), session: 'per-client' }, lacks: { ...fake(), env: { K: '${env:NOT_SET}' } } },
  };
  const cli = (...words) => runProgram(t, [...words, '--config', '{config}'], { profile });
  const unknown = cli('warm', 'nosuch');
  assert.equal(unknown.code, 2, show(unknown));
  assert.match(unknown.stderr, /no server is named nosuch/);
  const one = cli('warm', 's', '--json');
  assert.equal(one.code, 0, show(one));
  assert.deepEqual(JSON.parse(one.stdout).servers, [{ name: 's', state: 'ready', reason: '', tools: 1 }]);
  assert.ok(readFileSync(join(cacheOf(state), 'npm/there'), 'utf8'));
  assert.deepEqual(readdirSync(join(state, 'lists')).sort(), ['.key', 's']);
  // The gateway lists the stored tools without starting the server, and the server uses the cache.
  const gateway = await t.gateway(profile);
  const client = await t.http(gateway);
  assert.ok((await client.toolNames()).includes('s__downloaded'));
  assert.equal(await stateOf(gateway, 's'), 'idle');
  await client.tool('s__cached').catch(() => {});
  await client.tool('s__downloaded').catch(() => {});
  await until('the second start has found the cache', async () => (await client.toolNames()).includes('s__cached'));
  await gateway.stop();
  const all = cli('warm');
  assert.equal(all.code, 0, show(all));
  assert.match(all.stdout, /^own +stdio +ready +1 +2025-11-25$/m);
  assert.match(all.stdout, /^lacks +stdio +disabled +- +the environment variable NOT_SET is not set/m);
  const broken = runProgram(t, ['warm', '--config', '{config}'], { profile: { state_dir: state, mcpServers: { gone: { command: '/no/such/program' } } } });
  assert.equal(broken.code, 1, show(broken));
  assert.match(broken.stdout, /^gone +stdio +failed .*does not exist/m);
});

test('warm copies the tarballs of a package from the user\'s npm cache, by digest', (t) => {
  const [home, state] = [t.path('home'), t.path('state')];
  const modules = join(home, '.npm/_npx/0123/node_modules');
  mkdirSync(join(modules, 'some-package'), { recursive: true });
  mkdirSync(state, { mode: 0o700 });
  writeFileSync(join(modules, 'some-package/package.json'), '{}');
  const add = (content, stored) => {
    const digest = createHash('sha512').update(content).digest();
    const hex = digest.toString('hex');
    const file = join('_cacache/content-v2/sha512', hex.slice(0, 2), hex.slice(2, 4), hex.slice(4));
    mkdirSync(join(home, '.npm', file, '..'), { recursive: true });
    writeFileSync(join(home, '.npm', file), stored);
    return { integrity: `sha512-${digest.toString('base64')}`, file };
  };
  const [good, forged] = [add('a tarball', 'a tarball'), add('another', 'planted')];
  writeFileSync(join(modules, '.package-lock.json'), JSON.stringify({ packages: { 'node_modules/a': good, 'node_modules/b': forged } }));
  writeFileSync(join(home, '.npm/_cacache/index-v5'), 'an index');
  const definition = fakeNpx(t);
  const warm = (folder, more) => runProgram(t, ['warm', '--config', '{config}'],
    { profile: { state_dir: folder, mcpServers: { s: { ...definition, ...more } } }, env: { HOME: home } });
  const done = warm(state);
  assert.equal(done.code, 0, show(done));
  assert.match(done.stderr, /server s: 1 packages \(1 KiB\) copied from your npm cache/);
  const own = join(cacheOf(state), 'npm');
  assert.equal(readFileSync(join(own, good.file), 'utf8'), 'a tarball');
  assert.deepEqual(readdirSync(join(own, '_cacache')), ['content-v2']);
  assert.ok(!existsSync(join(own, forged.file)) && !existsSync(join(own, '_npx')));
  assert.doesNotMatch(warm(state).stderr, /copied/, 'they are there');
});

test('import starts the written servers once by default', async (t) => {
  const home = t.path('home');
  mkdirSync(home);
  writeFileSync(join(home, '.claude.json'), JSON.stringify({ mcpServers: { s: fakeNpx(t), broken: { command: '/nowhere/server' } } }));
  const file = join(home, 'profile.toml');
  const cli = (...words) => runProgram(t, words, { env: { HOME: home } });
  const done = cli('import', '--write', file);
  assert.equal(done.code, 0, show(done));
  assert.match(done.stdout, /^s +stdio +ready +1 +2025-11-25$/m);
  assert.match(done.stderr, /some servers did not start/);
  const again = cli('import', '--write', file);
  assert.match(again.stdout, /^Already in the profile, kept: s, broken$/m);
  assert.doesNotMatch(again.stdout, / ready /);
  for (const words of [['--no-warm'], ['--json']]) {
    rmSync(file);
    const hinted = cli('import', '--write', file, ...words);
    assert.equal(hinted.code, 0, show(hinted));
    assert.doesNotMatch(hinted.stdout, /ready/);
    if (words[0] === '--no-warm') assert.match(hinted.stdout, /bulkhead warm --config .*profile\.toml/);
  }
});

test('import --folder starts nothing, because a repository may have defined the servers', async (t) => {
  const [home, folder] = [t.path('home'), t.path('folder')];
  for (const each of [home, folder]) mkdirSync(each);
  const ran = join(folder, 'ran');
  writeFileSync(join(folder, '.mcp.json'), JSON.stringify({ mcpServers: { s: { command: '/bin/sh', args: ['-c', `touch ${ran}`] } } }));
  const file = join(home, 'profile.toml');
  const done = spawnSync(program, ['import', '--folder', '--write', file], { cwd: folder, env: { ...process.env, HOME: home, XDG_CONFIG_HOME: '', XDG_STATE_HOME: '' }, encoding: 'utf8' });
  assert.equal(done.status, 0, done.stderr);
  assert.match(readFileSync(file, 'utf8'), /^\[mcpServers\.s\]$/m);
  assert.match(done.stdout, /bulkhead warm --config .*profile\.toml/);
  assert.ok(!existsSync(ran));
});

await run();

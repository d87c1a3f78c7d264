// Tests signed plugins with the real minisign: which plugins a gateway loads, `plugin add`, `remove`,
// `verify`, `list` and `log`, and the quarantine.
import { createHash } from 'node:crypto';
import { spawnSync } from 'node:child_process';
import { appendFileSync, copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert, build, run, runProgram, show, test, until } from './lib.mjs';
import { block } from './documents.mjs';

const built = join(build, 'core/plugin/testing_plugins/plugins');
const sha256 = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');

// Writes a version of the plugin "held" to a folder, and returns its library.
function version(t, number, name = 'one') {
  const file = t.path(`${number}-${name}/held.so`);
  mkdirSync(dirname(file), { recursive: true });
  // The code of held-one has the version "one", so that is the only version that can be signed.
  writeFileSync(join(dirname(file), 'held.plugin.toml'), `id = "held"\nversion = "${number}"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n`, { mode: 0o644 });
  copyFileSync(join(built, `held-${name}.so`), file);
  return file;
}

const minisign = (...args) => {
  const done = spawnSync('minisign', args, { encoding: 'utf8', input: '' });
  assert.equal(done.status, 0, `minisign ${args.join(' ')}: ${done.stderr} ${done.error ?? ''}`);
};

class Keys {
  constructor(t, name = 'key') {
    this.secret = t.path(`${name}.key`);
    minisign('-G', '-W', '-f', '-p', t.path(`${name}.pub`), '-s', this.secret);
    const [comment, line] = readFileSync(t.path(`${name}.pub`), 'utf8').split('\n');
    this.line = line;
    this.id = comment.slice(-16);
  }
  // Signs with the trusted comment that `plugin verify` prints.
  sign(t, file, ...options) {
    const found = JSON.parse(runProgram(t, ['plugin', 'verify', file, '--json']).stdout);
    minisign('-S', '-s', this.secret, '-m', file, '-t', found.comment, ...options);
  }
}

const trusting = (keys, more = {}) => ({ plugin_trust: { trusted_keys: [keys.line], require_signatures: true, ...more } });
// All commands of a test share one store and one state folder.
const folders = (t) => ({ XDG_DATA_HOME: t.path('data'), XDG_STATE_HOME: t.path('state') });
// Runs a `plugin` command with a profile.
const plugin = (t, words, profile = {}) => runProgram(t, ['plugin', ...words, '--config', '{config}'], { profile, env: folders(t) });
// Starts a gateway that must not start.
const notStarted = (t, profile, reason) => {
  const done = runProgram(t, ['serve', '--config', '{config}', '--listen', '127.0.0.1:0'], { profile, env: folders(t) });
  assert.equal(done.code, 1, show(done));
  assert.match(done.stderr, reason, show(done));
};
const rejected = (t, file, profile, reason) => {
  const done = plugin(t, ['verify', file], profile);
  assert.equal(done.code, 1, show(done));
  assert.match(done.stderr, reason, show(done));
};
const said = async (client, tool) => (await client.tool(tool)).content[0].text;

test('the printed command signs a plugin, in both formats, and a changed byte is detected', (t) => {
  const keys = new Keys(t), other = new Keys(t, 'other');
  const file = version(t, 'one');
  const unsigned = plugin(t, ['verify', file]);
  assert.equal(unsigned.code, 0, show(unsigned));
  const [, command] = unsigned.stdout.match(/To sign it:\n +(minisign .*)\n/);
  const [documented] = block('docs/plugins.md', 'minisign -S');
  const blank = (text) => text.replace(/-m \S+/, '-m FILE').replace(/id=\S+ version=\S+ abi=\S+ manifest=[0-9a-zA-Z]+/, 'FIELDS');
  assert.equal(blank(command), blank(documented));
  rejected(t, file, trusting(keys), /is not signed, but plugin_trust\.require_signatures is true/);
  for (const options of [[], ['-l']]) {
    keys.sign(t, file, ...options);
    const done = plugin(t, ['verify', file], trusting(keys));
    assert.equal(done.code, 0, show(done));
    assert.match(done.stdout, new RegExp(`signature +valid, by the key ${keys.id}\n`));
  }
  rejected(t, file, trusting(other), new RegExp(`signed with the key ${keys.id}, which is not in plugin_trust.trusted_keys`));
  rejected(t, file, trusting(keys, { revoked_keys: [keys.id] }), /revoked_keys/);
  rejected(t, file, trusting(keys, { revoked_digests: [sha256(file)] }), /revoked_digests/);
  const manifest = join(dirname(file), 'held.plugin.toml');
  const before = readFileSync(manifest);
  appendFileSync(manifest, 'exclusive = true\n');
  rejected(t, file, trusting(keys), /is signed for another plugin or manifest/);
  writeFileSync(manifest, before);
  appendFileSync(file, 'x');
  rejected(t, file, trusting(keys), /the signature does not match the file/);
  // Without a requirement, the trusted key's signature must still match.
  rejected(t, file, trusting(keys, { require_signatures: false }), /the signature does not match the file/);
});

test('a gateway that requires signatures loads its own plugins and signed ones only', async (t) => {
  const keys = new Keys(t);
  const file = version(t, 'one');
  const profile = { ...trusting(keys), tools: { mine: { plugin: file } } };
  notStarted(t, profile, /tools\.mine\.plugin: .* is not signed/);
  keys.sign(t, file);
  const running = await t.gateway(profile, { env: folders(t) });
  const client = await t.http(running);
  assert.equal(await said(client, 'mine__which'), 'one');
  // An unsigned version is not put into use, neither by a swap nor by a reload.
  const command = (...words) => runProgram(t, words, { env: running.env() });
  const next = version(t, 'two', 'two');
  const refused = command('plugin', 'swap', 'mine', next);
  assert.equal(refused.code, 1, show(refused));
  assert.match(refused.stdout, /is not signed/);
  keys.sign(t, next);
  const swapped = command('plugin', 'swap', 'mine', next);
  assert.equal(swapped.code, 0, show(swapped));
  assert.equal(await said(client, 'mine__which'), 'two');
  const log = () => JSON.parse(command('plugin', 'log', '--json').stdout);
  await until('the swap is logged', () => log().length === 1);
  assert.deepEqual(log().map((event) => [event.event, event.id, event.version, event.signer]), [['swap', 'held', 'two', keys.id]]);
  const back = command('plugin', 'rollback', 'mine');
  assert.equal(back.code, 0, show(back));
  assert.equal(await said(client, 'mine__which'), 'one');
  // A reload that revokes the key reports the plugin and changes nothing.
  writeFileSync(running.config, JSON.stringify({ ...profile, ...trusting(keys, { revoked_keys: [keys.id] }) }));
  const reloaded = command('reload');
  assert.notEqual(reloaded.code, 0, show(reloaded));
  assert.match(reloaded.stdout + reloaded.stderr, /revoked_keys/);
  assert.equal(await said(client, 'mine__which'), 'one');
});

test('a user cannot weaken what the corporate profile requires', (t) => {
  const keys = new Keys(t), mine = new Keys(t, 'mine');
  const file = version(t, 'one');
  mine.sign(t, file);
  const corp = t.path('corp.toml');
  writeFileSync(corp, `[plugin_trust]\nrequire_signatures = true\ntrusted_keys = ["${keys.line}"]\n`, { mode: 0o644 });
  const profile = { plugin_trust: { trusted_keys: [mine.line], require_signatures: false } };
  const done = runProgram(t, ['plugin', 'verify', file, '--config', '{config}'], { profile, env: { BULKHEAD_CORP_PROFILE: corp } });
  assert.equal(done.code, 1, show(done));
  assert.match(done.stderr, new RegExp(`signed with the key ${mine.id}, which is not in plugin_trust`));
});

test('plugins are added, found by their ID, replaced, listed and removed', async (t) => {
  const keys = new Keys(t);
  const store = t.path('data/bulkhead/plugins');
  const file = version(t, 'one');
  const dry = plugin(t, ['add', file, '--dry-run']);
  assert.equal(dry.code, 0, show(dry));
  assert.match(dry.stdout, /would install held one/);
  assert.ok(!existsSync(store));
  const first = plugin(t, ['add', file]);
  assert.equal(first.code, 0, show(first));
  assert.deepEqual(readdirSync(join(store, 'held')).sort(), ['held.plugin.toml', 'held.so']);
  const found = JSON.parse(plugin(t, ['list', '--json']).stdout);
  const held = found.find((one) => one.id === 'held');
  assert.deepEqual([held.trust, held.sha256, held.error], ['unsigned', sha256(file), '']);
  assert.equal(found.find((one) => one.id === 'connector-stdio').trust, 'program');
  // The signature may be elsewhere.
  keys.sign(t, file);
  renameSync(`${file}.minisig`, t.path('elsewhere'));
  const signed = plugin(t, ['add', file, '--sig', t.path('elsewhere')], trusting(keys));
  assert.equal(signed.code, 0, show(signed));
  assert.deepEqual(readdirSync(join(store, 'held')).sort(), ['held.plugin.toml', 'held.so', 'held.so.minisig']);
  const gateway = await t.gateway({ ...trusting(keys), tools: { mine: { plugin: 'held' } } }, { env: folders(t) });
  assert.equal(await said(await t.http(gateway), 'mine__which'), 'one');
  await gateway.stop();
  const used = plugin(t, ['remove', 'held'], { tools: { mine: { plugin: 'held' } } });
  assert.equal(used.code, 1, show(used));
  assert.match(used.stderr, /the profile uses the plugin "held" \(tools\.mine\)/);
  const removed = plugin(t, ['remove', 'held']);
  assert.equal(removed.code, 0, show(removed));
  assert.deepEqual(readdirSync(store), ['.lock']);
  const log = JSON.parse(plugin(t, ['log', '--json']).stdout);
  assert.deepEqual(log.map((event) => [event.event, event.signer]), [['add', ''], ['add', keys.id], ['remove', '']]);
  assert.equal(plugin(t, ['remove', 'held']).code, 1);
});

test('an older version is added only if it is requested', (t) => {
  const newer = version(t, '1.10.0'), older = version(t, '1.9.0');
  assert.equal(plugin(t, ['add', newer]).code, 0);
  const refused = plugin(t, ['add', older]);
  assert.equal(refused.code, 1, show(refused));
  assert.match(refused.stderr, /version 1\.9\.0 of held is older than the installed version 1\.10\.0; --allow-older installs it/);
  const allowed = plugin(t, ['add', older, '--allow-older', '--json']);
  assert.equal(allowed.code, 0, show(allowed));
  assert.equal(JSON.parse(allowed.stdout).replaced_version, '1.10.0');
});

test('a new version that crashes is quarantined until the user lifts it', async (t) => {
  const file = version(t, 'one');
  const gateway = await t.gateway({ tools: { mine: { plugin: file } } }, { env: folders(t) });
  const client = await t.http(gateway);
  assert.equal(await said(client, 'mine__which'), 'one');
  const command = (...words) => runProgram(t, words, { env: gateway.env() });
  const broken = version(t, 'broken', 'crashes-in-init');
  const crashed = command('plugin', 'swap', 'mine', broken);
  assert.equal(crashed.code, 1, show(crashed));
  const again = command('plugin', 'swap', 'mine', broken);
  assert.equal(again.code, 1, show(again));
  assert.match(again.stdout, /is quarantined because it crashed or hung/);
  assert.equal(await said(client, 'mine__which'), 'one');
  const logged = JSON.parse(command('plugin', 'log', '--json').stdout);
  assert.deepEqual(logged.map((event) => [event.event, event.sha256]), [['quarantine', sha256(broken)]]);
  await gateway.stop();
  // The gateway does not start with it, and never without a plugin that the profile requires.
  notStarted(t, { tools: { mine: { plugin: broken } } }, /is quarantined/);
  const lifted = command('plugin', 'verify', '--clear', broken);
  assert.equal(lifted.code, 0, show(lifted));
  assert.match(lifted.stdout, /held broken \(sha256 [0-9a-f]{12}\) is no longer quarantined; the reason was: .*SIGABRT/);
  assert.equal(command('plugin', 'verify', '--clear', broken).code, 1);
  assert.equal(command('plugin', 'verify', broken).code, 0);
});

run();

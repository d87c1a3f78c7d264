// Tests that `bulkhead mcp` lists, adds and removes the servers of a profile without changing
// anything else.
import { execFile, spawn } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, readFileSync, readdirSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { statusOf } from './status.mjs';
import { assert, fakeMcp, program, run, runProgram, show, test, until } from './lib.mjs';

const secret = 'sk-proj-0123456789abcdefghijklmn';

// A private home directory in which the commands run.
class Home {
  constructor(t) {
    this.t = t;
    this.dir = t.path('home');
    mkdirSync(this.dir, { mode: 0o700 });
    this.profile = join(this.dir, '.config/bulkhead/profile.toml');
    this.env = { HOME: this.dir, XDG_CONFIG_HOME: '', XDG_STATE_HOME: '' };
  }
  run(...words) {
    return runProgram(this.t, words, { env: this.env });
  }
  ok(...words) {
    const done = this.run(...words);
    assert.equal(done.code, 0, show(done));
    return done;
  }
  refused(code, what, ...words) {
    const done = this.run(...words);
    assert.equal(done.code, code, show(done));
    assert.match(done.stderr, what);
    return done;
  }
  names(...words) {
    return JSON.parse(this.ok('mcp', 'list', '--json', ...words).stdout).servers.map(({ name }) => name);
  }
  text(file = this.profile) {
    return readFileSync(file, 'utf8');
  }
}

test('a server is added, started once, listed, called and removed', async (t) => {
  const home = new Home(t);
  assert.match(home.ok('mcp', 'list').stdout, /No servers are configured\. To add one: bulkhead mcp add/);
  const added = home.ok('mcp', 'add', 'odd', '--env', 'A=1=2', '--', fakeMcp, '--tool', 'x', '--tool', 'y');
  assert.match(added.stdout, /Added server odd to ~\/\.config\/bulkhead\/profile\.toml, a new file/);
  assert.match(added.stdout, /^odd +stdio +ready +2/m, 'it has been started');
  home.ok('mcp', 'add', 'two', '--no-warm', '--cwd', home.dir, '--', '/bin/sh', '-c', 'echo "$0 \'q\' #\\n"', '[x]');
  home.ok('mcp', 'add', 'web', 'https://example.com/mcp', '--no-warm', '-H', 'X-Team:  a b');
  assert.deepEqual(home.names(), ['odd', 'two', 'web']);
  const shown = JSON.parse(home.ok('profile', 'show', '--json').stdout);
  const value = (path) => shown.find((one) => one.path === path)?.value;
  assert.match(home.text(), /^\[mcpServers\.odd\.env\]\nA = "1=2"$/m);
  const args = [0, 1, 2].map((i) => value(`mcpServers.two.args[${i}]`));
  assert.deepEqual(args, ['-c', 'echo "$0 \'q\' #\\n"', '[x]']);
  assert.equal(value('mcpServers.two.cwd'), home.dir);
  assert.match(home.text(), /^X-Team = "a b"$/m);
  home.ok('mcp', 'remove', 'two');
  home.ok('mcp', 'remove', 'web');
  const called = home.ok('call', 'odd__y');
  assert.match(called.stdout, /fake\/y/);
  assert.equal(statSync(home.profile).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(dirname(home.profile)), ['profile.toml'], 'no draft is left');
  assert.match(home.ok('mcp', 'remove', 'odd').stdout, /Removed server odd/);
  assert.equal(home.text(), 'schema = "bulkhead.profile/1"\n');
});

test('the gateway itself is not added as a server', (t) => {
  const home = new Home(t);
  const skipped = /skipped self: it is this gateway/;
  for (const words of [['http://localhost:8808/mcp'], ['http://[::1]:8808/mcp'], ['--', 'npx', '-y', 'mcp-remote', 'http://0.0.0.0:8808/mcp'],
    ['--', 'bulkhead', 'stdio'], ['--', '/usr/bin/env', 'bulkhead', 'stdio'], ['--', 'bash', '-c', 'exec /opt/bin/bulkhead stdio']]) {
    home.refused(1, skipped, 'mcp', 'add', 'self', '--no-warm', ...words);
  }
  assert.deepEqual(home.names(), []);
  mkdirSync(dirname(home.profile), { recursive: true });
  writeFileSync(home.profile, '[transports.http]\nplugin = "transport-http"\nlisten = "127.0.0.1:18999"\n');
  home.refused(1, skipped, 'mcp', 'add', 'self', '--no-warm', 'http://127.0.0.1:18999/mcp');
  home.refused(1, skipped, 'mcp', 'add', 'self', '--no-warm', 'http://localhost:8808/mcp');
  home.ok('mcp', 'add', 'other', '--no-warm', 'http://127.0.0.1:18998/mcp');
  assert.deepEqual(home.names(), ['other']);
});

test('a server is disabled and enabled; a running gateway applies this at its next reload', async (t) => {
  const table = (name) => `[mcpServers.${name}]\ncommand = "${fakeMcp}"\nargs = ["--tool", "x"]\n`;
  const text = `${table('one')}\n${table('two')}`;
  const gateway = await t.gateway(text);
  const client = await t.http(gateway);
  const bulkhead = (code, ...words) => {
    const done = runProgram(t, words, { env: gateway.env() });
    assert.equal(done.code, code, show(done));
    return done;
  };
  const mcp = (what, name, code = 0) => bulkhead(code, 'mcp', what, name, '--config', gateway.config);
  const names = async () => (await client.toolNames()).filter((name) => name.endsWith('__x')).sort().join();
  await until('both are ready', async () => (await names()) === 'one__x,two__x');
  const done = mcp('disable', 'two');
  assert.match(done.stdout, /^Disabled server two in .*gateway\.toml\.$/m);
  assert.match(done.stderr, /bulkhead reload/);
  assert.equal(readFileSync(gateway.config, 'utf8'), text.replace('[mcpServers.two]\n', '[mcpServers.two]\ndisabled = true\n'));
  assert.match(mcp('disable', 'two').stdout, /two in .* already/);
  const list = JSON.parse(bulkhead(0, 'mcp', 'list', '--json', '--config', gateway.config).stdout).servers;
  assert.deepEqual(list.map(({ name, disabled }) => [name, disabled]), [['one', false], ['two', true]]);
  bulkhead(0, 'reload');
  await until('two has gone', async () => (await names()) === 'one__x');
  assert.match(mcp('enable', 'two').stdout, /^Enabled server two/);
  mcp('disable', 'one');
  bulkhead(0, 'reload');
  await until('two is there instead', async () => (await names()) === 'two__x');
  assert.match(mcp('enable', 'three', 1).stderr, /has no server "three"; configured servers: one, two/);
});

for (const args of [[], ['--single-process']]) {
  test(`a server is restarted in the running gateway, and in-flight calls finish ${args}`, async (t) => {
    const log = t.path('log');
    const server = (name) => `[mcpServers.${name}]\ncommand = "${fakeMcp}"\nargs = ["--log", "${log}-${name}", "--tool", "x", "--tool", "s", "--delay", "s=4000"]\n`;
    const gateway = await t.gateway(`${server('one')}${server('two')}[mcpServers.off]\ncommand = "x"\ndisabled = true\n`, { args });
    const client = await t.http(gateway);
    await until('both are ready', async () => (await client.toolNames()).includes('two__x'));
    const starts = (name) => [...readFileSync(`${log}-${name}`, 'utf8').matchAll(/^! start (\d+)$/gm)].length;
    // runProgram() would block the other tests, whose calls then end before they are seen.
    const restart = (name) => new Promise((done) => {
      execFile(program, ['mcp', 'restart', name], { env: gateway.env() }, (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }));
    });
    const slow = client.tool('one__s');
    await until('the call runs', async () => (await statusOf(gateway)).in_flight === 1);
    const done = await restart('one');
    assert.equal(done.code, 0, show(done));
    assert.match(done.stdout, /changed: one/);
    assert.deepEqual([starts('one'), starts('two')], [2, 1]);
    assert.ok(await slow, 'the call in flight was answered');
    assert.equal(runProgram(t, ['reload'], { env: gateway.env() }).code, 0);
    assert.equal(starts('one'), 2, 'a reload does not restart it again');
    assert.equal((await restart('one')).code, 0);
    assert.equal(starts('one'), 3);
    assert.match((await restart('three')).stdout, /no server "three"/);
    const off = await restart('off');
    assert.deepEqual([off.code, /server off is disabled/.test(off.stdout)], [1, true], show(off));
  });
}

test("logs shows a server's last lines, follows rotated files and escapes control characters", async (t) => {
  const home = new Home(t);
  home.ok('mcp', 'add', 'one', '--no-warm', '--', fakeMcp);
  home.ok('mcp', 'add', 'web', 'https://example.com/mcp', '--no-warm');
  home.refused(1, /is remote \(it has a URL\)/, 'logs', 'web');
  home.refused(2, /no server is named "onn"; did you mean "one"/, 'logs', 'onn');
  home.refused(2, /no server is named "\.\.\/x"/, 'logs', '../x');
  assert.match(home.ok('logs', 'one').stderr, /has not written anything to its standard error/);
  const folder = join(home.dir, '.local/state/bulkhead/log/servers');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'one.log');
  const lines = (from, to) => Array.from({ length: to - from }, (_, i) => `line ${from + i}\n`).join('');
  writeFileSync(`${file}.1`, lines(0, 150));
  writeFileSync(file, lines(150, 200) + '\u001b[31mred\n');
  const shown = home.ok('logs', 'one').stdout.split('\n');
  assert.deepEqual([shown.length, shown[0], shown[98]], [101, 'line 101', 'line 199']);
  assert.doesNotMatch(shown[99], /\u001b/);
  assert.deepEqual(home.ok('logs', 'one', '-n', '2').stdout.split('\n').length, 3);
  const child = spawn(program, ['logs', 'one', '-n', '1', '--follow'], { env: { ...process.env, ...home.env } });
  t.defer(() => child.kill());
  let seen = '';
  child.stdout.on('data', (piece) => (seen += piece));
  await until('the last line', () => /red/.test(seen));
  appendFileSync(file, 'half');
  appendFileSync(file, ' a line\nnext\n');
  await until('whole lines', () => /^half a line\nnext$/m.test(seen));
  renameSync(file, `${file}.1`);
  appendFileSync(`${file}.1`, 'the end\n');
  writeFileSync(file, 'a new file\n');
  await until('the rest of the old file, then the new one', () => /^the end\na new file$/m.test(seen));
  appendFileSync(file, 'fatal: no key'); // without a line ending
  await until('a last line without an end', () => /^fatal: no key$/m.test(seen));
  assert.equal(home.ok('logs', 'one', '-n', '1').stdout, 'a new file\nfatal: no key\n');
});

test('comments, order, file mode and links are kept', async (t) => {
  const home = new Home(t);
  const texts = {
    'mine.toml': '# mine\n[limits]\nsessions = 9 # few\n\n[mcpServers.b]\ncommand = "b"\n\n# about a\n[mcpServers.a]\ncommand = "a"\n',
    'mine.json': '{\n\t// mine\n\t"mcpServers": {\n\t\t"b": { "command": "b" },\n\t\t"a": { "command": "a" }\n\t}\n}\n',
  };
  for (const [name, text] of Object.entries(texts)) {
    const file = join(home.dir, name);
    const link = join(home.dir, `link-${name}`);
    writeFileSync(file, text);
    chmodSync(file, 0o640);
    symlinkSync(file, link);
    home.ok('mcp', 'add', 'new', '--no-warm', '--config', link, '--', 'n', '-y', '--config', 'its own', '--');
    assert.deepEqual(home.names('--config', file).sort(), ['a', 'b', 'new']);
    assert.equal(statSync(file).mode & 0o777, 0o640);
    home.ok('mcp', 'remove', 'new', '--config', link);
    assert.equal(home.text(file), text);
    home.ok('mcp', 'remove', 'b', '--config', link);
    assert.deepEqual(home.names('--config', file), ['a']);
    assert.match(home.text(file), /mine/);
  }
});

test('errors are reported, and nothing is changed', async (t) => {
  const home = new Home(t);
  home.ok('mcp', 'add', 'one', '--no-warm', '--', 'one');
  const before = home.text();
  home.refused(1, /server "one" already exists.*mcp remove one/, 'mcp', 'add', 'one', '--', 'x');
  home.refused(1, /profile\.toml has no server "nope"; configured servers: one/, 'mcp', 'remove', 'nope');
  home.refused(1, /profile\.toml:\d+:\d+: mcpServers\.web\.url: .*user:password[^]*was not changed/, 'mcp', 'add', 'web', 'https://u:p@example.com/');
  home.refused(1, /bad name[^]*was not changed/, 'mcp', 'add', 'bad name', '--', 'x');
  home.refused(2, /specify a command/, 'mcp', 'add', 'x');
  home.refused(2, /has no option "--hedaer"; did you mean "--header"/, 'mcp', 'add', 'x', '--hedaer', 'A: b', 'https://h/');
  home.refused(2, /has no option "-y"; put the server's command after --/, 'mcp', 'add', 'x', 'npx', '-y', 'p');
  home.refused(2, /"npx" is not a URL; put a command after --/, 'mcp', 'add', 'x', 'npx');
  home.refused(2, /a command or a URL, not both/, 'mcp', 'add', 'x', '--url', 'https://h/', '--', 'npx');
  home.refused(2, /KEY=VALUE/, 'mcp', 'add', 'x', '--env', 'novalue', '--', 'npx');
  home.refused(2, /--header requires a URL/, 'mcp', 'add', 'x', '--header', 'A: b', '--', 'npx');
  home.refused(2, /requires a command;/, 'mcp');
  assert.equal(home.text(), before);
  const inline = join(home.dir, 'inline.toml');
  writeFileSync(inline, 'mcpServers = { a = { command = "a" } }\n');
  home.refused(1, /cannot be edited by this command/, 'mcp', 'remove', 'a', '--config', inline);
  const broken = join(home.dir, 'broken.toml');
  writeFileSync(broken, '[limits]\nsesions = 3\n');
  home.refused(1, /sesions[^]*was not changed/, 'mcp', 'add', 'a', '--config', broken, '--', 'a');
  assert.equal(home.text(broken), '[limits]\nsesions = 3\n');
  home.refused(1, /no such file/, 'mcp', 'remove', 'a', '--config', join(home.dir, 'none.toml'));
});

test('a credential in the file is reported and never shown', async (t) => {
  const home = new Home(t);
  const added = home.ok('mcp', 'add', 'one', '--no-warm', '--env', `API_KEY=${secret}`, '--', 'one', '--token', secret);
  assert.match(added.stderr, /looks like a credential.*\$\{env:NAME\}/);
  const other = home.ok('mcp', 'add', 'two', '--no-warm', `https://example.com/mcp?key=${secret}`, '-H', 'Authorization: Bearer ${env:T}');
  assert.match(other.stderr, /looks like a credential/);
  const quiet = home.ok('mcp', 'add', 'three', '--no-warm', '--env', 'API_KEY=${env:T}', '--', 'three');
  assert.doesNotMatch(quiet.stderr, /looks like a credential/);
  assert.ok(home.text().includes(secret));
  const said = [added, other, home.ok('mcp', 'list'), home.ok('mcp', 'list', '--json'), home.run('mcp', 'add', 'one', '--', secret), home.ok('mcp', 'remove', 'one')];
  for (const done of said) assert.ok(!show(done).includes(secret), show(done));
});

test('with concurrent changes, each server is added or its command reports the reason', async (t) => {
  const home = new Home(t);
  const add = (name) => new Promise((resolve) => {
    const child = spawn(program, ['mcp', 'add', name, '--no-warm', '--', name], { env: { ...process.env, ...home.env }, stdio: 'ignore' });
    child.on('exit', (code) => resolve([name, code]));
  });
  const done = await Promise.all(Array.from({ length: 12 }, (_, i) => add(`s${i}`)));
  const names = home.names();
  for (const [name, code] of done) assert.equal(names.includes(name), code === 0, `${name}: ${code}`);
  assert.ok(done.filter(([, code]) => code === 0).length > 1, JSON.stringify(done));
});

test('a running gateway has the new server after a reload', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: { command: fakeMcp, args: ['--tool', 'x'] } } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['a__x']);
  const edit = (...words) => {
    const done = runProgram(t, ['mcp', words[0], '--config', gateway.config, ...words.slice(1)], { env: gateway.env() });
    assert.equal(done.code, 0, show(done));
    assert.match(done.stderr, /a gateway with this profile is running: run `bulkhead reload`/);
    const reloaded = runProgram(t, ['reload'], { env: gateway.env() });
    assert.equal(reloaded.code, 0, show(reloaded));
  };
  edit('add', 'b', '--no-warm', '--', fakeMcp, '--tool', 'y');
  await until('its list', async () => (await client.toolNames()).length === 2);
  assert.deepEqual((await client.toolNames()).sort(), ['a__x', 'b__y']);
  edit('remove', 'a');
  assert.deepEqual(await client.toolNames(), ['b__y']);
});

await run();

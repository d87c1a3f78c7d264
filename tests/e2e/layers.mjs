// Tests the corporate layer with the real program. BULKHEAD_CORP_PROFILE names its file. The tests
// are skipped if /etc/bulkhead contains a corporate profile.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { Skip, assert, fake, run, runProgram, show, test, until } from './lib.mjs';
import { Aggregator } from './aggregator_driver.mjs';
import { v2 } from './capsem_profile.mjs';
import { statusOf } from './status.mjs';

const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};
const quoted = (text) => JSON.stringify(String(text));
const table = (name, def) => `[mcpServers.${name}]\ncommand = ${quoted(def.command)}\nargs = [${def.args.map(quoted).join(', ')}]\n`;
const directive = (operation, path, rest = '') => `[[directives]]\noperation = "${operation}"\npath = '${path}'\n${rest}\n`;
const rule = (name, keys) =>
  `[security.rules.mcp.${name}]\n${Object.entries({ on: 'mcp.request', if: 'true', ...keys })
    .map(([key, value]) => `${key} = ${typeof value === 'string' ? `'''${value}'''` : JSON.stringify(value)}`)
    .join('\n')}\n`;

// Writes the corporate profile of a test. Returns an environment that names it.
function corp(t, text) {
  if (existsSync('/etc/bulkhead/corp.toml')) throw new Skip('this system has a corp profile');
  mkdirSync(t.path('corp'), { recursive: true, mode: 0o755 });
  const file = join(t.path('corp'), 'corp.toml');
  writeFileSync(file, text);
  chmodSync(file, 0o644);
  return { BULKHEAD_CORP_PROFILE: file };
}
async function ask(gateway, method, path, body) {
  const { socket } = await statusOf(gateway);
  return new Promise((done, failed) => {
    const req = request({ socketPath: socket, method, path, headers: body ? { 'content-type': 'application/json' } : {} }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done({ status: res.statusCode, ...JSON.parse(data) }));
    });
    req.on('error', failed);
    req.end(body && JSON.stringify(body));
  });
}
const call = (client, tool, args = {}) =>
  client.tool(tool, args).then((result) => ({ result }), (error) => ({ error }));
// Returns the error output of a start that must fail.
function refusal(t, text, env, args = []) {
  const done = runProgram(t, ['serve', '--config', '{config}', '--listen', '127.0.0.1:0', ...args],
    { profile: text, file: 'gateway.toml', env });
  assert.equal(done.code, 1, show(done));
  return done.stderr;
}
const shown = (t, text, env) => {
  const done = runProgram(t, ['profile', 'show', '--origin', '--json', '--config', '{config}'], { profile: text, file: 'gateway.toml', env });
  assert.equal(done.code, 0, show(done));
  return { values: JSON.parse(done.stdout), notes: done.stderr };
};

both('A27 a corporate server has precedence over others with the same name', async (t, args) => {
  const env = corp(t, `${table('search', fake('--tool', 'corp'))}${directive('lock', 'mcpServers.locked')}${table('locked', fake('--tool', 'fixed'))}`);
  const mine = `${table('search', fake('--tool', 'mine'))}enabled = false\n${table('own', fake('--tool', 'own'))}`;
  const gateway = await t.gateway(mine, { args, env });
  const client = await t.http(gateway);
  assert.deepEqual((await client.toolNames()).sort(), ['locked__fixed', 'own__own', 'search__corp']);
  const { servers } = await ask(gateway, 'GET', '/mcp/connectors');
  const search = servers.find((one) => one.id === 'search');
  assert.deepEqual([search.source, search.editable, search.server.enabled, search.server.args[1]], ['corp', false, true, 'corp']);
  assert.equal(servers.find((one) => one.id === 'own').source, 'profile');
  // A profile that tries to disable a locked server is rejected.
  const said = refusal(t, '[mcpServers.locked]\ncommand = "x"\nenabled = false\n', env, args);
  assert.match(said, /gateway\.toml:1:\d+: mcpServers\.locked: the corporation's profile locks mcpServers\.locked \(.*corp\.toml:\d+\).*\[locked\]/);
});

both('locks apply to file, project, API, command line and reload', async (t, args) => {
  const env = corp(t, directive('lock', 'mcpServers.vault', 'reason = "ask IT"') + directive('forbid', 'mcpServers.shell') +
    directive('lock', 'limits.call_timeout_ms') + table('vault', fake('--tool', 'read')));
  const good = table('own', fake('--tool', 'a'));
  const gateway = await t.gateway(good, { args, env });
  const client = await t.http(gateway);
  assert.deepEqual((await client.toolNames()).sort(), ['own__a', 'vault__read']);
  for (const id of ['vault', 'shell']) {
    const answer = await ask(gateway, 'POST', '/mcp/connectors', { id, ...fake('--tool', 'evil') });
    assert.equal(answer.status, 409, show(answer));
    assert.match(JSON.stringify(answer), id === 'shell' ? /forbids mcpServers\.shell/ : /server_exists/);
  }
  assert.ok(!existsSync(join(gateway.dir, 'config', 'bulkhead', 'connectors.json')));
  assert.equal((await ask(gateway, 'DELETE', '/mcp/connectors/vault')).status, 409);
  for (const [text, said] of [
    [table('shell', fake()), /mcpServers\.shell: the corporation's profile forbids mcpServers\.shell/],
    ['[limits]\ncall_timeout_ms = 5\n', /limits\.call_timeout_ms: the corporation's profile locks limits\.call_timeout_ms/],
  ]) {
    writeFileSync(gateway.config, good + text);
    const answer = await ask(gateway, 'POST', '/reload-config');
    assert.deepEqual([answer.status, answer.success], [500, false], show(answer));
    assert.match(JSON.stringify(answer), said);
    assert.match(refusal(t, good + text, env, args), said);
    assert.ok((await call(client, 'vault__read')).result);
  }
  // A project file is not the user's own file.
  writeFileSync(gateway.config, good);
  writeFileSync(join(gateway.dir, '.mcp.json'), JSON.stringify({ mcpServers: { shell: fake('--tool', 'evil'), fine: fake() } }));
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.equal(answer.status, 200, show(answer));
  assert.deepEqual((await ask(gateway, 'GET', '/mcp/connectors')).servers.map((one) => one.id).sort(), ['fine', 'own', 'vault']);
});

test('the command line is a layer', async (t) => {
  const env = corp(t, directive('lock', 'transports.http.listen') + directive('lock', 'isolation') + directive('lock', 'plugin_dirs'));
  const { stderr } = runProgram(t, ['serve', '--config', '{config}', '--listen', '127.0.0.1:0'], { profile: table('a', fake()), file: 'gateway.toml', env });
  assert.match(stderr, /--listen:2:\d+: transports\.http\.listen: the corporation's profile locks/);
  for (const args of [['--single-process'], ['--plugin-dir', '/tmp']]) {
    const done = runProgram(t, ['stdio', '--config', '{config}', ...args], { profile: table('a', fake()), file: 'gateway.toml', env, input: '' });
    assert.equal(done.code, 1, show(done));
    assert.match(done.stderr, new RegExp(`${args[0]}: the corporation's profile locks`));
  }
});

both('B28 corporate rules come first and cannot be weakened', async (t, args) => {
  const env = corp(t, rule('no-a', { if: "mcp.request.tool_name == 'a'", decision: 'block', priority: -10, reason: 'not here' }));
  const servers = table('local', fake('--tool', 'a', '--tool', 'b'));
  const gateway = await t.gateway(servers + rule('yes', { decision: 'allow', priority: 1 }), { args, env });
  const client = await t.http(gateway);
  assert.match((await call(client, 'local__a')).error.message, /security\.rules\.mcp\.no-a.*not here/);
  assert.ok((await call(client, 'local__b')).result);
  const says = (text) => refusal(t, servers + text, env, args);
  assert.match(says(rule('yes', { decision: 'allow', priority: -20 })), /priorities below 0 are reserved for the corporation/);
  assert.match(says(rule('no-a', { decision: 'allow' })), /the corporation's profile has a rule with this name/);
  for (const policy of ['plugin = "policy-allow"', 'enabled = false', 'with_rules = "policy-allow"', 'rules = false']) {
    const bound = await t.gateway(`${servers}[policies.default]\n${policy}\n`, { args, env });
    assert.match((await call(await t.http(bound), 'local__a')).error.message, /security\.rules\.mcp\.no-a/, policy);
    assert.match(bound.stderr(), /policies\.default is skipped: .*so only that profile can define policies/, policy);
  }
  assert.match(says('[policies.mine]\nplugin = "policy-allow"\n'), /so only that profile can define policies \[locked\]/);
  assert.match(says('[policy]\nplugin = "policy-allow"\n'), /so only that profile can define policies \[locked\]/);
  assert.match(says('[services.other]\nplugin = "/home/u/x.so"\n'), /so only that profile can define the services that policies use \[locked\]/);
  const outside = await t.gateway(`${servers}[services.http]\nplugin = "/home/u/x.so"\n`, { args, env });
  assert.match(outside.stderr(), /services\.http is skipped: .*so only that profile can define the services that policies use/);
  const { stdout } = runProgram(t, ['profile', 'show', '--config', '{config}'], { profile: `${servers}[services.http]\nplugin = "/home/u/x.so"\n`, file: 'gateway.toml', env });
  assert.match(stdout, /services\.http\.plugin += http-client/);
  // A plugin with the same name in another directory cannot replace it either.
  mkdirSync(t.path('plugins'), { recursive: true });
  writeFileSync(join(t.path('plugins'), 'policy-rules.so'), 'no library');
  const other = await t.gateway(`plugin_dirs = [${quoted(t.path('plugins'))}]\n${servers}`, { args, env });
  assert.match((await call(await t.http(other), 'local__a')).error.message, /security\.rules\.mcp\.no-a/);
  // Another plugin directory cannot replace it either: the corporate policy is loaded from the
  // directory of the program.
  mkdirSync(t.path('ours'), { recursive: true });
  for (const folder of ['ours', 'plugins']) writeFileSync(join(t.path(folder), 'policy-acme.so'), 'no library');
  const named = corp(t, `plugin_dirs = [${quoted(t.path('ours'))}]\n[policies.acme]\nplugin = "policy-acme"\n`);
  assert.ok(refusal(t, `plugin_dirs = [${quoted(t.path('plugins'))}]\n${servers}`, named, args).includes(join(t.path('ours'), 'policy-acme.so')));
  // If another layer repeats the default, the corporate value still applies.
  const block = corp(t, '[security]\ndefault = "block"\n');
  assert.match(refusal(t, `${servers}[security]\ndefault = "allow"\n[security.capabilities]\nmcp_tools = "block"\n`, block, args), /the corporation's profile sets "block"/);
  // A lock covers rules in every syntax.
  const locked = corp(t, directive('lock', 'security.rules'));
  assert.match(refusal(t, `${servers}[profiles.rules.all]\nmatch = 'has(mcp.method)'\naction = "allow"\n`, locked, args), /profiles: the corporation's profile locks security\.rules/);
  // A directive that follows a lock is rejected.
  const late = corp(t, directive('lock', 'mcpServers.x') + directive('replace', 'mcpServers.x', 'value = { command = "y" }'));
  assert.match(refusal(t, servers, late, args), /corp\.toml:5:1: directives\[1\]: replace mcpServers\.x conflicts with an earlier directive: the corporation's profile locks mcpServers\.x .*corp\.toml:1/);
});

// Fault: the gateway does not start, or uses the user's value.
both('E05 the corporation\'s policy value overrides the user\'s, and with a lock the user\'s is an error', async (t, args) => {
  const lists = (keys) => `[policies.default]\nplugin = "policy-lists"\n${keys}\n`;
  const ours = lists('tool_permissions = { local__a = "block" }');
  const env = corp(t, ours);
  const servers = table('local', fake('--tool', 'a', '--tool', 'b'));
  const theirs = lists('tool_permissions = { local__a = "allow" }\ndefault_tool_permission = "block"');
  const gateway = await t.gateway(servers + theirs, { args, env });
  const client = await t.http(gateway);
  assert.match((await call(client, 'local__a')).error.message, /tool_permissions\.local__a/);
  assert.ok((await call(client, 'local__b')).result);
  assert.match(gateway.stderr(), /gateway\.toml:\d+: policies\.default is skipped: the corporation's profile has rules, policies or directives for them \(.*corp\.toml:1\), so only that profile can define policies/);
  // The file changes while the gateway is running.
  writeFileSync(gateway.config, `${servers}${theirs}# more\n`);
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.deepEqual([answer.status, answer.applied], [200, 'all'], show(answer));
  assert.match(show(answer.notes), /policies\.default is skipped/);
  const locked = corp(t, ours + directive('lock', 'policies.default.tool_permissions'));
  assert.match(refusal(t, servers + theirs, locked, args), /the corporation's profile locks policies\.default\.tool_permissions/);
});

test('profile show prints the layer of each value and the effect of directives', (t) => {
  const env = corp(t, `[limits]\ngrace_ms = 5\n[mcpServers.search]\nurl = "https://corp.example/mcp"\n` +
    directive('replace', 'limits.call_timeout_ms', 'value = 1000') + directive('lock', 'plugin_dirs', 'reason = "ours only"'));
  const { values, notes } = shown(t, '[limits]\ncall_timeout_ms = 9000\n[naming]\nseparator = ":"\n', env);
  const at = (path) => values.find((one) => one.path === path);
  assert.deepEqual([at('limits.grace_ms').layer, at('limits.grace_ms').line], ['corp', 2]);
  assert.deepEqual([at('limits.call_timeout_ms').layer, at('limits.call_timeout_ms').value], ['corp', '1000']);
  assert.equal(at('mcpServers.search.url').layer, 'corp');
  assert.equal(at('naming.separator').layer, 'file');
  assert.match(at('directives[0]').value, /replace limits\.call_timeout_ms: replaced .*gateway\.toml:2/);
  assert.equal(at('directives[1]').value, 'lock plugin_dirs: locked (ours only)');
  assert.match(notes, /limits\.call_timeout_ms is replaced by the corporation's profile/);
  assert.match(notes, /corp\.toml, set by BULKHEAD_CORP_PROFILE/);
});

test('a corporate profile that is writable by others or invalid stops every command', (t) => {
  const env = corp(t, '[limits]\ngrace_ms = 5\n');
  chmodSync(env.BULKHEAD_CORP_PROFILE, 0o666);
  assert.match(refusal(t, table('a', fake()), env), /the corporation's profile: .*corp\.toml: is writable by users other than its owner/);
  assert.match(refusal(t, table('a', fake()), corp(t, 'limts = 1\n')), /unknown key "limts"/);
  assert.match(refusal(t, table('a', fake()), { BULKHEAD_CORP_PROFILE: t.path('none.toml') }), /none\.toml: no such file/);
});

test('a reload applies a new corporate profile, and keeps the current one if it is invalid', async (t) => {
  const env = corp(t, rule('no', { if: 'false', decision: 'block', priority: -1 }));
  const gateway = await t.gateway(table('local', fake('--tool', 'a')), { env });
  const client = await t.http(gateway);
  assert.ok((await call(client, 'local__a')).result);
  corp(t, rule('no', { decision: 'block', priority: -1 }));
  assert.equal((await ask(gateway, 'POST', '/reload-config')).status, 200);
  await until('the rule holds', async () => (await call(client, 'local__a')).error !== undefined);
  corp(t, 'this is no TOML');
  assert.equal((await ask(gateway, 'POST', '/reload-config')).status, 500);
  assert.match((await call(client, 'local__a')).error.message, /security\.rules\.mcp\.no/);
});

test('servers defined by the aggregator protocol are treated like others', async (t) => {
  const given = ['a', 'shell'].map((name) => ({ name, ...fake('--tool', 'say') }));
  const names = async (text) => {
    const agg = new Aggregator(t, { env: corp(t, text) }).define(given);
    const { servers } = await agg.request('list_servers');
    return [servers.map((one) => one.name).sort(), agg];
  };
  const [some, agg] = await names(directive('forbid', 'mcpServers.shell', 'reason = "no shells"'));
  assert.deepEqual(some, ['a']);
  await until('it says so', () => /"?shell"?.*forbids mcpServers\.shell.*no shells/.test(agg.stderr));
  assert.deepEqual((await names(directive('lock', 'mcpServers')))[0], []);
  assert.deepEqual((await names(''))[0], ['a', 'shell']);
});

// ---- signed profiles ---------------------------------------------------------------------------

const tool = (name, args, options) => {
  const done = spawnSync(name, args, { encoding: 'utf8', ...options });
  if (done.error?.code === 'ENOENT') throw new Skip(`${name} is not installed`);
  assert.equal(done.status, 0, show(done));
  return done.stdout;
};
// A corporate profile that is signed with the real minisign and hashed with the real b3sum.
class Signed {
  constructor(t) {
    this.t = t;
    tool('b3sum', ['--version']);
    this.env = corp(t, '');
    this.folder = t.path('corp');
    this.key = t.path('corp.key');
    tool('minisign', ['-G', '-W', '-f', '-p', join(this.folder, 'corp.pub'), '-s', this.key]);
    this.entries = {};
    this.current = '2026.0201.1';
  }
  file(name) {
    return join(this.folder, name);
  }
  sign(name, ...args) {
    tool('minisign', ['-S', '-s', this.key, '-m', this.file(name), ...args], { input: '' });
    chmodSync(this.file(`${name}.minisig`), 0o644);
  }
  // Publishes a revision. The other options make its catalogue invalid.
  publish(revision, text = '', { status = 'active', args = [], id = 'acme-base', entry = revision, hash } = {}) {
    writeFileSync(this.file('corp.toml'), `id = "${id}"\nrevision = "${revision}"\n${text}`);
    hash ??= `blake3:${tool('b3sum', ['--no-names', this.file('corp.toml')]).trim()}`;
    this.entries[entry] = { status, min_binary: '0.1', urls: [], hash };
    writeFileSync(this.file('catalogue.json'), JSON.stringify({ format: 1, profiles: { 'acme-base': { current_revision: this.current, revisions: this.entries } } }));
    for (const name of ['corp.toml', 'catalogue.json', 'corp.pub']) chmodSync(this.file(name), 0o644);
    this.sign('corp.toml', ...args);
    this.sign('catalogue.json', ...args);
  }
  // Returns the output of a short command with this profile. All commands share a state directory.
  show() {
    const state = this.t.path('state');
    return runProgram(this.t, ['profile', 'show', '--origin', '--config', '{config}'], { profile: '', file: 'gateway.toml', env: { ...this.env, XDG_STATE_HOME: state } });
  }
  says() {
    const done = this.show();
    return done.code === 0 ? done.stdout + done.stderr : `REFUSED ${done.stderr}`;
  }
}
const grace = '[limits]\ngrace_ms = 77\n';

test('B38 a corporate profile signed by minisign is used, with both signature formats', (t) => {
  const signed = new Signed(t);
  signed.publish('2026.0131.2', grace);
  assert.match(signed.says(), /limits\.grace_ms\s+= 77\s+corp /);
  signed.publish('2026.0131.3', grace, { args: ['-l'] });
  assert.match(signed.says(), /limits\.grace_ms\s+= 77\s+corp /);
});

test('B38 a wrong byte, revision, hash or status is rejected with a specific reason', (t) => {
  const signed = new Signed(t);
  const text = () => readFileSync(signed.file('corp.toml'), 'utf8');
  signed.publish('2026.0131.2', grace);
  const good = text();
  writeFileSync(signed.file('corp.toml'), good.replace('77', '78'));
  assert.match(signed.says(), /^REFUSED .*corp\.toml: the signature does not match the file \[signature\]/);
  writeFileSync(signed.file('corp.toml'), good);
  assert.match(signed.says(), /= 77/);
  signed.publish('2026.0131.4', grace, { entry: '2026.0131.5' });
  assert.match(signed.says(), /^REFUSED .*its revision "2026\.0131\.4" of "acme-base" is not in the catalogue.*\[identity\]/);
  signed.publish('2026.0131.4', grace, { id: 'acme-other' });
  assert.match(signed.says(), /^REFUSED .*its id "acme-other".*\[identity\]/);
  signed.publish('2026.0131.4', grace, { hash: `blake3:${'0'.repeat(64)}` });
  assert.match(signed.says(), /^REFUSED .*does not match the catalogue's hash for revision 2026\.0131\.4 \[hash\]/);
  signed.publish('2026.0131.4', grace, { status: 'revoked' });
  assert.match(signed.says(), /^REFUSED .*revision 2026\.0131\.4 has been revoked \[revoked\]/);
  // The revision remains revoked even if a later catalogue does not list it.
  signed.publish('2026.0131.4', grace);
  assert.match(signed.says(), /^REFUSED .*revision 2026\.0131\.4 of "acme-base" was revoked by an earlier catalogue.*\[revoked\]/);
  signed.publish('2026.0131.6', grace, { status: 'deprecated' });
  assert.match(signed.says(), /= 77[^]*DEPRECATED: revision 2026\.0131\.6 of the corporation's profile "acme-base".*current revision is 2026\.0201\.1/);
  // The profile is signed with a different key, or not signed.
  tool('minisign', ['-G', '-W', '-f', '-p', t.path('other.pub'), '-s', signed.key]);
  signed.sign('corp.toml');
  assert.match(signed.says(), /^REFUSED .*signed with a different key \[signature\]/);
  writeFileSync(signed.file('corp.toml.minisig'), 'nothing');
  assert.match(signed.says(), /^REFUSED .*not a minisign signature \[signature\]/);
});

test('older revisions and older catalogues are rejected', (t) => {
  const signed = new Signed(t);
  signed.publish('2026.0131.2', grace);
  signed.publish('2026.0201.1', grace);
  assert.match(signed.says(), /= 77/);
  signed.publish('2026.0131.2', grace);
  assert.match(signed.says(), /^REFUSED .*is 2026\.0131\.2, but 2026\.0201\.1 was seen before.*\[rollback\]/);
  signed.current = '2026.0131.9';
  signed.publish('2026.0201.1', grace);
  assert.match(signed.says(), /^REFUSED .*current revision of "acme-base" is 2026\.0131\.9.*\[rollback\]/);
  signed.current = '2026.0301.1';
  signed.publish('2026.0301.1', 'limts = 1\n');
  assert.match(signed.says(), /^REFUSED .*unknown key "limts"/);
  // The revision itself is rejected and ignored, but its catalogue is applied.
  signed.publish('2026.0201.2', grace);
  assert.match(signed.says(), /= 77/);
  signed.current = '2026.0401.1';
  signed.publish('2026.0401.1', grace, { status: 'revoked' });
  assert.match(signed.says(), /^REFUSED .*\[revoked\]/);
  signed.current = '2026.0301.1';
  signed.publish('2026.0201.2', grace);
  assert.match(signed.says(), /^REFUSED .*current revision of "acme-base" is 2026\.0301\.1, but 2026\.0401\.1 was seen before.*\[rollback\]/);
});

test('B38 a line of corp.pub selects the profile of the catalogue for this machine', (t) => {
  const signed = new Signed(t);
  signed.publish('2026.0131.2', grace);
  const keys = readFileSync(signed.file('corp.pub'), 'utf8');
  writeFileSync(signed.file('corp.pub'), `${keys}id acme-base\n`);
  assert.match(signed.says(), /= 77/);
  writeFileSync(signed.file('corp.pub'), `${keys}id acme-lab\n`);
  assert.match(signed.says(), /^REFUSED .*its id is "acme-base", but this machine accepts "acme-lab" \(corp\.pub\) \[identity\]/);
});

// ---- the capsem format --------------------------------------------------------------------------

both("B35 only the profile's allowed tools are listed", async (t, args) => {
  const tables = `${table('github', fake('--tool', 'search_repositories', '--tool', 'get_file_contents', '--tool', 'delete'))}
[mcpServers.github.capsem]
enabled = true
editable = true
allowed_tools = ["search_repositories", "get_file_contents"]
${table('other', fake('--tool', 'x'))}`;
  for (const text of [tables, v2('acme-coding', '', tables)]) {
    const gateway = await t.gateway(text, { args });
    const client = await t.http(gateway);
    const names = await client.toolNames();
    assert.deepEqual(names.filter((name) => name.startsWith('github')).sort(), ['github__get_file_contents', 'github__search_repositories']);
    assert.ok((await call(client, 'github__search_repositories')).result);
    assert.ok((await call(client, 'github__delete')).error);
    // mcp_tools = "block" applies to tools that are in no list of allowed tools.
    assert.equal((await call(client, 'other__x')).error === undefined, text === tables);
  }
  const { values } = shown(t, v2('acme-coding', '', tables), {});
  assert.equal(values.find((one) => one.path === 'mcpServers.github.allowTools[1]').value, 'get_file_contents');
});

test('B36 an unknown key, command with url, version 1 and a bad id are four errors', (t) => {
  const good = v2('acme-coding', '', '');
  for (const [text, said] of [
    [`${good}\n[vms]\n`, /vms: unknown key "vms"; did you mean "vm"\?.*\[unknown_key\]/],
    [v2('acme-coding', '', '[mcpServers.a]\ncommand = "x"\nurl = "https://h/"\n'), /mcpServers\.a\.url: a server can have a command or a url, not both/],
    [good.replace('version = 2', 'version = 1'), /version: the supported version is 2, not 1/],
    [v2('Bad', '', ''), /id: must have 3 to 64 characters from a-z/],
  ]) {
    const said_ = refusal(t, text, {});
    assert.match(said_, said);
    assert.equal(said_.match(/\[(invalid_schema|unknown_key)\]/g).length, 1, said_);
  }
});

test('B37 a chain of three profiles is merged; a cycle and a ninth profile are rejected', (t) => {
  const folder = t.path('chain');
  mkdirSync(folder, { recursive: true });
  const write = (id, parent, tables = '') => writeFileSync(join(folder, `${id}.toml`), v2(id, parent ? `extends_profile_id = "${parent}"` : '', tables));
  const load = (id) => runProgram(t, ['profile', 'show', '--origin', '--config', join(folder, `${id}.toml`)], {});
  write('one', '', '[mcpServers.a]\ncommand = "first"\npool_safe_tools = ["r"]\n[mcpServers.a.env]\nA = "1"\n[mcpServers.a.capsem]\nallowed_tools = ["r"]\n');
  write('two', 'one', '[mcpServers.a]\ncommand = "second"\n[mcpServers.a.capsem]\nallowed_tools = ["s"]\n');
  write('three', 'two', '[mcpServers.a]\npool_safe_tools = ["s"]\n[mcpServers.b]\ncommand = "b"\n');
  const { code, stdout, stderr } = load('three');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /mcpServers\.a\.command\s+= second\s+file .*two\.toml:\d+/);
  assert.match(stdout, /mcpServers\.a\.env\.A\s+= \*\*\*\s+file .*one\.toml:\d+/);
  assert.match(stdout, /mcpServers\.a\.pool_safe_tools\[0\]\s+= r [^]*mcpServers\.a\.pool_safe_tools\[1\]\s+= s /);
  assert.match(stdout, /mcpServers\.a\.allowTools\[0\]\s+= r [^]*mcpServers\.a\.allowTools\[1\]\s+= s /);
  assert.match(stdout, /mcpServers\.b\.command\s+= b\s+file .*three\.toml:\d+/);
  write('one', 'three');
  assert.match(load('three').stderr, /one\.toml:\d+:\d+: extends_profile_id: the profile extends itself through "three"/);
  for (let i = 1; i <= 9; ++i) write(`chain-${i}`, i > 1 ? `chain-${i - 1}` : '');
  assert.equal(load('chain-8').code, 0);
  assert.match(load('chain-9').stderr, /more than 8 profiles in a chain/);
  write('lost', 'missing');
  assert.match(load('lost').stderr, /the profile "missing" was not found: no missing\.toml/);
});

both('B39 a read-only profile is not changed', async (t, args) => {
  for (const text of [`[editable]\nmcpServers = false\n${table('own', fake('--tool', 'a'))}`,
    v2('acme-coding', '', `[editable]\nmcpServers = false\n${table('own', fake('--tool', 'a'))}`)]) {
    const gateway = await t.gateway(text, { args });
    const before = readFileSync(gateway.config, 'utf8');
    const answer = await ask(gateway, 'POST', '/mcp/connectors', { id: 'extra', ...fake('--tool', 'x') });
    assert.equal(answer.status, 409, show(answer));
    assert.match(JSON.stringify(answer), /server_is_locked: editable\.mcpServers is false \(.*gateway\.toml:\d+\)/);
    assert.equal(readFileSync(gateway.config, 'utf8'), before);
    assert.ok(!existsSync(join(gateway.dir, 'config', 'bulkhead', 'connectors.json')));
    assert.deepEqual((await ask(gateway, 'GET', '/mcp/connectors')).servers.map((one) => one.id), ['own']);
  }
});

both('A28 servers of other programs are added where detection is enabled and permitted', async (t, args) => {
  const home = t.path('home');
  for (const [folder, servers] of [['.claude', { c: fake('--tool', 'x'), both: fake('--tool', 'claude') }], ['.gemini', { g: fake('--tool', 'x'), both: fake('--tool', 'gemini') }]]) {
    mkdirSync(join(home, folder), { recursive: true });
    writeFileSync(join(home, folder, 'settings.json'), JSON.stringify({ theme: 'dark', mcpServers: servers }));
  }
  const env = { HOME: home };
  const own = table('own', fake('--tool', 'a'));
  const sources = async (text) => {
    const gateway = await t.gateway(text, { args, env });
    const { servers } = await ask(gateway, 'GET', '/mcp/connectors');
    return { gateway, found: Object.fromEntries(servers.map((one) => [one.id, one.source])) };
  };
  const all = { both: 'claude', c: 'claude', g: 'gemini', own: 'profile' };
  const { gateway, found } = await sources(`detect_servers = true\n${own}`);
  assert.deepEqual(found, all);
  const names = await (await t.http(gateway)).toolNames();
  assert.deepEqual(names.sort(), ['both__claude', 'c__x', 'g__x', 'own__a']);
  assert.deepEqual((await sources(v2('acme-coding', '', own))).found, all);
  for (const text of [own, `detect_servers = true\n[editable]\nmcpServers = false\n${own}`, v2('acme-coding', '', `[editable]\nmcpServers = false\n${own}`)]) {
    assert.deepEqual((await sources(text)).found, { own: 'profile' });
  }
  // A27: the corporate layer takes precedence over the profile, and the profile over other
  // programs.
  const bound = { ...corp(t, table('c', fake('--tool', 'corp'))), ...env };
  const last = await t.gateway(`detect_servers = true\n${table('g', fake('--tool', 'mine'))}`, { args, env: bound });
  const { servers } = await ask(last, 'GET', '/mcp/connectors');
  assert.deepEqual(Object.fromEntries(servers.map((one) => [one.id, `${one.source} ${one.server.args[1]}`])), { both: 'claude claude', c: 'corp corp', g: 'profile mine' });
});

await run();

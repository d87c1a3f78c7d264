// Runs the commands in the documents in a home directory of its own, as they are written there.
// Placeholders are replaced, and programs that would be downloaded are replaced by fake_mcp.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { block, codeOf } from './documents.mjs';
import { Home } from './home.mjs';
import { Skip, assert, fake, fakeMcp, run, show, test, until } from './lib.mjs';

const server = (name, ...args) => `[mcpServers.${name}]\ncommand = "${fakeMcp}"\nargs = ${JSON.stringify(args)}\n`;
const client = async (t, gateway, name) => t.http(gateway.url, { clientInfo: { name, version: '1' } });

test('README: the servers of clients are shown, and added to a profile', async (t) => {
  const home = new Home(t);
  home.write('.cursor/mcp.json', { mcpServers: { notes: fake('--tool', 'a') } });
  mkdirSync(t.path('source/build'), { recursive: true });
  symlinkSync(home.bin, t.path('source/build/bin'));
  const [, show1, write] = block('README.md', 'make run CONFIG');
  const shown = await home.sh(show1, { cwd: t.path('source') });
  assert.match(shown.stdout, /^Cursor +~\/\.cursor\/mcp\.json +notes /m);
  await home.sh(write, { cwd: t.path('source') });
  const list = await home.json('bulkhead mcp list --json');
  assert.deepEqual(list.servers.map(({ name }) => name), ['notes']);
  const [, path] = block('README.md', 'make install');
  const version = await home.sh(`${path}\nbulkhead --version`, { cwd: t.path('source'), env: { PATH: '/usr/bin:/bin' } });
  assert.match(version.stdout, /^bulkhead \d/);
});

test('README, relay.md: the configurations of clients are valid, and recognized as this gateway', async (t) => {
  const all = [
    [block('README.md', '{ "servers"'), '.config/Code/User/mcp.json'], [block('README.md', '{ "mcpServers": { "bulkhead": { "url"'), '.cursor/mcp.json'],
    [block('README.md', '{ "mcpServers": { "bulkhead": { "httpUrl"'), '.gemini/settings.json'],
    [block('README.md', '{ "mcpServers": { "bulkhead": { "command"'), '.config/Claude/claude_desktop_config.json'],
  ];
  const home = new Home(t);
  for (const [[text], file] of all) home.write(file, text);
  const done = await home.sh('bulkhead import --write servers.toml');
  assert.equal([...done.stdout.matchAll(/^(Claude Desktop|VS Code|Cursor|Gemini CLI) .*\bbulkhead /gm)].length, all.length, show(done));
  assert.match(done.stdout, /^skipped bulkhead: it is this gateway$/m);
  assert.deepEqual((await home.json('bulkhead mcp list --json --config servers.toml')).servers, []);
  // The relay connects to a gateway on another machine, so it is an ordinary server.
  home.write('relay.json', block('docs/relay.md', '{ "mcpServers"')[0]);
  const values = await home.json('bulkhead profile show --json --config relay.json');
  assert.equal(values.find(({ path }) => path === 'mcpServers.host.command').value, 'bulkhead-relay');
});

test('README: one tool is called, and the completion is loaded', async (t) => {
  const home = new Home(t);
  const inline = codeOf('README.md').filter(({ lang }) => lang === '').map(({ text }) => text);
  const call = inline.find((text) => text.startsWith('bulkhead call files'));
  const folder = t.path('project');
  mkdirSync(folder);
  writeFileSync(join(folder, 'README.md'), '# the file\n');
  assert.match((await home.sh(call, { cwd: folder })).stdout, /# the file/);
  const completion = inline.find((text) => text.startsWith('eval '));
  const done = await home.sh(`${completion}; complete -p bulkhead`, { shell: '/bin/bash' });
  assert.match(done.stdout, /^complete .* bulkhead$/m);
});

test('aggregator.md: the tools of a server are listed', async (t) => {
  const home = new Home(t);
  home.write(join(home.bin, 'mcp-files'), `#!/bin/sh\ntest "$*" = /srv && exec '${fakeMcp}' --tool read\n`, 0o755);
  const done = await home.sh(block('docs/aggregator.md', "printf '%s")[0]);
  const answer = done.stdout.trim().split('\n').map((line) => JSON.parse(line)).find(({ id }) => id === 1);
  assert.deepEqual(answer.tools.map((tool) => tool.original_name), ['read'], show(answer));
});

const asks = `[approval]
api = true
[security.rules.mcp.ask]
on = "mcp.request"
if = 'true'
decision = "ask"
`;
// Starts a gateway whose calls require approval. call() starts a call in a session of its own, and
// returns its id and a promise of its result.
async function asking(t) {
  const home = new Home(t);
  home.write(home.profile, `${server('local', '--tool', 'a')}${asks}`);
  const gateway = await home.serve();
  const list = () => home.json('bulkhead approvals --json');
  let n = 0;
  const call = async () => {
    const result = (await client(t, gateway, 'agent')).tool('local__a', { n: ++n }).then(() => 'allowed', () => 'denied');
    const [{ id }] = await until('the call waits', async () => (await list()).pending.length === 1 && (await list()).pending);
    return { id, result };
  };
  return { home, gateway, list, call };
}

test('approval.md: calls are listed, allowed, denied and revoked', async (t) => {
  const { home, list, call } = await asking(t);
  const [show1, watch, ...decisions] = block('docs/approval.md', 'bulkhead approvals');
  const revoke = decisions.pop();
  assert.match((await home.sh(show1)).stdout, /^No calls are waiting/);
  const watching = home.start(watch.replace(/#.*/, '').trim());
  const first = await call();
  await until('the terminal shows the call', () => watching.stdout.includes(first.id.slice(0, 8)));
  await watching.stop();
  const settled = [];
  for (const command of decisions) {
    const { id, result } = settled.length === 0 ? first : await call();
    assert.ok(command.includes(' 3f9c12'), command);
    await home.sh(command.replace('3f9c12', id.slice(0, 6)));
    settled.push([command.replace(/ *#.*/, '').replace(/^bulkhead approvals (\w+) 3f9c12/, '$1'), await result]);
  }
  assert.deepEqual(settled, [['allow', 'allowed'], ['allow --session', 'allowed'], ['allow --minutes 10', 'allowed'], ['allow --tool --minutes 10', 'allowed'],
    ['allow --tool --session', 'allowed'], ['deny', 'denied']]);
  const { granted } = await list();
  assert.deepEqual(granted.length, 4, show(granted));
  await home.sh(revoke.replace('3f9c12', granted[0].id.slice(0, 6)));
  assert.deepEqual((await list()).granted.map(({ id }) => id), granted.slice(1).map(({ id }) => id));
});

test('approval.md, control.md: requests to the service socket', async (t) => {
  const { home, call, list } = await asking(t);
  const { socket } = (await home.json('bulkhead status --json')).gateways[0];
  const reload = block('docs/control.md', 'curl --unix-socket')[0];
  const reloaded = await home.json(`${reload.replace('PATH', `'${socket}'`)} --silent`);
  assert.deepEqual([reloaded.success, reloaded.applied], [true, 'all'], show(reloaded));
  const { id, result } = await call();
  const [, method, path, body] = /^(\w+) (\S+) +(\{.*\})$/.exec(block('docs/approval.md', 'POST /confirm')[0]);
  const status = await new Promise((done, failed) => {
    const sent = request({ socketPath: socket, method, path: path.replace('3f9c...', id) }, (res) => done(res.resume().statusCode));
    sent.on('error', failed);
    sent.end(body);
  });
  assert.deepEqual([status, await result], [200, 'allowed']);
  assert.equal((await list()).granted.length, 1);
});

test('corp.md: a profile and its catalogue are signed', async (t) => {
  if (existsSync('/etc/bulkhead/corp.toml')) throw new Skip('this system has a corp profile');
  const home = new Home(t);
  const folder = t.path('corp');
  mkdirSync(folder, { mode: 0o755 });
  const { text } = codeOf('docs/corp.md').find(({ lang }) => lang === 'json');
  writeFileSync(join(folder, 'corp.toml'), 'id = "acme-base"\nrevision = "2026.0201.1"\n[limits]\ngrace_ms = 77\n', { mode: 0o644 });
  const hash = (await home.sh('b3sum --no-names corp.toml', { cwd: folder })).stdout.trim();
  writeFileSync(join(folder, 'catalogue.json'), text.replace('blake3:...', `blake3:${hash}`), { mode: 0o644 });
  await home.sh('umask 022; minisign -G -W -f -p corp.pub -s corp.key', { cwd: folder });
  await home.sh(`umask 022; ${block('docs/corp.md', 'minisign -S')[0]}`, { cwd: folder });
  const values = await home.json('bulkhead profile show --json', { env: { BULKHEAD_CORP_PROFILE: join(folder, 'corp.toml') } });
  const value = values.find(({ path }) => path === 'limits.grace_ms');
  assert.deepEqual([value.value, value.layer], ['77', 'corp'], show(value));
});

test('profile.md: the hash of a definition is computed', async (t) => {
  const home = new Home(t);
  const repository = t.path('repository');
  mkdirSync(repository);
  const weather = fake('--tool', 'a');
  writeFileSync(join(repository, '.mcp.json'), JSON.stringify({ mcpServers: { weather } }, null, 2));
  const [listed] = (await home.json('bulkhead approve --json', { cwd: repository, code: 1 })).servers;
  const shape = block('docs/profile.md', '{"file":FILE')[0];
  const definition = JSON.stringify({ args: weather.args, command: weather.command });
  const filled = shape.replace('FILE', JSON.stringify(join(realpathSync(repository), '.mcp.json'))).replace('NAME', '"weather"').replace('DEFINITION', definition);
  const hash = createHash('sha256').update(filled).digest('hex');
  assert.deepEqual([listed.name, listed.sha256], ['weather', hash]);
  const printed = (await home.sh(block('docs/profile.md', 'jq -cjS')[0], { cwd: repository })).stdout.split(' ')[0];
  assert.equal(printed, hash);
});

test('profile.md: servers are added', async (t) => {
  const home = new Home(t);
  home.write(join(home.bin, 'uvx'), `#!/bin/sh\ntest "$*" = mcp-server-time && exec '${fakeMcp}' --tool now\n`, 0o755);
  const [time, github] = block('docs/profile.md', 'bulkhead mcp add');
  assert.match((await home.sh(time)).stdout, /^time +stdio +ready +1/m);
  await home.sh(`${github} --no-warm`); // the tests use no server on the Internet
  const { servers } = await home.json('bulkhead mcp list --json');
  assert.deepEqual(servers.map(({ name }) => name), ['time', 'github']);
  const values = await home.json('bulkhead profile show --json', { env: { GITHUB_TOKEN: 'token-0123456789' } });
  const value = (path) => values.find((one) => one.path === path)?.value;
  assert.deepEqual([value('mcpServers.time.command'), value('mcpServers.time.args[0]'), value('mcpServers.github.url')], ['uvx', 'mcp-server-time', 'https://api.githubcopilot.com/mcp/']);
});

test('telemetry.md: the session database is queried and verified', async (t) => {
  const home = new Home(t);
  home.write(home.profile, `${server('github', '--tool', 'get', '--tool', 'delete', '--tool', 'slow', '--delay', 'slow=3000')}
[telemetry.records]
plugin = "telemetry-sqlite"
mode = "full"
[security.rules.mcp.no-delete]
on = "mcp.request"
if = 'mcp.request.tool_name == "delete"'
decision = "block"
`);
  const gateway = await home.serve();
  const agent = await client(t, gateway, 'agent');
  const [denied, timeline, inspect, schema] = block('docs/telemetry.md', 'bulkhead calls --server');
  const follow = home.start(denied);
  await until('the header is printed', () => follow.stdout.endsWith('\n'));
  await agent.tool('github__get', {});
  await assert.rejects(agent.tool('github__delete', {}), /no-delete/);
  await until('the denied call is shown', () => /\bgithub +tools\/call +delete +denied\b/.test(follow.stdout));
  assert.doesNotMatch(follow.stdout, /github +tools\/call +get\b/);
  const [header, row] = follow.stdout.split('\n');
  const places = (line, words) => words.map((word) => line.indexOf(word));
  assert.deepEqual(places(row, ['agent', 'github', 'tools/call', 'delete', 'denied', 'rule']), places(header, ['CLAIMED', 'SERVER', 'METHOD', 'NAME', 'DECISION', 'NOTE']), follow.stdout);
  await follow.stop();
  assert.match((await home.sh(timeline)).stdout, /github\/get/);
  const rows = (await home.sh(inspect)).stdout;
  assert.match(rows, /^github +\W*get +\W*1\b/m);
  assert.match((await home.sh(schema)).stdout, /^CREATE TABLE mcp_calls /m);
  // A call in flight has only a row in call_intents, like a call in flight during a crash.
  const slow = agent.tool('github__slow', {});
  const open = async () => {
    const { columns, rows: found } = await home.json(`${block('docs/telemetry.md', 'bulkhead inspect "SELECT * FROM call_intents')[0]} --json`);
    return found.map((row) => row[columns.indexOf('tool_name')]).join();
  };
  await until('the call in flight has an intent', async () => (await open()) === 'slow');
  await slow;
  await until('it has a row in mcp_calls', async () => (await open()) === '');
  const [verify, elsewhere] = block('docs/telemetry.md', 'bulkhead audit verify');
  await gateway.stop();
  assert.match((await home.sh(verify)).stdout, / chain 1: intact\. \d+ rows in 1 file, 1 signed checkpoint$/m);
  const state = join(home.dir, '.local/state/bulkhead');
  const key = readFileSync(join(state, 'audit/supervisor/public-key'), 'utf8').trim();
  const file = (await home.sh(`ls ${state}/plugins/records/calls-*.db`)).stdout.trim();
  await home.sh(`cp ${file} ${t.path('copy.db')}`);
  const copy = await home.sh(elsewhere.replace('FILE', t.path('copy.db')).replace('HEX', key).replace('NAME', 'records'));
  assert.match(copy.stdout, /copy\.db: intact\. .* 1 signed checkpoint of "records"$/m);
});

test('policy.md: the file of test cases', async (t) => {
  const home = new Home(t);
  const blocks = codeOf('docs/policy.md');
  const rules = blocks.find(({ lang, text }) => lang === 'toml' && text.includes('no-etc'));
  const cases = blocks.find(({ lang, text }) => lang === '' && text.startsWith('{"call"'));
  home.write(home.profile, rules.text);
  home.write('FILE.cases', cases.text);
  const done = await home.sh('bulkhead policy test FILE.cases');
  assert.match(done.stdout, /^2 passed, 0 failed$/m, show(done));
  home.write('CALL.json', JSON.stringify(JSON.parse(cases.text.split('\n')[0]).call));
  const explained = await home.json('bulkhead policy explain CALL.json --json');
  assert.ok(JSON.stringify(explained).includes('no-etc'), show(explained));
});

test('pins.md: the differences of a definition', async (t) => {
  const home = new Home(t);
  const profile = (...extra) => `[pins]\nmode = "watch"\n${server('ssh', '--tool-json', JSON.stringify({ name: 'run', description: 'Runs a command', ...extra[0] }))}`;
  home.write(home.profile, profile({ inputSchema: { type: 'object', properties: { host: { type: 'string' } } }, annotations: { readOnlyHint: true } }));
  await home.serve();
  await until('the definition is approved', async () => (await home.json('bulkhead pins --json --all')).pins.length === 1);
  home.write(home.profile, profile({ inputSchema: { type: 'object', properties: { host: { type: 'string' }, ssh_key: { type: 'string' } } }, annotations: { readOnlyHint: false } }));
  await home.sh('bulkhead reload');
  await until('the change is seen', async () => (await home.json('bulkhead pins --json')).pins.some(({ approved }) => !approved));
  const { text } = codeOf('docs/pins.md').find(({ text: one }) => one.startsWith('"ssh" "run": changed'));
  const shown = (await home.sh('bulkhead pins show ssh run', { code: null })).stdout;
  const plain = (lines) => lines.trimEnd().replace(/\b[0-9a-f]{32}$/gm, 'HASH').replace(/\b[0-9a-f]{4}\.\.\.$/gm, 'HASH');
  assert.equal(plain(shown), plain(text));
});

await run();

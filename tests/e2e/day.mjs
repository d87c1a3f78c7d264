// A person's day with Bulkhead, as the commands that the person types: servers of six clients are
// imported, two clients use them, a rule refuses one call and asks about another, the refused call is
// found in the records, and servers are added and disabled.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Home } from './home.mjs';
import { assert, descendants, fake, run, show, test, until } from './lib.mjs';

const secrets = { GITHUB_TOKEN: 'ghp_0123456789abcdefghijklmnopqrstuvwxyz', SEARCH_TOKEN: 'search-0123456789', TICKETS_KEY: 'tickets-0123456789' };
const password = 'hunter2-0123456789';
const rules = `
[approval]
api = true

[security.rules.mcp.ask-mail]
on = "mcp.request"
if = 'mcp.request.server_name == "mail"'
decision = "ask"

[security.rules.mcp.no-delete]
on = "mcp.request"
if = 'mcp.request.tool_name == "delete"'
decision = "block"
reason = "notes are kept"
`;

// Returns the rows of the table whose header begins with this word. Numbers are aligned to the right,
// so that a cell may also contain the beginning of the next one.
function table(text, first) {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.startsWith(first));
  assert.ok(start >= 0, `${first}: ${text}`);
  const at = [...lines[start].matchAll(/\S+(?: \S+)*/g)].map((found) => [found[0], found.index]);
  const rows = lines.slice(start + 1);
  const end = rows.findIndex((line) => !line.trim() || !/ {2}/.test(line));
  return rows.slice(0, end < 0 ? rows.length : end).map((line) => Object.fromEntries(at.map(([name, column], i) => [name, line.slice(column, at[i + 1]?.[1]).trim()])));
}

// Writes the configurations of six clients with eight different servers.
function clients(home, work, web) {
  const server = (tools, more) => ({ ...fake(...tools.flatMap((name) => ['--tool', name])), cwd: work, ...more });
  const time = server(['now']);
  const db = server(['query']);
  home.write('.config/Claude/claude_desktop_config.json', { mcpServers: { notes: server(['read', 'delete']), time } });
  home.write('.cursor/mcp.json', { mcpServers: { time, github: server(['issues'], { env: { GITHUB_TOKEN: secrets.GITHUB_TOKEN } }) } });
  home.write('.config/Code/User/mcp.json', {
    inputs: [{ id: 'key', type: 'promptString', password: true, description: 'Key' }],
    servers: { tickets: { type: 'stdio', ...server(['close']), env: { TICKETS_KEY: '${input:key}' } } },
  });
  home.write('.gemini/settings.json', { mcpServers: { search: server(['find'], { env: { SEARCH_TOKEN: '$SEARCH_TOKEN' } }), web: { httpUrl: web } } });
  home.write('.codex/config.toml', `[mcp_servers.db]\ncommand = ${JSON.stringify(db.command)}\nargs = ${JSON.stringify(db.args)}\ncwd = ${JSON.stringify(work)}\n`);
  home.write('.codeium/windsurf/mcp_config.json', { mcpServers: { mail: server(['send']), web: { serverUrl: web } } });
}

test("a person's day", async (t) => {
  const home = new Home(t);
  const work = t.path('work');
  mkdirSync(work);
  clients(home, work, (await t.fakeHttp({ tools: ['fetch'] })).url);
  const outputs = [];
  const sh = async (command, options) => {
    const done = await home.sh(command, options);
    outputs.push(done.stdout, done.stderr);
    return done;
  };
  const json = async (command) => JSON.parse((await sh(command)).stdout);

  // The servers of all clients are shown, then added to the profile. Their variables are listed.
  const all = ['notes', 'time', 'tickets', 'github', 'search', 'web', 'db', 'mail'];
  const shown = (await sh('bulkhead import')).stdout;
  const rows = table(shown, 'CLIENT');
  assert.deepEqual([...new Set(rows.map((row) => row.CLIENT))].sort(), ['Claude Desktop', 'Codex', 'Cursor', 'Gemini CLI', 'VS Code', 'Windsurf']);
  assert.deepEqual([...new Set(rows.map((row) => row.SERVER))].sort(), [...all].sort());
  const next = /^To use them: +(.*)$/m.exec(shown)[1];
  const variables = (text) => [...text.matchAll(/^ {2}(\w+) from (\S+)$/gm)].map(([, name, file]) => [name, file]).sort();
  const listed = [['GITHUB_TOKEN', '~/.cursor/mcp.json'], ['SEARCH_TOKEN', '~/.gemini/settings.json'], ['TICKETS_KEY', '~/.config/Code/User/mcp.json']];
  assert.deepEqual(variables(shown), listed);
  const written = (await sh(next)).stdout;
  assert.match(written, /^Written: ~\/\.config\/bulkhead\/profile\.toml$/m);
  assert.deepEqual(/^Added: (.*)$/m.exec(written)[1].split(', ').sort(), [...all].sort());
  assert.deepEqual(variables(written), listed);
  assert.deepEqual(table(written.slice(written.indexOf('run twice')), 'CLIENT').map((row) => [row.CLIENT, row.SERVERS.split(', ').sort().join()]), [
    ['Claude Desktop', 'notes,time'], ['VS Code', 'tickets'], ['Cursor', 'github,time'], ['Gemini CLI', 'search,web'], ['Codex', 'db'], ['Windsurf', 'mail,web'],
  ]);
  const warmed = Object.fromEntries(table(written, 'SERVER').map((row) => [row.SERVER, row.STATE]));
  assert.deepEqual(warmed, Object.fromEntries(all.map((name) => [name, ['tickets', 'github', 'search'].includes(name) ? 'disabled' : 'ready'])));
  assert.ok(!readFileSync(home.profile, 'utf8').includes(secrets.GITHUB_TOKEN), 'the credential was not copied');

  // `calls` prints the lines that record calls, ready to be pasted into the profile.
  const none = await sh('bulkhead calls', { code: null });
  const paste = /^ *(\[telemetry\.records\]\n *plugin = .*)$/m.exec(none.stdout + none.stderr)[1];
  await sh(`cat >>~/.config/bulkhead/profile.toml <<'END'\n${paste}\nrejected_arguments = true\nflush_ms = 20\nEND`);

  // With the variables, all servers run. A client that spawns `bulkhead stdio` uses the same servers.
  Object.assign(home.env, secrets);
  const gateway = await home.serve();
  const servers = async () => Object.fromEntries((await json('bulkhead status --json')).gateways[0].servers.map(({ name, state }) => [name, state]));
  await until('all servers are ready', async () => Object.values(await servers()).every((state) => state === 'ready'));
  assert.deepEqual(Object.keys(await servers()).sort(), [...all].sort());
  const agent = await t.spawn('/bin/sh', ['-c', 'exec bulkhead stdio'], { env: home.env, cwd: home.dir, clientInfo: { name: 'Claude', version: '1' } });
  const tools = async () => (await agent.toolNames()).sort();
  const offered = ['db__query', 'github__issues', 'mail__send', 'notes__delete', 'notes__read', 'search__find', 'tickets__close', 'time__now', 'web__fetch'];
  await until('all tools are listed', async () => (await tools()).length === offered.length);
  assert.deepEqual(await tools(), offered);
  assert.deepEqual(descendants(agent.child.pid), [], 'the client has started no servers');
  const [seen] = (await json('bulkhead status --json')).gateways[0].clients.filter(({ claimed_name: name }) => name === 'Claude');
  assert.deepEqual([seen.transport, seen.sessions], ['stdio', 1]);

  // Rules are added to the profile. `policy check` names the command that applies them.
  await sh(`cat >>~/.config/bulkhead/profile.toml <<'END'${rules}END`);
  const checked = (await sh('bulkhead policy check')).stdout;
  assert.match(checked, new RegExp(`\\(pid ${gateway.child.pid}\\).*DIFFERENT`));
  const reload = /Run `(bulkhead reload)`/.exec(checked)[1];
  const reloaded = (await sh(reload)).stdout;
  assert.match(reloaded, new RegExp(`^gateway with pid ${gateway.child.pid}: reloaded\n`));
  assert.match(reloaded, /^ {2}policy: 2 rules added, in force \(now 2 rules\)$/m);

  // One call is refused. Another waits for approval; the user guesses the command, and follows the
  // hint of its error.
  await assert.rejects(agent.tool('notes__delete', { path: 'plan.md', password }), /no-delete\): notes are kept/);
  const sent = agent.tool('mail__send', { to: 'boss@example.com', password });
  const waiting = async () => (await json('bulkhead approvals --json')).pending;
  const [question] = await until('the call waits', async () => (await waiting()).length === 1 && (await waiting()));
  assert.deepEqual([question.server, question.name, question.claimed_name], ['mail', 'send', 'Claude'], show(question));
  const guess = await sh(`bulkhead approve ${question.id.slice(0, 6)}`, { code: 1 });
  const hint = /use `(bulkhead approvals allow \w+)`/.exec(guess.stderr)[1];
  assert.match((await sh(hint)).stdout, /^allowed: mail send$/m);
  assert.deepEqual((await sent).echo, { to: 'boss@example.com', password });
  assert.deepEqual(await waiting(), []);

  // The refused call is found, then everything else in its session. Credentials are masked.
  const records = async (sql) => (await json(`bulkhead inspect ${JSON.stringify(sql)} --json`)).rows;
  await until('both calls are recorded', async () => (await records("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'"))[0][0] === 2);
  const [denied, ...others] = table((await sh('bulkhead calls --denied --args')).stdout, 'TIME');
  assert.deepEqual([denied.CLAIMED, denied.SERVER, denied.NAME, denied.DECISION.split(' ')[0], others], ['Claude', 'notes', 'delete', 'denied', []], show(denied));
  assert.deepEqual(JSON.parse(denied.ARGUMENTS), { path: 'plan.md', password: '***' });
  const session = table((await sh(`bulkhead calls --session ${denied.SESSION} --args`)).stdout, 'TIME');
  assert.deepEqual(session.map((row) => [row.SERVER, row.NAME, row.DECISION.split(' ')[0], JSON.parse(row.ARGUMENTS).password]).sort(), [['mail', 'send', 'allowed', '***'], ['notes', 'delete', 'denied', '***']]);
  const events = await json('bulkhead timeline --json --layers mcp,security');
  const rejected = events.filter(({ status }) => /denied|block/.test(status));
  assert.ok(rejected.length >= 2 && rejected.every((event) => JSON.stringify(event).includes('notes')), show(rejected));
  const [[rule, reason]] = await records("SELECT policy_rule, policy_reason FROM mcp_calls WHERE decision = 'denied'");
  assert.deepEqual([rule, reason], ['security.rules.mcp.no-delete', 'notes are kept']);
  assert.deepEqual((await records('SELECT status, surface FROM approvals ORDER BY id')).map(([status]) => status), ['pending', 'approved']);
  assert.match((await sh('bulkhead policy replay --since 1d')).stdout, /^2 recorded calls, 0 would be decided differently$/m);

  // A server is added and another one disabled. The messages name the command that applies this.
  const { command } = fake();
  const added = await sh(`bulkhead mcp add clock --cwd '${work}' -- '${command}' --tool tick --stderr 'the clock runs'`);
  assert.deepEqual(table(added.stdout, 'SERVER').map((row) => [row.SERVER, row.STATE, row.TOOLS]), [['clock', 'ready', '1']]);
  assert.match((await sh('bulkhead mcp disable time')).stderr, /run `bulkhead reload` to apply/);
  const changes = (await sh('bulkhead reload')).stdout;
  assert.deepEqual([/^ {2}added: (.*)$/m.exec(changes)?.[1], /^ {2}changed: (.*)$/m.exec(changes)?.[1]], ['clock', 'time'], changes);
  await until('the client sees both changes', async () => (await tools()).includes('clock__tick') && !(await tools()).includes('time__now'));
  assert.match((await sh("bulkhead call clock__tick '{}'")).stdout, /fake\/tick/);
  assert.match((await sh("bulkhead call clock_tick '{}'", { code: 1 })).stderr, /did you mean "clock__tick"\?/);
  assert.match((await sh('bulkhead logs clock')).stdout, /^the clock runs$/m);
  assert.match((await sh('bulkhead logs clok', { code: 2 })).stderr, /no server is named "clok".*\bclock\b/);
  const states = Object.fromEntries(table((await sh('bulkhead mcp list')).stdout, 'SERVER').map((row) => [row.SERVER, row.STATE]));
  assert.deepEqual(states, { ...Object.fromEntries(all.map((name) => [name, name === 'time' ? 'disabled' : 'enabled'])), clock: 'enabled' });

  // In the evening, everything is in order.
  assert.deepEqual(await servers(), { ...Object.fromEntries(all.map((name) => [name, name === 'time' ? 'disabled' : 'ready'])), clock: 'ready' });
  const status = (await sh('bulkhead status')).stdout;
  assert.match(status, /^ {2}config ~\/\.config\/bulkhead\/profile\.toml, log ~\/\.local\/state\/bulkhead\/log\/bulkhead\.log$/m);
  assert.deepEqual(status.split('\n').filter((line) => line.length > 120), [], 'no line is wider than the terminal');
  // What the kernel lacks depends on the system.
  const report = await json('bulkhead doctor --json');
  assert.deepEqual(report.filter(({ result, text }) => result !== 'ok' && !text.includes('kernel')), []);
  assert.deepEqual(report.map(({ text }) => /^server (\S+): 1?\d tools?/.exec(text)?.[1]).filter(Boolean).sort(), [...all, 'clock'].filter((name) => name !== 'time').sort());
  await agent.close();
  await gateway.stop();
  assert.match((await sh('bulkhead audit verify')).stdout, / chain 1: intact\. \d+ rows in 1 file, 1 signed checkpoint$/m);
  for (const secret of [...Object.values(secrets), password]) {
    assert.ok(!outputs.some((text) => text.includes(secret)), `the output of a command contains ${secret}`);
  }
}, { timeout: 180_000 });

test('import does not offer to add this gateway to itself', async (t) => {
  const home = new Home(t);
  home.write('.cursor/mcp.json', { mcpServers: { bulkhead: { url: 'http://127.0.0.1:8808/mcp' } } });
  const only = (await home.sh('bulkhead import')).stdout;
  assert.match(only, /^skipped bulkhead: it is this gateway$/m);
  assert.doesNotMatch(only, /import --write/);
  home.write('.gemini/settings.json', { mcpServers: { web: { httpUrl: 'http://127.0.0.1:9/mcp' } } });
  assert.match((await home.sh('bulkhead import')).stdout, /^To use them: +bulkhead import --write ~\/\.config\/bulkhead\/profile\.toml$/m);
});

await run();

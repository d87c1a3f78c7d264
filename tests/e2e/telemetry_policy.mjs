// Tests that decisions of policies and users are stored in the session database, and that they can
// be replayed with the current rules.
import { createServer } from 'node:http';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { assert, fake, run, show, test, until } from './lib.mjs';
import { Records } from './records.mjs';

const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};
const quoted = (text) => JSON.stringify(String(text));
const rule = (name, keys) =>
  `[security.rules.mcp.${name}]\n${Object.entries({ on: 'mcp.request', if: 'true', ...keys })
    .map(([key, value]) => `${key} = ${typeof value === 'string' ? `'''${value}'''` : JSON.stringify(value)}`)
    .join('\n')}\n`;
const tool = (name) => `mcp.request.tool_name == '${name}'`;
const secretResult = { content: [{ type: 'text', text: 'the password is hunter2' }] };

function profile(servers, rest) {
  const tables = Object.entries(servers).map(
    ([name, def]) => `[mcpServers.${name}]\ncommand = ${quoted(def.command)}\nargs = [${def.args.map(quoted).join(', ')}]\n`);
  return `${tables.join('\n')}\n[telemetry.records]\nplugin = "telemetry-sqlite"\nflush_ms = 20\n${rest}\n`;
}
async function started(t, args, rest, options = []) {
  const log = t.path('log');
  const local = fake('--tool', 'a', '--tool', 'b', '--tool', 'c', ...options, '--log', log);
  const servers = { local };
  const gateway = await t.gateway(profile(servers, rest), { args });
  return { gateway, servers, log, records: new Records(gateway), client: await t.http(gateway) };
}
const call = (client, name, args = {}, more = {}) =>
  client.tool(name, args, more).then((result) => ({ result }), (error) => ({ error }));
const ran = (log) => (existsSync(log) ? readFileSync(log, 'utf8') : '').split('\n').filter((line) => line.startsWith('<') && line.includes('"tools/call"'));
const isCall = "FROM mcp_calls WHERE method = 'tools/call'";
// Returns the rows of calls when there are n rows.
async function rows(records, n, columns) {
  await records.until(`SELECT count(*) ${isCall}`, (count) => count >= n);
  return records.rows(`SELECT ${columns} ${isCall} ORDER BY id`);
}

both('B20, B21, B22: a row contains the decision', async (t, args) => {
  const { client, records, log } = await started(t, args,
    rule('yes', { if: tool('a'), decision: 'allow' }) +
    rule('look', { if: tool('b'), decision: 'ask', reason: 'have a look' }) +
    rule('no', { if: tool('c'), decision: 'block', reason: 'not today' }));
  assert.ok((await call(client, 'local__a', { n: 1 })).result);
  assert.equal((await call(client, 'local__b', { secret: 'canary-b' })).error.code, -32600);
  assert.equal((await call(client, 'local__c', { secret: 'canary-c' })).error.code, -32600);
  assert.equal(ran(log).length, 1);
  const found = await rows(records, 3, 'decision, policy_mode, policy_action, policy_rule, policy_reason, request_preview');
  assert.deepEqual(found[0].slice(0, 4), ['allowed', 'enforce', 'allow', 'security.rules.mcp.yes']);
  assert.deepEqual(found[1].slice(0, 5), ['denied', 'enforce', 'ask', 'security.rules.mcp.look', 'have a look']);
  assert.deepEqual(found[2].slice(0, 5), ['denied', 'enforce', 'block', 'security.rules.mcp.no', 'not today']);
  for (const row of found.slice(1)) assert.match(row[5], /"arguments":\{"redacted_by_policy":true\}/);
  assert.equal(JSON.stringify(await records.rows('SELECT * FROM mcp_calls')).includes('canary'), false);
  assert.deepEqual(await records.rows('SELECT final_action, rule_id FROM security_events ORDER BY id'), [
    ['allow', 'security.rules.mcp.yes'], ['ask', 'security.rules.mcp.look'], ['block', 'security.rules.mcp.no']]);
});

both('B23, B24: content that a rule removes from arguments or results is not recorded', async (t, args) => {
  const { client, records, gateway } = await started(t, args,
    rule('mask', { if: tool('a'), decision: 'rewrite', rewrite_target: 'arguments =~ "canary-[0-9]+"', rewrite_value: '***' }) +
    rule('clean', { on: 'mcp.response', if: tool('b'), decision: 'rewrite', rewrite_target: 'response.text =~ "hunter[0-9]"', rewrite_value: '***' }) +
    rule('keep', { on: 'mcp.response', if: tool('c'), decision: 'block' }),
    ['--result', `b=${JSON.stringify(secretResult)}`, '--result', `c=${JSON.stringify(secretResult)}`]);
  assert.deepEqual((await call(client, 'local__a', { note: 'canary-1' })).result.echo, { note: '***' });
  assert.equal((await call(client, 'local__b')).result.content[0].text, 'the password is ***');
  assert.equal((await call(client, 'local__c')).error.code, -32600);
  const found = await rows(records, 3, 'policy_action, decision, request_preview, response_preview');
  assert.deepEqual(found.map((row) => row.slice(0, 2)), [['rewrite', 'allowed'], ['rewrite', 'allowed'], ['block', 'denied']]);
  assert.equal(found[0][2], '{"name":"local__a","arguments":{"note":"***"}}');
  assert.match(found[1][3], /the password is \*\*\*/);
  await gateway.stop();
  for (const file of records.files()) {
    const bytes = readFileSync(file);
    assert.ok(!bytes.includes('canary-1') && !bytes.includes('hunter2'), file);
  }
});

both('B27 the row names a rule that cannot be evaluated', async (t, args) => {
  const { client, records } = await started(t, args, rule('wrong', { if: 'mcp.request.arguments.n > 3', decision: 'allow' }));
  assert.ok((await call(client, 'local__a', { n: 'text' })).error);
  const [[decision, named, reason]] = await rows(records, 1, 'decision, policy_rule, policy_reason');
  assert.equal(decision, 'denied');
  assert.equal(named, 'security.mcp.evaluation_error');
  assert.match(reason, /wrong/);
});

both('E01 to E04: decisions of policy-lists are recorded', async (t, args) => {
  const other = fake('--tool', 'a');
  const { client, records } = await started(t, args,
    `[mcpServers.old]\ncommand = ${quoted(other.command)}\nargs = [${other.args.map(quoted).join(', ')}]\n` +
    '[policies.default]\nplugin = "policy-lists"\nblocked_servers = ["old"]\ndefault_tool_permission = "block"\n' +
    'tool_permissions = { local__a = "allow", local__b = "warn", old__a = "allow" }\n');
  assert.ok((await call(client, 'local__a')).result);
  assert.ok((await call(client, 'local__b')).result, 'a warning is no refusal');
  assert.equal((await call(client, 'local__c')).error.code, -32600);
  assert.equal((await call(client, 'old__a')).error.code, -32600);
  const found = await rows(records, 4, 'server_name, tool_name, decision, flags & 1');
  assert.deepEqual(found, [
    ['local', 'a', 'allowed', 0], ['local', 'b', 'allowed', 1], ['local', 'c', 'denied', 0], ['old', 'a', 'denied', 0]]);
});

both('an approval request is recorded with its call', async (t, args) => {
  const { client, records, gateway } = await started(t, args,
    `[approval]\napi = true\n${rule('look', { if: tool('a'), decision: 'ask', reason: 'have a look' })}`);
  const answered = call(client, 'local__a', { n: 1 });
  const id = await until('it waits', async () => {
    const list = JSON.parse((await records.command('approvals', '--json')).stdout);
    return list.pending?.[0]?.id;
  });
  await records.until("SELECT count(*) FROM approvals WHERE status = 'pending'", (n) => n === 1);
  await records.command('approvals', 'allow', id);
  assert.ok((await answered).result);
  await records.until("SELECT count(*) FROM approvals WHERE status = 'approved'", (n) => n === 1);
  const found = await records.rows('SELECT approval_id, status, server_name, tool_name, rule_id, surface, scope, trace_id FROM approvals ORDER BY id');
  assert.deepEqual(found.map((row) => row.slice(0, 5)), ['pending', 'approved'].map((status) => [id, status, 'local', 'a', 'security.rules.mcp.look']));
  assert.deepEqual(found[1].slice(5, 7), ['terminal', 'once']);
  const [[decision, action, named, trace]] = await rows(records, 1, 'decision, policy_action, policy_rule, trace_id');
  assert.deepEqual([decision, action, named], ['allowed', 'ask', 'security.rules.mcp.look']);
  assert.equal(trace, found[0][7]);
  assert.ok(gateway.pid > 0);
});

// Parses a table that the program prints. Returns an object per line, keyed by header. Each cell
// begins below its header.
function table(stdout, headers) {
  const [header, ...lines] = stdout.trimEnd().split('\n');
  const at = headers.map((name) => header.indexOf(name));
  assert.ok(at.every((start) => start >= 0), stdout);
  return lines.map((line) => Object.fromEntries(headers.map((name, i) => [name, line.slice(at[i], at[i + 1]).trim()])));
}

both('all commands show the names that clients claim, as printable text', async (t, args) => {
  const { client, records, gateway } = await started(t, args,
    `[approval]\napi = true\n${rule('look', { if: tool('a'), decision: 'ask' })}`);
  const claude = await t.http(gateway, { clientInfo: { name: 'Claude Code', version: '1' } });
  const hostile = await t.http(gateway, { clientInfo: { name: `\x1b[2J\u202ex\nRule: none\ud800${'y'.repeat(10_000)}`, version: '1' } });
  // A message that is not valid UTF-8 is rejected.
  const wrong = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"X","version":"1"}}}');
  wrong[wrong.indexOf('"X"') + 1] = 0xff;
  const answer = await fetch(gateway.url, { method: 'POST', body: wrong, headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' } });
  assert.equal((await answer.json()).error.code, -32700);

  const calls = [call(claude, 'local__a', { n: 1 }), call(hostile, 'local__a', { n: 2 })];
  const pending = await until('both wait', async () => {
    const list = JSON.parse((await records.command('approvals', '--json')).stdout).pending;
    return list.length === 2 && list;
  });
  assert.equal(pending[0].claimed_name, 'Claude Code');
  assert.match(pending[1].claimed_name, /^\\u001b\[2J\\u202ex\\u000aRule: none\ufffdy{90,}$/);
  assert.ok(pending[1].claimed_name.length < 200, pending[1].claimed_name);
  const listed = (await records.command('approvals')).stdout;
  assert.match(listed, /^ID +SERVER +NAME +RULE +CLIENT +CLAIMED +LEFT +ARGUMENTS$/m);
  assert.match(listed, /^[0-9a-f]{8} +local +a .* http +Claude Code +\d+ s +\{"n":1\}$/m);
  assert.match(listed, /^[0-9a-f]{8} +local +a .* http +\\u001b\[2J\\u202ex\\u000a\S[^…]{0,20}… +\d+ s +\{"n":2\}$/m);

  const status = JSON.parse((await records.execute('status', '--json')).stdout).gateways[0];
  assert.deepEqual(
    status.clients.map((one) => [one.claimed_name.slice(0, 11), one.transport, one.sessions, one.calls]).sort(),
    [['\x1b[2J\u202ex\nRule', 'http', 1, 1], ['Claude Code', 'http', 1, 1], ['bulkhead-te', 'http', 1, 0]]);
  const { stdout } = await records.execute('status');
  assert.match(stdout, /^ +CLIENT +CLAIMED +PROTOCOL +SESSIONS +CALLS$/m);
  assert.match(stdout, /^ +http +Claude Code +2025-11-25 +1 +1$/m);
  assert.match(stdout, /^ +http +\?\[2J\?x\?Rule: none.*… +2025-11-25 +1 +1$/m);
  assert.doesNotMatch(stdout, /[\x00-\x09\x0b-\x1f\u202e]/);

  for (const { id } of pending) await records.command('approvals', 'allow', id);
  for (const done of calls) assert.ok((await done).result);
  await rows(records, 2, 'id');
  const named = [['Claude Code'], [`\x1b[2J\u202ex\nRule: none\ufffd${'y'.repeat(106)}`]];
  assert.deepEqual(await records.rows(`SELECT claimed_name ${isCall} ORDER BY request_preview`), named);
  await records.until("SELECT count(*) FROM approvals WHERE status = 'approved'", (n) => n === 2);
  assert.deepEqual(await records.rows("SELECT claimed_name FROM approvals WHERE status = 'pending' ORDER BY id"), named);
  const shown = table((await records.command('calls')).stdout, ['TIME', 'CLIENT', 'CLAIMED', 'SERVER', 'METHOD']);
  assert.deepEqual(shown.map((one) => one.CLAIMED.slice(0, 11)).sort(), ['?[2J?x?Rule', 'Claude Code']);
  const lines = (await records.command('calls', '--json', '--tool', 'a')).stdout.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines.map((one) => [one.claimed_name]).sort(), [...named].sort());
  const events = JSON.parse((await records.command('timeline', '--json')).stdout);
  for (const layer of ['mcp', 'security']) {
    const of = events.filter((one) => one.layer === layer && /local\/a/.test(one.summary)).map((one) => one.claimed_name);
    assert.ok(of.includes('Claude Code') && of.includes(named[1][0]), show(events));
  }
  const text = (await records.command('timeline')).stdout;
  assert.match(text.split('\n')[0], /TRACE +CLAIMED$/);
  assert.match(text, / Claude Code$/m);
  assert.doesNotMatch(text, /[\x00-\x09\x0b-\x1f\u202e]/);

  // Rules about the claimed name also apply to recorded calls.
  const next = t.path('next.toml');
  writeFileSync(next, profile({}, rule('claude', { if: "client.claimed_name == 'Claude Code'", decision: 'block' })));
  const replayed = JSON.parse((await records.execute('policy', 'replay', '--config', next, '--file', records.files()[0], '--since', '1h', '--json')).stdout);
  assert.deepEqual(replayed.changed.filter((one) => one.now === 'block').map((one) => one.call), ['local/a']);
  await client.close();
  await gateway.stop();
  assert.ok(JSON.parse((await records.verify('--json')).stdout)[0].whole);
});

both('B33 requests of builtin tools contain the trace of their call', async (t, args) => {
  const web = createServer((req, res) => res.writeHead(200, { 'content-type': 'text/plain' }).end('four'));
  await new Promise((done) => web.listen(0, '127.0.0.1', done));
  t.defer(() => web.close());
  const { port } = web.address();
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const { client, records } = await started(t, args, '[tools.http]\nplugin = "builtin-http"\nallow_private = true\nblock = ["blocked.test"]\n');
  const meta = { traceparent: `00-${trace}-00f067aa0ba902b7-01` };
  assert.ok((await call(client, 'http__fetch_http', { url: `http://127.0.0.1:${port}/page?token=canary` }, { meta })).result);
  await call(client, 'http__fetch_http', { url: 'http://blocked.test/' }, { meta });
  await records.until('SELECT count(*) FROM net_events', (n) => n === 2);
  assert.deepEqual(
    await records.rows('SELECT domain, port, decision, method, path, status_code, bytes_received, server_name, trace_id FROM net_events ORDER BY id'),
    [['127.0.0.1', port, 'allowed', 'GET', '/page', 200, 4, 'http', trace],
     ['blocked.test', 80, 'denied', 'GET', '/', null, 0, 'http', trace]]);
  assert.deepEqual(await rows(records, 2, 'trace_id'), [[trace], [trace]]);
});

both('a record contains its session and user', async (t, args) => {
  const { client, records, gateway } = await started(t, args, '');
  await call(client, 'local__a');
  await records.until('SELECT count(*) FROM session_identity', (n) => n === 1);
  const [[file, user]] = await records.rows('SELECT profile_id, user_id FROM session_identity');
  assert.equal(file, gateway.config);
  assert.ok(user.length > 0);
});

test('policy replay evaluates recorded calls with other rules', async (t) => {
  const { client, records, servers, gateway } = await started(t, [],
    rule('no', { if: tool('c'), decision: 'block' }), ['--result', `b=${JSON.stringify(secretResult)}`]);
  await call(client, 'local__a', { path: '/etc/passwd' });
  await call(client, 'local__a', { path: '/tmp/x' });
  await call(client, 'local__b');
  await call(client, 'local__c', { n: 1 });
  await rows(records, 4, 'id');
  const same = JSON.parse((await records.command('policy', 'replay', '--since', '1h', '--json')).stdout);
  assert.deepEqual(same, { calls: 4, left_out: { 'the arguments of a rejected call are not recorded': 1 }, changed: [] });
  const next = t.path('next.toml');
  writeFileSync(next, profile(servers,
    rule('etc', { if: "has(mcp.request.arguments.path) && mcp.request.arguments.path.startsWith('/etc')", decision: 'block', reason: 'not there', priority: 5 }) +
    rule('words', { on: 'mcp.response', if: "mcp.response.text.contains('password')", decision: 'block' })));
  const [{ path: file }] = records.files().map((path) => ({ path }));
  const changed = async (...words) => (await records.execute('policy', 'replay', '--config', next, '--file', file, ...words)).stdout;
  const answer = JSON.parse(await changed('--since', '1h', '--json'));
  assert.equal(answer.calls, 4);
  const short = answer.changed.map((one) => [one.call, one.then, one.now, one.now_rule]);
  assert.deepEqual(short.filter((one) => one[2] === 'block').map((one) => [one[0], one[3]]), [
    ['local/a', 'security.rules.mcp.etc'], ['local/b', 'security.rules.mcp.words']], show(answer));
  const text = await changed('--since', '1h');
  assert.match(text, /local\/a +allow \(security\.rules\.mcp\.default\) +block \(security\.rules\.mcp\.etc\) +not there/);
  assert.match(text, /4 recorded calls, \d would be decided differently/);
  assert.match(await changed('--since', '2999-01-01T00:00:00Z'), /^0 recorded calls, 0 would be decided differently/);
  const wrong = await records.command('policy', 'replay', '--since', 'yesterday').catch((error) => error);
  assert.equal(wrong.code, 2);
  assert.ok(gateway.pid > 0);
});

both('with rejected_arguments, rejected calls are recorded masked and replay evaluates them', async (t, args) => {
  const path = (prefix) => `has(mcp.request.arguments.path) && mcp.request.arguments.path.startsWith('${prefix}')`;
  const { client, records, servers, gateway } = await started(t, args,
    'rejected_arguments = true\n' +
    rule('no', { if: path('/'), decision: 'block', reason: 'no files' }) +
    rule('answer', { on: 'mcp.response', if: `${tool('b')}`, decision: 'block' }));
  const refused = async (name, given) => assert.equal((await call(client, name, given)).error?.code, -32600);
  await refused('local__a', { path: '/tmp/x', password: 'hunter2-canary', note: 'Bearer hunter2-canary' });
  await refused('local__a', { path: '/etc/passwd' });
  await refused('local__b', {});
  const found = await rows(records, 3, 'policy_action, policy_rule, decision, flags & 16, request_preview');
  assert.deepEqual(found.map((row) => row.slice(0, 4)), [
    ['block', 'security.rules.mcp.no', 'denied', 16], ['block', 'security.rules.mcp.no', 'denied', 16],
    ['block', 'security.rules.mcp.answer', 'denied', 0]]);
  assert.deepEqual(JSON.parse(found[0][4]), { name: 'local__a', arguments: { path: '/tmp/x', password: '***', note: 'Bearer ***' } });
  const same = JSON.parse((await records.command('policy', 'replay', '--since', '1h', '--json')).stdout);
  assert.deepEqual(same, { calls: 3, left_out: { 'its result was blocked and is not recorded': 1 }, changed: [] });
  const next = t.path('next.toml');
  writeFileSync(next, profile(servers, rule('no', { if: path('/etc'), decision: 'block' })));
  const replay = ['policy', 'replay', '--config', next, '--file', records.files()[0], '--since', '1h', '--json'];
  const { changed, calls } = JSON.parse((await records.execute(...replay)).stdout);
  assert.equal(calls, 3);
  assert.deepEqual(changed.map((one) => [one.call, one.then, one.then_rule, one.now]), [['local/a', 'block', 'security.rules.mcp.no', 'allow']]);
  await gateway.stop();
  for (const file of records.files()) assert.ok(!readFileSync(file).includes('hunter2-canary'), file);
});

test('policy replay evaluates all policies of the profile', async (t) => {
  const { client, records, servers } = await started(t, [], '');
  for (const name of ['a', 'b', 'c']) await call(client, `local__${name}`, { path: '/etc/x' });
  await rows(records, 3, 'id');
  const both = t.path('both.toml');
  writeFileSync(both, profile(servers, `
[policies.rules]
plugin = "policy-rules"
[policies.lists]
plugin = "policy-lists"
rules = false
tool_permissions = { local__a = "block", local__b = "block" }
` + rule('etc', { if: `${tool('b')} || ${tool('c')}`, decision: 'block' })));
  const answer = JSON.parse((await records.execute('policy', 'replay', '--config', both, '--file', records.files()[0], '--since', '1h', '--json')).stdout);
  assert.deepEqual(answer.changed.map((one) => [one.call, one.now]), [['local/a', 'block'], ['local/b', 'block'], ['local/c', 'block']], show(answer));
  assert.deepEqual(answer.changed.slice(1).map((one) => one.now_rule), ['security.rules.mcp.etc', 'security.rules.mcp.etc'], show(answer));
  assert.doesNotMatch(answer.changed[0].now_rule, /etc/);
});

test('policy replay skips calls whose record differs from the evaluated call', async (t) => {
  const { client, records } = await started(t, [],
    rule('late', { on: 'mcp.response', if: "mcp.response.text.contains('password')", decision: 'block' }), ['--result', `b=${JSON.stringify(secretResult)}`]);
  await call(client, 'local__a', { path: '/tmp/x' });
  await call(client, 'local__b');
  await rows(records, 2, 'id');
  const same = JSON.parse((await records.command('policy', 'replay', '--since', '1h', '--json')).stdout);
  assert.deepEqual(same, { calls: 2, left_out: { 'its result was blocked and is not recorded': 1 }, changed: [] });
});

await run();

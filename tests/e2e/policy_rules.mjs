// Tests the rules of a profile with the real program. policy-rules runs in the endpoint (the
// default), in a single process, and in a private compartment.
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { assert, build, fake, run, runProgram, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const telemetryPlugin = join(build, 'tests/judges/test-telemetry.so');
const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};
const quoted = (text) => JSON.stringify(String(text));

// Returns a TOML profile with these servers and rules.
function profile(servers, rules) {
  const tables = Object.entries(servers).map(
    ([name, def]) => `[mcpServers.${name}]\ncommand = ${quoted(def.command)}\nargs = [${def.args.map(quoted).join(', ')}]\n`,
  );
  return `${tables.join('\n')}\n[telemetry.book]\nplugin = ${quoted(telemetryPlugin)}\n${rules}\n`;
}
const rule = (name, keys) =>
  `[security.rules.mcp.${name}]\n${Object.entries({ on: 'mcp.request', if: 'true', ...keys })
    .map(([key, value]) => `${key} = ${typeof value === 'string' ? `'''${value}'''` : JSON.stringify(value)}`)
    .join('\n')}\n`;

async function ruled(t, args, rules, options = {}) {
  const log = t.path('log');
  const servers = { local: fake('--tool', 'a', '--tool', 'b', ...(options.fake ?? []), '--log', log) };
  const gateway = await t.gateway(profile(servers, rules), { args });
  return { gateway, log, servers, client: await t.http(gateway) };
}
const call = (client, tool = 'local__a', args = {}) =>
  client.tool(tool, args).then((result) => ({ result }), (error) => ({ error }));
const calls = (log) => (existsSync(log) ? [...readFileSync(log, 'utf8').matchAll(/^< .*"tools\/call".*$/gm)].map((m) => m[0]) : []);
function records(gateway) {
  const file = readdirSync(gateway.dir, { recursive: true }).find((name) => name.endsWith('records.jsonl'));
  if (file === undefined) return [];
  return readFileSync(join(gateway.dir, file), 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
}
const recorded = (gateway, what, matches) => until(`${what} is recorded`, () => records(gateway).find(matches));
async function reload(gateway) {
  const { socket } = await statusOf(gateway);
  return new Promise((done, failed) => {
    const req = request({ socketPath: socket, method: 'POST', path: '/reload-config' }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done({ status: res.statusCode, ...JSON.parse(data) }));
    });
    req.on('error', failed);
    req.end();
  });
}
// Returns the error output of a start that must fail.
function refusal(t, args, rules) {
  const done = runProgram(t, ['serve', '--config', '{config}', '--listen', '127.0.0.1:0', ...args],
    { profile: profile({ local: fake('--tool', 'a') }, rules), file: 'gateway.toml' });
  assert.equal(done.code, 1, show(done));
  return done.stderr;
}
const tool = (name) => `mcp.request.server_name == 'local' && mcp.request.tool_name == '${name}'`;

both('B20 with decision allow, the call runs', async (t, args) => {
  const { client } = await ruled(t, args, `[security]\ndefault = "block"\n${rule('yes', { if: tool('a'), decision: 'allow' })}`);
  const { result } = await call(client, 'local__a', { n: 1 });
  assert.deepEqual(result.echo, { n: 1 });
  assert.match((await call(client, 'local__b')).error.message, /blocked by policy \(security\.rules\.mcp\.default\)/);
});

both('B21 decision ask fails closed without an approval surface', async (t, args) => {
  const { client, log, gateway } = await ruled(t, args, rule('look', { if: tool('a'), decision: 'ask', reason: 'have a look' }));
  const { error } = await call(client);
  assert.equal(error.code, -32600);
  assert.match(error.message, /security\.rules\.mcp\.look.*needs approval.*have a look/);
  assert.deepEqual(calls(log), []);
  await recorded(gateway, 'the refusal', (one) => one.rule === 'security.rules.mcp.look' && one.outcome === 3);
});

both('B22 with decision block, error -32600 names the rule, and the server receives no call', async (t, args) => {
  const { client, log, gateway } = await ruled(t, args, rule('no', { if: tool('a'), decision: 'block', reason: 'not today' }));
  const { error } = await call(client, 'local__a', { secret: 'hunter2' });
  assert.equal(error.code, -32600);
  assert.match(error.message, /MCP request blocked by policy \(security\.rules\.mcp\.no\): not today/);
  assert.deepEqual(calls(log), []);
  assert.ok((await call(client, 'local__b')).result);
  const record = await recorded(gateway, 'the refusal', (one) => one.rule === 'security.rules.mcp.no');
  assert.ok(!JSON.stringify(record).includes('hunter2'), show(record));
});

both('B23 with decision rewrite, the server receives the masked arguments', async (t, args) => {
  const { client, log } = await ruled(t, args, rule('mask', {
    if: tool('a'), decision: 'rewrite', rewrite_target: 'arguments =~ "(?P<kind>sk|pk)-[A-Za-z0-9]+"', rewrite_value: '${kind}-***',
  }));
  const { result } = await call(client, 'local__a', '{"deep":[{"token":"use sk-1234 or pk-77"}],"n":1.10}');
  assert.deepEqual(result.echo, { deep: [{ token: 'use sk-*** or pk-***' }], n: 1.1 });
  const [line] = calls(log);
  assert.ok(line.includes('"n":1.10'), line);
  assert.ok(!line.includes('1234'), line);
});

const secretResult = { content: [{ type: 'text', text: 'the password is hunter2' }], structuredContent: { p: 'hunter2' } };
both('B24 if a response is rewritten or blocked, the original does not reach the client', async (t, args) => {
  const { client, gateway } = await ruled(t, args, rule('mask', {
    on: 'mcp.response', if: tool('a'), decision: 'rewrite', rewrite_target: 'response.text =~ "hunter[0-9]"', rewrite_value: '***',
  }) + rule('withhold', { on: 'mcp.response', if: "mcp.response.text.contains('hunter2')", decision: 'block', priority: 500, reason: 'a password' }),
  { fake: ['--result', `a=${JSON.stringify(secretResult)}`, '--result', `b=${JSON.stringify(secretResult)}`] });
  const masked = await call(client, 'local__a');
  assert.deepEqual(masked.result.content, [{ type: 'text', text: 'the password is ***' }]);
  assert.deepEqual(masked.result.structuredContent, { p: '***' });
  const { error } = await call(client, 'local__b');
  assert.match(error.message, /MCP response blocked by policy \(security\.rules\.mcp\.withhold\)/);
  assert.ok(!error.message.includes('hunter'));
  await recorded(gateway, 'the refusal', (one) => one.rule === 'security.rules.mcp.withhold');
  assert.ok(!readFileSync(join(gateway.dir, readdirSync(gateway.dir, { recursive: true }).find((n) => n.endsWith('records.jsonl'))), 'utf8').includes('hunter'));
});

test('B25 an impossible rewrite is an error that names the rule', async (t) => {
  for (const [keys, text] of [
    [{ rewrite_target: 'name =~ "a"', rewrite_value: 'b' }, /cannot be rewritten/],
    [{ rewrite_target: 'arguments =~ "("', rewrite_value: 'b' }, /invalid regular expression in rewrite_target/],
    [{ rewrite_target: 'arguments =~ "(a)"', rewrite_value: '${x}' }, /not a named group/],
  ]) {
    const said = refusal(t, [], rule('broken', { decision: 'rewrite', ...keys }));
    assert.match(said, text);
    assert.match(said, /gateway\.toml:\d+: security\.rules\.mcp\.broken/);
  }
});

both('B26 rules match request and response variables', async (t, args) => {
  const { client } = await ruled(t, args,
    rule('args', { if: `mcp.request.server_name == 'local' && mcp.request.tool_name == 'a' && mcp.request.arguments.path.startsWith('/etc/')`, decision: 'block' })
    + rule('answer', { on: 'mcp.response', if: `mcp.response.result_status == 'ok' && mcp.response.content.exists(c, c.text == 'fake/b') && mcp.request.tool_name == 'b'`, decision: 'block' }));
  assert.match((await call(client, 'local__a', { path: '/etc/passwd' })).error.message, /security\.rules\.mcp\.args/);
  assert.ok((await call(client, 'local__a', { path: '/tmp/x' })).result);
  assert.match((await call(client, 'local__b')).error.message, /security\.rules\.mcp\.answer/);
});

both('a JSON-RPC error of a server is evaluated like a result', async (t, args) => {
  const error = { code: -32042, message: 'token sk-SECRET123', data: { more: 'sk-SECRET456' } };
  const on = 'mcp.response';
  const rules = {
    block: rule('no', { on, decision: 'block', reason: 'nothing leaves' }),
    rewrite: rule('no', { on, decision: 'rewrite', rewrite_target: 'response.text =~ "sk-[A-Za-z0-9]+"', rewrite_value: '***' }),
    'by text': rule('no', { on, if: 'mcp.response.is_error && mcp.response.text.contains("sk-SECRET456")', decision: 'block' }),
    'by data': rule('no', { on, if: 'has(mcp.response.structured.more)', decision: 'block' }),
  };
  for (const [what, text] of Object.entries(rules)) {
    const { gateway, client } = await ruled(t, args, text, { fake: ['--error', `a=${JSON.stringify(error)}`] });
    const { error: got } = await call(client);
    assert.equal(got.code, -32042, what);
    assert.match(got.message, /MCP response blocked by policy \(security\.rules\.mcp\.no\)/, what);
    if (what === 'block') assert.match(got.message, /: nothing leaves$/);
    assert.doesNotMatch(show(got), /SECRET/, what);
    await recorded(gateway, what, (record) => record.outcome === 3);
    assert.doesNotMatch(show(records(gateway)), /SECRET/, what);
  }
  // Messages that no rule matches are forwarded unchanged.
  const other = rule('no', { on, if: 'mcp.response.text.contains("other")', decision: 'block' });
  const { client } = await ruled(t, args, other, { fake: ['--error', `a=${JSON.stringify(error)}`] });
  assert.deepEqual((await call(client)).error.error, error);
});

// Texts from servers other than responses, and texts that the gateway's error messages would quote.
const otherWords = {
  'the last lines of a program that ends': async () => ({ def: fake('--tool', 'a', '--die', 'a', '--stderr', 'token sk-SECRET123') }),
  'the last lines of a program that does not start': async () => ({ def: fake('--tool', 'a', '--exit-on', 'initialize', '--stderr', 'token sk-SECRET123') }),
  'the place that a redirect names': async (t) => {
    const server = createServer(async (req, res) => {
      let body = '';
      for await (const chunk of req) body += chunk;
      const { id, method } = body === '' ? {} : JSON.parse(body);
      const answer = (result) => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      if (method === 'initialize') return answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'moves', version: '1' } });
      if (method === 'tools/list') return answer({ tools: [{ name: 'a', inputSchema: { type: 'object' } }] });
      if (method === 'tools/call') return res.writeHead(302, { location: `http://127.0.0.1:${server.address().port}/sk-SECRET123` }).end();
      return res.writeHead(method === undefined ? 405 : 202).end();
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    t.defer(() => server.close());
    return { def: { url: `http://127.0.0.1:${server.address().port}/mcp` } };
  },
};
for (const [what, make] of Object.entries(otherWords)) {
  both(`rules about responses see ${what} before the client does`, async (t, args) => {
    const { def } = await make(t);
    const rules = rule('no', { on: 'mcp.response', if: 'mcp.response.text.contains("sk-SECRET")', decision: 'block' });
    const text = (more) => (def.url ? `[mcpServers.local]\nurl = ${quoted(def.url)}\n` : `[mcpServers.local]\ncommand = ${quoted(def.command)}\nargs = [${def.args.map(quoted).join(', ')}]\n`) + more;
    const said = async (gateway) => {
      const client = await t.http(gateway);
      let got;
      await until('the call fails', async () => (got = (await call(client)).error) !== undefined);
      return got.message;
    };
    const open = await said(await t.gateway(text(''), { args }));
    assert.match(open, /sk-SECRET123/, 'without rules the client sees it');
    const closed = await said(await t.gateway(text(rules), { args }));
    assert.doesNotMatch(closed, /SECRET/);
    assert.match(closed, /blocked by policy \(security\.rules\.mcp\.no\)|see `bulkhead status`/);
  });
}

test('log lines and unknown notifications are attributed to the tool of their call', async (t) => {
  const says = (method, params) => ['--notify', `a=${JSON.stringify({ jsonrpc: '2.0', method, params })}`];
  const noise = [...says('notifications/message', { level: 'error', data: 'SECRET1' }), ...says('notifications/mine', { x: 'SECRET2' })];
  const inner = await t.gateway(profile({ local: fake('--tool', 'a', ...noise) }, ''), { args: ['--single-process'] });
  const quiet = rule('quiet', { on: 'mcp.notification', if: 'mcp.request.tool_name == "local__a"', decision: 'block' });
  // A server of 2026-07-28 sends log lines only to clients that have set a level.
  const outer = (rules) => t.gateway(`[mcpServers.up]\nurl = ${quoted(inner.url)}\nprotocol = "2025-11-25"\n${rules}`, { args: ['--single-process'] });
  const told = async (rules) => {
    const client = await t.http(await outer(rules));
    assert.ok((await call(client, 'up__local__a')).result !== undefined);
    return show(client.notes);
  };
  assert.match(await told(''), /SECRET1.*SECRET2/s);
  assert.doesNotMatch(await told(quiet), /SECRET/);
});

test('B26 event.* does not compile', async (t) => {
  assert.match(refusal(t, [], rule('old', { if: "event.type == 'x'", decision: 'block' })), /security\.rules\.mcp\.old\.if: 1:\d+: event\.\* is internal/);
});

both('B27 a call whose rules cannot be evaluated is rejected', async (t, args) => {
  const { client, log, gateway } = await ruled(t, args, rule('typed', { if: `${tool('a')} && mcp.request.arguments.n > 3`, decision: 'block' }));
  assert.match((await call(client, 'local__a', { n: 'four' })).error.message, /blocked by policy \(security\.mcp\.evaluation_error\)/);
  assert.match((await call(client, 'local__a', {})).error.message, /evaluation_error/);
  assert.match((await call(client, 'local__a', '{"n":1,"n":5}')).error.message, /duplicate members/);
  assert.deepEqual(calls(log), []);
  assert.ok((await call(client, 'local__a', { n: 1 })).result);
  await recorded(gateway, 'the error', (one) => one.rule === 'security.mcp.evaluation_error');
});

test('B28 a corporate priority in a user\'s file is rejected', async (t) => {
  assert.match(refusal(t, [], rule('mine', { decision: 'allow', priority: -10 })), /security\.rules\.mcp\.mine\.priority: -10 is outside the range of your rules \(1 to 999\)/);
});

both('B29 warn is an error, or with legacy = true allows the call', async (t, args) => {
  assert.match(refusal(t, args, rule('w', { decision: 'warn' })), /"warn" is not a decision/);
  const { client } = await ruled(t, args, `[security]\nlegacy = true\n${rule('w', { decision: 'warn' })}`);
  assert.ok((await call(client)).result);
});

for (const [where, table] of Object.entries({ endpoint: '', own: '[policies.default]\nplugin = "policy-rules"\ncompartment = "own"\n' })) {
  const asked = where === 'endpoint' ? both : (name, fn) => test(name, (t) => fn(t, []));
  asked(`B30 changed rules apply to an open connection (policy: ${where})`, async (t, args) => {
    const rules = (name) => table + rule('r', { if: tool(name), decision: 'block' });
    const { client, gateway, servers } = await ruled(t, args, rules('b'));
    await until('the policy is ready', async () => (await call(client)).result);
    assert.deepEqual(await client.toolNames(), ['local__a']);
    writeFileSync(gateway.config, profile(servers, rules('a')));
    const answer = await reload(gateway);
    assert.equal(answer.status, 200, show(answer));
    const { error } = await until('the rules are in force', async () => {
      const outcome = await call(client);
      return /security\.rules\.mcp\.r/.test(outcome.error?.message) && outcome;
    });
    assert.equal(error.code, -32600);
    await until('the other tool is allowed', async () => (await call(client, 'local__b')).result);
    await until('lists follow', async () => String(await client.toolNames()) === 'local__b');
  });

  asked(`rules see the client's claimed name (policy: ${where})`, async (t, args) => {
    const rules = rule('named', { if: 'client.claimed_name == "Bad \u00e9 \\"one\\""', decision: 'block' })
      + rule('cut', { if: `client.claimed_name.size() == 64 && ${tool('b')}`, decision: 'block' });
    const { gateway } = await ruled(t, args, table + rules);
    const named = (name) => t.http(gateway, { clientInfo: { name, version: '1' } });
    const [bad, good, long] = [await named('Bad \u00e9 "one"'), await named('bad'), await named('\u00e9'.repeat(300))];
    await until('the policy is ready', async () => (await call(good)).result);
    assert.match((await call(bad)).error?.message, /security\.rules\.mcp\.named/);
    assert.ok((await call(good, 'local__b')).result);
    assert.ok((await call(long)).result, 'a long name is cut, not refused');
    assert.match((await call(long, 'local__b')).error?.message, /security\.rules\.mcp\.cut/);
    for (const client of [bad, good]) assert.deepEqual(await client.toolNames(), ['local__a', 'local__b'], 'clients of one principal have one list');
  });
}

both('if a reload rejects new rules, the old rules stay in force', async (t, args) => {
  const { client, gateway, servers } = await ruled(t, args, rule('r', { if: tool('a'), decision: 'block' }));
  writeFileSync(gateway.config, profile(servers, rule('r', { if: 'mcp.request.tol_name == 1', decision: 'block' })));
  const answer = await reload(gateway);
  assert.equal(answer.success, false, show(answer));
  assert.match(show(answer), /security\.rules\.mcp\.r\.if/);
  assert.match((await call(client)).error.message, /security\.rules\.mcp\.r/);
  assert.ok((await call(client, 'local__b')).result);
});

test('policy-rules decides, rewrites and filters in the same way in a private compartment', async (t) => {
  const { client, gateway } = await ruled(t, [], '[policies.default]\nplugin = "policy-rules"\ncompartment = "own"\n'
    + rule('hidden', { if: `${tool('b')} && mcp.tool.description != 'never'`, decision: 'block' })
    + rule('mask', { if: tool('a'), decision: 'rewrite', rewrite_target: 'arguments.x =~ "y+"', rewrite_value: 'z' })
    + rule('session', { if: 'session.calls > 1000 || session.age < duration("0s")', decision: 'block', priority: 1 }));
  await until('the policy is ready', async () => (await call(client)).result);
  assert.deepEqual((await call(client, 'local__a', { x: 'yyy' })).result.echo, { x: 'z' });
  assert.match((await call(client, 'local__b')).error.message, /security\.rules\.mcp\.hidden/);
  assert.deepEqual(await client.toolNames(), ['local__a']);
  assert.ok((await statusOf(gateway)).compartments.some((one) => one.name.startsWith('policy')));
});

both('rules can use the tool\'s definition, and the list is filtered', async (t, args) => {
  const item = (name, destructiveHint) => JSON.stringify({ name, description: `it is ${name}`, inputSchema: { type: 'object' }, annotations: { destructiveHint } });
  const { client } = await ruled(t, args, rule('d', { if: `has(mcp.tool.annotations.destructiveHint) && mcp.tool.annotations.destructiveHint == true`, decision: 'block' })
    + rule('e', { if: "mcp.tool.description == 'it is odd'", decision: 'block' }),
  { fake: ['--tool-json', item('wipe', true), '--tool-json', item('look', false), '--tool-json', item('odd', false)] });
  assert.deepEqual((await client.toolNames()).sort(), ['local__a', 'local__b', 'local__look']);
  assert.match((await call(client, 'local__wipe')).error.message, /security\.rules\.mcp\.d/);
  assert.match((await call(client, 'local__odd')).error.message, /security\.rules\.mcp\.e/);
  assert.ok((await call(client, 'local__look')).result);
});

both('a list of allowed tools denies the rest', async (t, args) => {
  const { client } = await ruled(t, args, '[security.servers.local]\nallowed_tools = ["b"]\n');
  assert.deepEqual(await client.toolNames(), ['local__b']);
  assert.match((await call(client)).error.message, /security\.servers\.local\.allowed_tools/);
  assert.ok((await call(client, 'local__b')).result);
});

both('rules in match/action syntax are evaluated', async (t, args) => {
  const { client } = await ruled(t, args, `[profiles.rules.no-etc]
match = 'mcp.tool_call.name == "a" && mcp.request.arguments.contains("/etc/")'
action = "block"
[default.deny]
match = 'mcp.tool_call.name == "b"'
action = "block"
`);
  assert.match((await call(client, 'local__a', { p: '/etc/x' })).error.message, /profiles\.rules\.no-etc/);
  assert.ok((await call(client, 'local__a', { p: '/tmp/x' })).result);
  assert.match((await call(client, 'local__b')).error.message, /default\.deny/);
});

// Fault: the error is "profile_rules is unknown here", or there is no error and no policy evaluates
// the rule.
both('rules beside a policy that does not evaluate them are rejected with the reason', async (t, args) => {
  const refusedBy = /gateway\.toml:\d+: policies\.mine: the profile has rules, but this plugin does not evaluate them: use "policy-rules"/;
  const no = rule('r', { decision: 'block' });
  assert.match(refusal(t, args, `[policies.mine]\nplugin = "policy-allow"\n${no}`), refusedBy);
  // One policy has a schema that permits any key, and the other has no schema in its file.
  const foreign = `[policies.mine]\nplugin = ${quoted(join(build, 'tests/judges/test-policy.so'))}\n`;
  assert.match(refusal(t, args, foreign + no), refusedBy);
  assert.match(refusal(t, args, `[policies.mine]\nplugin = "policy-lists"\n${no}`), /mine[^]*does not evaluate/);
  assert.match(refusal(t, args, `[policies.default]\nplugin = "policy-allow"\n${no}`), /policies\.default: the profile has rules, but this plugin does not evaluate them/);
  assert.match(refusal(t, args, `${foreign}rules = false\n${no}`), /the profile has rules, but no policy plugin evaluates them/);
  const { client } = await ruled(t, args, `${foreign}rules = false\n[policies.rules]\nplugin = "policy-rules"\n${no}`);
  await until('the policies are ready', async () => /security\.rules\.mcp\.r/.test((await call(client)).error?.message));
});

// Fault: the error claims that the plugin offers no tools or has an invalid configuration, instead
// of naming its kind.
both('a plugin in the wrong section is reported with its kind and the right section', async (t, args) => {
  assert.match(refusal(t, args, '[tools.x]\nplugin = "policy-lists"\n'), /gateway\.toml:\d+: tools\.x\.plugin: "policy-lists" is a policy plugin \(bh\.policy\/1\) and does not offer tools: configure it as \[policies\.x\]/);
  const path = join(build, 'tests/judges/test-policy.so');
  assert.match(refusal(t, args, `[tools.x]\nplugin = ${quoted(path)}\n`), /tools\.x\.plugin: ".*test-policy\.so" is a policy plugin .* configure it as \[policies\.x\]/);
  assert.match(refusal(t, args, '[policies.x]\nplugin = "builtin-files"\n'), /policies\.x\.plugin: "builtin-files" is a tools plugin .* does not offer a policy: configure it as \[tools\.x\]/);
  assert.match(refusal(t, args, '[telemetry.x]\nplugin = "transport-http"\n'), /is a transport plugin .* does not offer telemetry: configure it as \[transports\.x\]/);
  assert.match(refusal(t, args, '[policies.x]\nplugin = "connector-stdio"\n'), /"connector-stdio" does not offer a policy \(bh\.policy\/1\); it provides bh\.connector\/1/);
});

// ---- inputs and notifications -------------------------------------------------------------------

const inputRules = rule('no-passwords', { on: 'mcp.input_request', if: "mcp.input.text.contains('password')", decision: 'block', reason: 'passwords are never requested' })
  + rule('keep-mail', { on: 'mcp.input_response', if: "mcp.input.action == 'accept' && mcp.input.result.content.mail.endsWith('@corp.example')", decision: 'block' })
  + rule('quiet', { on: 'mcp.notification', if: "mcp.request.method == 'notifications/message' && mcp.notification.params.data.contains('secret')", decision: 'block' })
  + rule('once', { if: tool('a'), decision: 'block' }) + 'over = { calls = 2 }\n';
const question = (message) => JSON.stringify({ method: 'elicitation/create', params: { message, requestedSchema: { type: 'object', properties: { mail: { type: 'string' } } } } });
const logLine = (data) => JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data } });

for (const [where, table] of Object.entries({ endpoint: '', own: '[policies.default]\nplugin = "policy-rules"\ncompartment = "own"\n' })) {
  const asked = where === 'endpoint' ? both : (name, fn) => test(name, (t) => fn(t, []));
  asked(`server-initiated requests, client responses and notifications are evaluated; the call counts once (policy: ${where})`, async (t, args) => {
    const log = t.path('log');
    const servers = { local: fake('--tool', 'a', '--ask', `a=${question('Your mail?')}`, '--notify', `a=${logLine('a secret')}`, '--notify', `a=${logLine('plain')}`,
      '--tool', 'b', '--ask', `b=${question('Your password?')}`, '--log', log) };
    const gateway = await t.gateway(profile(servers, table + inputRules), { args });
    const asks = [];
    let mail = 'me@home.example';
    const client = await t.http(gateway, {
      capabilities: { elicitation: {} },
      onAsk: (method, params) => {
        asks.push(params.message);
        return { action: 'accept', content: { mail } };
      },
    });
    await until('the policy is ready', async () => !/policy-failed/.test((await call(client, 'local__b')).error?.message));
    const allowed = await call(client);
    assert.equal(allowed.result?.asked.result.content.mail, mail, show(allowed));
    mail = 'me@corp.example';
    const kept = await call(client);
    assert.deepEqual(kept.result?.asked.result, { action: 'decline' }, show(kept));
    assert.ok(!readFileSync(log, 'utf8').includes('@corp.example'));
    assert.deepEqual(asks, ['Your mail?', 'Your mail?']);
    const refused = await call(client, 'local__b');
    assert.deepEqual(refused.result?.asked.result, { action: 'decline' }, show(refused));
    assert.equal(asks.length, 2);
    await until('the plain lines have arrived', () => client.notes.filter((note) => note.params?.data === 'plain').length === 2);
    assert.ok(!client.notes.some((note) => note.params?.data === 'a secret'));
    // Two calls with one input each count as two calls, and rejected messages are recorded.
    assert.match((await call(client)).error?.message, /security\.rules\.mcp\.once/);
    await recorded(gateway, 'the refused question', (one) => one.rule === 'security.rules.mcp.no-passwords' && one.outcome === 3);
    await recorded(gateway, 'the refused answer', (one) => one.rule === 'security.rules.mcp.keep-mail');
    await recorded(gateway, 'the refused line', (one) => one.rule === 'security.rules.mcp.quiet');
    assert.equal(records(gateway).filter((one) => one.name === 'a' && one.method === 'tools/call' && one.outcome === 1).length, 2);
  });
}

// ---- policy-lists, the other policy engine ------------------------------------------------------

const lists = (keys) => `[policies.default]\nplugin = "policy-lists"\n${keys}\n`;

both('E01 a blocked server has precedence over its tools (policy-lists)', async (t, args) => {
  const { client, log } = await ruled(t, args, lists('server_enabled = { local = false }\ntool_permissions = { local__a = "allow" }'));
  const { error } = await call(client);
  assert.equal(error.code, -32600);
  assert.match(error.message, /blocked_servers\.local/);
  assert.deepEqual(calls(log), []);
});

both('E02 a list of allowed servers denies all others, an empty list does not (policy-lists)', async (t, args) => {
  const { client } = await ruled(t, args, lists('allowed_servers = ["other"]'));
  assert.equal((await call(client)).error.code, -32600);
  const { client: open } = await ruled(t, args, lists('allowed_servers = []'));
  assert.ok((await call(open)).result);
});

both('E03 the decision for the tool has precedence over the default (policy-lists)', async (t, args) => {
  const { client } = await ruled(t, args, lists('default_tool_permission = "block"\ntool_permissions = { local__a = "allow" }'));
  assert.ok((await call(client)).result);
  assert.equal((await call(client, 'local__b')).error.code, -32600);
  assert.deepEqual(await client.toolNames(), ['local__a']);
});

both('E04 warn allows the call (policy-lists)', async (t, args) => {
  const { client } = await ruled(t, args, lists('tool_permissions = { local__a = "warn" }'));
  assert.ok((await call(client)).result);
});

both('E05 the corporation\'s value has precedence (policy-lists)', async (t, args) => {
  const { client } = await ruled(t, args, `${lists('tool_permissions = { local__a = "allow" }')}\n[policies.default.corp]\ntool_permissions = { local__a = "block" }`);
  assert.equal((await call(client)).error.code, -32600);
  assert.ok((await call(client, 'local__b')).result);
});

test('H03 the profile alone selects the policy engine', async (t) => {
  const names = async (rules) => {
    const { client } = await ruled(t, [], rules);
    return [(await call(client)).error?.message, Boolean((await call(client, 'local__b')).result)];
  };
  const [byRules, otherRuns] = await names(rule('r', { if: tool('a'), decision: 'block' }));
  assert.match(byRules, /security\.rules\.mcp\.r/);
  const [byLists, otherRunsToo] = await names(lists('tool_permissions = { local__a = "block" }'));
  assert.match(byLists, /tool_permissions\.local__a/);
  assert.ok(otherRuns && otherRunsToo);
});

// Messages of this size are evaluated on another thread, in whichever process the policy runs.
for (const [where, policy] of Object.entries({ 'the default policy': '', 'a policy in a compartment': '[policies.default]\nplugin = "policy-rules"\ncompartment = "own"\n' })) {
  both(`large messages get the same verdicts as small messages: ${where}`, async (t, args) => {
    const rules = policy + rule('secret', { if: 'mcp.request.arguments.kind == "secret"', decision: 'block' })
      + rule('loud', { if: 'mcp.request.arguments.kind == "loud"', decision: 'rewrite', rewrite_target: 'arguments.kind =~ "loud"', rewrite_value: 'quiet' })
      + rule('token', { on: 'mcp.response', if: 'mcp.response.text.contains("a token")', decision: 'block' });
    const { client, log } = await ruled(t, args, rules);
    await until('the policy is ready', async () => (await call(client, 'local__a', { kind: 'plain' })).result);
    const before = calls(log).length;
    // The values of `pad` and of `list` exceed the limits in bytes and in values.
    for (const more of [{}, { pad: 'x'.repeat(200_000) }, { list: Array(70_000).fill(0) }]) {
      const size = Object.keys(more).join();
      assert.match((await call(client, 'local__a', { ...more, kind: 'secret' })).error?.message ?? size, /blocked by policy \(security\.rules\.mcp\.secret\)/, size);
      assert.match((await call(client, 'local__a', { ...more, kind: 'plain', text: 'a token' })).error?.message ?? size, /response blocked by policy \(security\.rules\.mcp\.token\)/, size);
      assert.deepEqual((await call(client, 'local__a', { ...more, kind: 'loud' })).result?.echo, { ...more, kind: 'quiet' }, size);
      assert.deepEqual((await call(client, 'local__a', { ...more, kind: 'plain' })).result?.echo, { ...more, kind: 'plain' }, size);
    }
    const arrived = calls(log).slice(before);
    assert.equal(arrived.length, 3 * 3);
    assert.ok(!arrived.some((line) => /"kind":"(secret|loud)"/.test(line)));
  });
}

await run();

// Tests human approval (row B21). A policy decides "ask", and the call is approved through the
// service API, in a terminal, by elicitation in the client, or not at all. Each test runs with
// compartments and with --single-process.
import { execFile, spawn } from 'node:child_process';
import { request } from 'node:http';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { assert, build, ended, fake, importFromNpm, program, run, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const execute = promisify(execFile);
const sdk = '@modelcontextprotocol/sdk';
const { Client } = await importFromNpm(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await importFromNpm(`${sdk}/client/streamableHttp.js`);
const types = await importFromNpm(`${sdk}/types.js`);

const policyPlugin = join(build, 'tests/judges/test-policy.so');
const telemetryPlugin = join(build, 'tests/judges/test-telemetry.so');
const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn, options) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args), options);
};

function profileOf(log, { approval = { api: true }, limits = {}, policy = {} } = {}) {
  return {
    mcpServers: { local: { ...fake('--tool', 'a', '--tool', 'b', '--log', log), max_in_flight: 1 } },
    policies: { judge: { plugin: policyPlugin, ...policy } },
    telemetry: { book: { plugin: telemetryPlugin } },
    approval,
    limits,
  };
}
async function asking(t, args, options) {
  const log = t.path('log');
  const gateway = await t.gateway(profileOf(log, options), { args });
  const client = await t.http(gateway);
  await until('calls are decided', async () => (await call(client, { judge: 'allow', first: true })).result);
  const { socket } = await statusOf(gateway);
  return { gateway, client, log, socket };
}
const call = (client, args, tool = 'local__a') => client.tool(tool, args).then((result) => ({ result }), (error) => ({ error }));
// Returns the number of calls that the server has received, without the first.
const ran = (log) => readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('<') && line.includes('tools/call') && !line.includes('"first"')).length;

function ask(socket, method, path, body) {
  return new Promise((done, failed) => {
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
    const req = request({ socketPath: socket, method, path, headers: { 'Content-Length': Buffer.byteLength(text) } }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done({ status: res.statusCode, ...JSON.parse(data) }));
    });
    req.on('error', failed);
    req.end(text);
  });
}
const pending = async (socket) => (await ask(socket, 'GET', '/confirm/pending')).pending;
const waits = (socket, n = 1) =>
  until(`${n} questions wait`, async () => {
    const list = await pending(socket);
    return list.length === n && list;
  });
const command = (gateway, ...args) =>
  execute(program, ['approvals', ...args], { env: gateway.env(), timeout: 10_000 }).then(
    (done) => ({ code: 0, ...done }),
    (error) => ({ code: error.code, stdout: error.stdout, stderr: error.stderr }),
  );
function records(gateway) {
  const file = readdirSync(gateway.dir, { recursive: true }).find((name) => name.endsWith('records.jsonl'));
  if (file === undefined) return [];
  return readFileSync(join(gateway.dir, file), 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line));
}
const refused = 3;
const ok = 1;

both('B21 ask without a surface is rejected immediately, and with an approving surface the call runs', async (t, args) => {
  const { gateway, client, log, socket } = await asking(t, args, { approval: {} });
  const none = await call(client, { judge: 'ask' });
  assert.match(none.error?.message ?? show(none), /blocked by policy \(test-rule\): needs approval, but no approval surface is available.*as the call says/);
  assert.equal(none.error.code, -32600);
  assert.equal(ran(log), 0);
  assert.deepEqual(await pending(socket), []);
  await until('the rejection is recorded', () => records(gateway).find((one) => one.outcome === refused && one.rule === 'test-rule'));

  const watch = spawn(program, ['approvals', 'watch', '--json'], { env: gateway.env() });
  t.defer(() => watch.kill('SIGKILL'));
  let said = '';
  watch.stdout.on('data', (data) => (said += data));
  await until('a client watches', async () => {
    const waiting = call(client, { judge: 'ask', n: 1 });
    if (await Promise.race([waiting, waits(socket).then(() => null)])) return false;
    const [question] = await pending(socket);
    await until('the terminal shows the question', () => said.includes(question.id));
    assert.equal((await command(gateway, 'allow', question.id)).code, 0);
    assert.deepEqual((await waiting).result.echo, { judge: 'ask', n: 1 });
    return true;
  });
  assert.equal(ran(log), 1);
  await until('the call is recorded with its rule', () => records(gateway).find((one) => one.outcome === ok && one.rule === 'test-rule'));
  const watching = ended(watch);
  watch.kill('SIGTERM');
  assert.equal((await watching).code, 0);
});

both('the service API lists, approves and denies requests, and rejects invalid decisions', async (t, args) => {
  const { client, log, socket } = await asking(t, args);
  const first = call(client, { judge: 'ask', path: '/x', api_key: 'hunter2', note: 'token ghp_0123456789abcdef' });
  const [q] = await waits(socket);
  assert.match(q.id, /^[0-9a-f]{32}$/);
  assert.deepEqual([q.server, q.name, q.method, q.rule, q.reason], ['local', 'a', 'tools/call', 'test-rule', 'as the call says']);
  assert.deepEqual(JSON.parse(q.arguments), { judge: 'ask', path: '/x', api_key: '***', note: 'token ***' });
  assert.equal(q.transport, 'http');
  assert.ok(q.expires_in_ms > 60_000 && q.expires_in_ms <= 120_000, show(q));
  assert.equal(ran(log), 0);
  for (const [path, body, status] of [
    [`/confirm/${q.id}`, {}, 400],
    [`/confirm/${q.id}`, '', 400],
    [`/confirm/${q.id}`, { decision: 'yes' }, 400],
    [`/confirm/${q.id}`, { decision: 'allow', scope: 'always' }, 400],
    [`/confirm/${q.id}`, '{"decision":"deny","decision":"allow"}', 400],
    ['/confirm/00000000000000000000000000000000', { decision: 'allow' }, 404],
    ['/confirm/pending', { decision: 'allow' }, 404],
    ['/confirm/watch', { seconds: 61 }, 400],
  ]) {
    const answer = await ask(socket, 'POST', path, body);
    assert.equal(answer.status, status, `${path} ${show(body)}: ${show(answer)}`);
    assert.ok(answer.error, show(answer));
  }
  assert.equal((await ask(socket, 'GET', `/confirm/${q.id}`)).status, 405);
  assert.equal(ran(log), 0);
  assert.deepEqual(await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'allow' }), { status: 200, answered: true });
  assert.equal((await first).result.echo.api_key, 'hunter2');
  assert.equal((await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'allow' })).status, 404);

  const second = call(client, { judge: 'ask' });
  const [other] = await waits(socket);
  assert.notEqual(other.id, q.id);
  assert.equal((await ask(socket, 'POST', `/confirm/${other.id}`, { decision: 'deny' })).status, 200);
  assert.match((await second).error.message, /needs approval, which was denied/);
  assert.equal(ran(log), 1);
});

both('commands in a terminal list, allow and deny, with exit codes', async (t, args) => {
  const { gateway, client, log, socket } = await asking(t, args);
  const none = await command(gateway);
  assert.deepEqual([none.code, none.stdout], [0, 'No calls are waiting for approval.\n']);
  const calls = [1, 2].map((n) => call(client, { judge: 'ask', n }));
  const questions = await waits(socket, 2);
  const list = await command(gateway);
  assert.equal(list.code, 0);
  assert.match(list.stdout, /^ID +SERVER +NAME +RULE/);
  const json = JSON.parse((await command(gateway, '--json')).stdout);
  assert.deepEqual(json.pending.map((one) => one.id).sort(), questions.map((one) => one.id).sort());
  const idOf = (n) => questions.find((one) => JSON.parse(one.arguments).n === n).id;
  for (const [words, code, text] of [
    [['allow', 'ffff'.padEnd(33, 'f')], 1, /pending/],
    [['allow', 'ab'], 2, /at least 4/],
    [['allow'], 2, /requires ID;/],
    [['allow', idOf(1), '--minutes', '0'], 2, /minutes/],
    [['allow', idOf(1), '--minutes', '5', '--session'], 2, /excludes/],
    [['deny', idOf(1), '--session'], 2, /./],
  ]) {
    const done = await command(gateway, ...words);
    assert.equal(done.code, code, `${words}: ${show(done)}`);
    assert.match(done.stderr, text);
  }
  const allowed = await command(gateway, 'allow', idOf(1).slice(0, 12));
  assert.deepEqual([allowed.code, allowed.stdout], [0, 'allowed: local a\n']);
  assert.deepEqual((await calls[0]).result.echo, { judge: 'ask', n: 1 });
  assert.equal((await command(gateway, 'deny', idOf(2))).code, 0);
  assert.match((await calls[1]).error.message, /needs approval, which was denied/);
  assert.equal((await command(gateway, 'deny', idOf(2))).code, 1);
  assert.equal(ran(log), 1);
  await gateway.stop();
  assert.equal((await command(gateway)).code, 3);
  assert.equal((await command(gateway, 'watch')).code, 3);
});

both('keys resolve approval requests in a watching terminal', async (t, args) => {
  const { gateway, client, log } = await asking(t, args, { approval: {} });
  const pty = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';
  const watch = spawn('python3', ['-c', pty, program, 'approvals', 'watch'], { env: { ...gateway.env(), TERM: 'xterm' } });
  t.defer(() => watch.kill('SIGKILL'));
  let screen = '';
  watch.stdout.on('data', (data) => (screen += data));
  const watching = ended(watch);
  await until('it watches', () => screen.includes('No calls are waiting'));
  const answered = async (key, n) => {
    let outcome;
    void call(client, { judge: 'ask', n }).then((got) => (outcome = got));
    await until('it is on the screen', () => screen.includes(`"n":${n}`));
    // Keys are ignored for a short time after a request has appeared.
    return until('the key is taken', async () => {
      watch.stdin.write(key);
      await new Promise((done) => setTimeout(done, 100));
      return outcome;
    });
  };
  assert.deepEqual((await answered('a', 1)).result?.echo, { judge: 'ask', n: 1 });
  assert.match((await answered('d', 2)).error.message, /needs approval, which was denied/);
  assert.ok((await answered('s', 3)).result);
  assert.ok((await call(client, { judge: 'ask', n: 3 })).result);
  assert.equal(ran(log), 3);
  watch.stdin.write('q');
  assert.equal((await watching).code, 0);
  assert.ok(screen.endsWith('\x1b[?25h\x1b[?1049l'), JSON.stringify(screen.slice(-60)));
});

test('a watch that is quit with q prints the calls that remain pending, which can still be approved', async (t) => {
  const { gateway, client, socket } = await asking(t, [], { approval: {} });
  const pty = 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))';
  const watch = spawn('python3', ['-c', pty, program, 'approvals', 'watch'], { env: { ...gateway.env(), TERM: 'xterm' } });
  t.defer(() => watch.kill('SIGKILL'));
  let screen = '';
  watch.stdout.on('data', (data) => (screen += data));
  const watching = ended(watch);
  await until('it watches', () => screen.includes('No calls are waiting'));
  const held = call(client, { judge: 'ask', n: 7 });
  const [q] = await waits(socket);
  watch.stdin.write('q');
  assert.equal((await watching).code, 0);
  const left = screen.slice(screen.lastIndexOf('\x1b[?1049l'));
  assert.match(left, /1 call is still waiting for approval/);
  assert.ok(left.includes(q.id.slice(0, 8)), left);
  assert.match(left, /bulkhead approvals allow ID/);
  assert.equal((await command(gateway, 'allow', q.id)).code, 0);
  assert.deepEqual((await held).result?.echo, { judge: 'ask', n: 7 });
});

both('after approval for a session or for minutes, the same call passes and other arguments require approval again', async (t, args) => {
  const { gateway, client, socket, log } = await asking(t, args);
  const held = call(client, { judge: 'ask', n: 1 });
  let [q] = await waits(socket);
  assert.equal((await command(gateway, 'allow', q.id, '--session')).code, 0);
  assert.ok((await held).result);
  assert.ok((await call(client, { judge: 'ask', n: 1 })).result);
  const changed = call(client, { judge: 'ask', n: 2 });
  [q] = await waits(socket);
  assert.equal(JSON.parse(q.arguments).n, 2);
  const stranger = await t.http(gateway);
  const theirs = call(stranger, { judge: 'ask', n: 1 });
  await waits(socket, 2);
  assert.equal(ran(log), 2);

  assert.equal((await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'allow', scope: { minutes: 1 } })).status, 200);
  assert.ok((await changed).result);
  assert.ok((await call(stranger, { judge: 'ask', n: 2 })).result, 'minutes hold for the client, not for one session');
  [q] = await waits(socket);
  assert.equal((await command(gateway, 'deny', q.id)).code, 0);
  assert.match((await theirs).error.message, /denied/);
});

for (const pins of ['enforce', 'off']) {
  both(`an approval does not cover a tool that changes while its call waits, pins ${pins}`, async (t, args) => {
    const server = join(import.meta.dirname, '../fixtures/changing_server.mjs');
    const files = (name) => [t.path(`${name}-flag`), t.path(`${name}-log`)];
    const mcpServers = Object.fromEntries(['one', 'two', 'same'].map((name) => [name, { command: process.execPath, args: [server, ...files(name)], sandbox: 'off' }]));
    const rules = { mcp: { look: { on: 'mcp.request', if: "mcp.request.method == 'tools/call'", decision: 'ask', reason: 'look' } } };
    const gateway = await t.gateway({ mcpServers, approval: { api: true }, pins: { mode: pins }, security: { rules } }, { args });
    const client = await t.http(gateway);
    const { socket } = await statusOf(gateway);
    await until('all are listed', async () => (await client.toolNames()).length === 3);
    const received = (name) => (existsSync(files(name)[1]) ? readFileSync(files(name)[1], 'utf8').split('\n').filter(Boolean) : []);

    const outcomes = {};
    for (const name of ['one', 'two', 'same']) {
      outcomes[name] = call(client, {}, `${name}__a`);
      await until('it waits', async () => (await pending(socket)).length === Object.keys(outcomes).length);
    }
    for (const name of ['one', 'two']) writeFileSync(files(name)[0], '');
    for (const name of ['one', 'two']) {
      const { error } = await outcomes[name];
      assert.match(error.message, pins === 'enforce' ? /tool-pin/ : /the definition of the tool changed after approval was requested/);
      assert.deepEqual(received(name), []);
    }
    const [left, ...more] = await pending(socket);
    assert.deepEqual([left.server, more], ['same', []]);
    assert.equal((await command(gateway, 'allow', left.id)).code, 0);
    assert.ok((await outcomes.same).result);
    assert.deepEqual(received('same'), ['reads']);

    const second = call(client, {}, 'one__a');
    if (pins === 'off') {
      const [q] = await waits(socket);
      assert.equal((await command(gateway, 'allow', q.id)).code, 0);
      assert.ok((await second).result);
      assert.deepEqual(received('one'), ['writes']);
    } else {
      assert.match((await second).error.message, /tool-pin/);
      assert.deepEqual(received('one'), []);
    }
  });
}

both('a call that waits is rejected if another connection of the pool reports an unapproved definition', async (t, args) => {
  const server = join(import.meta.dirname, '../fixtures/changing_server.mjs');
  const [flag, log] = [t.path('flag'), t.path('log')];
  const pool = { command: process.execPath, args: [server, flag, log], sandbox: 'off', pool_size: 2, pool_safe_tools: ['a'] };
  const rules = { mcp: { look: { on: 'mcp.request', if: "mcp.request.method == 'tools/call'", decision: 'ask', reason: 'look' } } };
  const gateway = await t.gateway({ mcpServers: { s: pool }, approval: { api: true }, pins: { mode: 'enforce' }, security: { rules } }, { args });
  const client = await t.http(gateway);
  const { socket } = await statusOf(gateway);
  assert.deepEqual(await client.toolNames(), ['s__a']);
  const lines = (file) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []);
  await until('both processes run', () => lines(`${log}.pids`).length === 2);
  const allowed = async (outcome) => {
    const [q] = await waits(socket);
    assert.equal((await command(gateway, 'allow', q.id)).code, 0);
    return outcome;
  };
  assert.ok((await allowed(call(client, {}, 's__a'))).result);

  const held = call(client, {}, 's__a');
  const [q] = await waits(socket);
  writeFileSync(flag, lines(`${log}.pids`)[1]);
  // The request is withdrawn, or the call is rejected although it was allowed before.
  await until('the change is reported', async () => (await pending(socket)).length === 0);
  await command(gateway, 'allow', q.id);
  assert.match((await held).error.message, /tool-pin/);
  for (let i = 0; i < 4; ++i) assert.match((await call(client, {}, 's__a')).error.message, /tool-pin/);
  assert.deepEqual(await client.toolNames(), [], 'the tool is hidden');
  assert.deepEqual(lines(log), ['reads']);
});

both('the approval of a tool is limited to its server and session, and expires if it is revoked or something changes', async (t, args) => {
  const definition = (name, description) => ['--tool-json', JSON.stringify({ name, description, inputSchema: { type: 'object' } })];
  const log = t.path('log');
  const servers = (text) => ({
    local: fake(...definition('a', text), ...definition('b', 'second'), '--resource', 'memo://one', '--log', log),
    other: fake(...definition('a', 'first'), '--log', log),
  });
  const rules = (reason) => ({ rules: { mcp: { look: { on: 'mcp.request', if: 'true', decision: 'ask', reason } } } });
  const profile = { mcpServers: servers('first'), approval: { api: true }, pins: { mode: 'enforce' }, security: rules('one') };
  const gateway = await t.gateway(profile, { args });
  const client = await t.http(gateway, { clientInfo: { name: 'Claude Code', version: '1' } });
  const second = await t.http(gateway, { clientInfo: { name: 'Claude Code', version: '1' } });
  await client.toolNames();
  const { socket } = await statusOf(gateway);
  const granted = async () => JSON.parse((await command(gateway, '--json')).stdout).granted;
  // Makes a call that requires approval, and denies it.
  const asks = async (who, tool, args) => {
    const outcome = call(who, args, tool);
    const [q] = await waits(socket);
    assert.equal((await command(gateway, 'deny', q.id)).code, 0);
    assert.match((await outcome).error.message, /needs approval, which was denied/);
  };
  const allow = async (tool, ...words) => {
    const outcome = call(client, { n: 0 }, tool);
    const [q] = await waits(socket);
    const done = await command(gateway, 'allow', q.id, ...words);
    assert.equal(done.code, 0, show(done));
    assert.ok((await outcome).result);
    return q.id;
  };

  for (const words of [['--tool'], ['--tool', '--minutes', '61'], ['--tool', '--minutes', '0'], ['--tool', '--session', '--minutes', '5']]) {
    assert.equal((await command(gateway, 'allow', 'ffffffff', ...words)).code, 2, words.join(' '));
  }
  // Only tools can be approved permanently, because resources have no definition that could change.
  const read = client.call('resources/read', { uri: (await client.call('resources/list')).resources[0].uri }).then((result) => ({ result }), (error) => ({ error }));
  const [resource] = await waits(socket);
  const refused = await command(gateway, 'allow', resource.id, '--tool', '--session');
  assert.equal(refused.code, 1, show(refused));
  assert.match(refused.stderr, /only a tool in its server.s tool list/);
  assert.equal((await command(gateway, 'allow', resource.id)).code, 0);
  assert.ok((await read).result);

  const id = await allow('local__a', '--tool', '--minutes', '10');
  assert.ok((await call(client, { n: 1 }, 'local__a')).result);
  assert.ok((await call(client, { n: 2, path: '/etc' }, 'local__a')).result);
  await asks(client, 'local__b', { n: 1 });
  await asks(client, 'other__a', { n: 1 });
  await asks(second, 'local__a', { n: 1 });
  const [grant] = await granted();
  assert.deepEqual([grant.id, grant.server, grant.name, grant.scope, grant.claimed_name], [id, 'local', 'a', 'tool for 10 minutes', 'Claude Code']);
  assert.ok(grant.expires_in_ms > 500_000 && grant.expires_in_ms <= 600_000, show(grant));
  const { stdout } = await command(gateway);
  assert.match(stdout, /^No calls are waiting for approval\.\n\nApprovals in force:\nID +SERVER +NAME +SCOPE +CLIENT +CLAIMED +LEFT +ARGUMENTS\n/);
  assert.match(stdout, new RegExp(`^${id.slice(0, 8)} +local +a +tool for 10 minutes +http +Claude Code +\\d+ s +any$`, 'm'));

  // The approval is revoked.
  const revoked = await command(gateway, 'revoke', id.slice(0, 6));
  assert.deepEqual([revoked.code, revoked.stdout], [0, 'revoked: local a\n']);
  assert.equal((await command(gateway, 'revoke', id)).code, 1);
  assert.deepEqual(await granted(), []);
  await asks(client, 'local__a', { n: 3 });

  // The session ends.
  const third = await t.http(gateway);
  const held = call(third, { n: 1 }, 'local__a');
  const [q] = await waits(socket);
  assert.equal((await command(gateway, 'allow', q.id, '--tool', '--session')).code, 0);
  assert.ok((await held).result);
  assert.ok((await call(third, { n: 2 }, 'local__a')).result);
  assert.deepEqual((await granted()).map((one) => [one.scope, one.expires_in_ms]), [['tool for session', undefined]]);
  await third.close();
  await until('it ends with the session', async () => (await granted()).length === 0);

  // The rules are replaced by a rule with the same name, which also decides "ask".
  const reload = async (next) => {
    writeFileSync(gateway.config, JSON.stringify(next));
    const answer = await ask(socket, 'POST', '/reload-config');
    assert.equal(answer.status, 200, show(answer));
  };
  await reload({ ...profile, limits: { asks_per_session: 7 } });  // creates pins for the first lists
  await allow('local__a', '--tool', '--session');
  await reload({ ...profile, limits: { asks_per_session: 8 } });
  assert.equal((await granted()).length, 1, 'a reload of the same rules ends nothing');
  await reload({ ...profile, security: rules('two') });
  assert.deepEqual(await granted(), []);
  await asks(client, 'local__a', { n: 4 });

  // The changed definition is approved as a pin, but the approval of the tool was for the old
  // definition.
  await allow('local__a', '--tool', '--session');
  assert.equal((await granted()).length, 1);
  await reload({ ...profile, mcpServers: servers('changed'), security: rules('two') });
  await until('the pin blocks the tool', async () => /tool-pin/.test((await call(client, {}, 'local__a')).error?.message));
  await execute(program, ['pins', 'approve', 'local', 'a', '--config', gateway.config], { env: gateway.env() });
  await asks(client, 'local__a', { n: 5 });
  assert.deepEqual(await granted(), []);
});

both('an approval request that is not resolved expires as a rejection, and nothing runs', async (t, args) => {
  const { client, log, socket } = await asking(t, args, { limits: { approval_timeout_ms: 1000 } });
  const outcome = await call(client, { judge: 'ask' });
  assert.match(outcome.error.message, /needs approval, which was not given within 1000 ms/);
  assert.deepEqual(await pending(socket), []);
  assert.equal(ran(log), 0);
});

both('the rules at the time of the approval are applied: they may block the call or ask again', async (t, args) => {
  const { client, log, socket } = await asking(t, args);
  const blocked = call(client, { judge: 'ask-then-block' });
  let [q] = await waits(socket);
  assert.equal((await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'allow' })).status, 200);
  assert.match((await blocked).error.message, /blocked by policy \(test-rule\): as the call says/);
  assert.equal(ran(log), 0);
  const later = call(client, { judge: 'later-ask' });
  [q] = await waits(socket);
  assert.equal((await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'allow' })).status, 200);
  assert.ok((await later).result);
});

both('an approval request is removed if its client cancels or disconnects', async (t, args) => {
  const { gateway, client, log, socket } = await asking(t, args);
  void call(client, { judge: 'ask' }).catch(() => {});
  await waits(socket);
  const id = client.nextId - 1;
  await client.notify('notifications/cancelled', { requestId: id });
  await waits(socket, 0);
  const other = await t.http(gateway);
  void call(other, { judge: 'ask' }).catch(() => {});
  await waits(socket);
  await other.close();
  await waits(socket, 0);
  assert.equal(ran(log), 0);
});

both('100 waiting calls occupy no slot; calls beyond the limit are rejected with its name', async (t, args) => {
  const { client, log, socket } = await asking(t, args, { limits: { approvals_waiting: 100, in_flight_per_session: 10 } });
  const calls = [];
  // While the policy decides, a call counts towards the session's limit.
  while (calls.length < 100) {
    for (let i = 0; i < 10; ++i) calls.push(call(client, { judge: 'ask', n: calls.length }));
    await waits(socket, calls.length);
  }
  const questions = await pending(socket);
  const more = await call(client, { judge: 'ask', n: 100 });
  assert.match(more.error.message, /limits\.approvals_waiting = 100/);
  // The server's max_in_flight is 1.
  assert.ok((await call(client, { judge: 'allow' })).result);
  assert.equal(ran(log), 1);
  for (const q of questions) await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'deny' });
  for (const outcome of await Promise.all(calls)) assert.match(outcome.error.message, /denied/);
  assert.equal(ran(log), 1);
});

test('approvals watch --notify shows a desktop notification without arguments, and continues without notify-send', async (t) => {
  const { gateway, client, socket } = await asking(t, []);
  const bin = t.path('bin'), shown = t.path('shown');
  mkdirSync(bin);
  writeFileSync(join(bin, 'notify-send'), `#!/bin/sh\nprintf '%s\\n' "$@" >> '${shown}'\nexec sleep 60\n`, { mode: 0o755 });
  const watch = (path) => {
    const child = spawn(program, ['approvals', 'watch', '--notify'], { env: { ...gateway.env(), PATH: path } });
    t.defer(() => child.kill('SIGKILL'));
    child.text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (child.text += data));
    return child;
  };
  const good = watch(`${bin}:/usr/bin:/bin`), none = watch('/nonexistent');
  const first = call(client, { judge: 'ask', note: 'canary-1' });
  const [question] = await waits(socket);
  const text = await until('it is shown', () => existsSync(shown) && readFileSync(shown, 'utf8').includes('bulkhead approvals') && readFileSync(shown, 'utf8'));
  assert.match(text, /^--app-name=Bulkhead\n--\nBulkhead: a call requires approval\na of server local, called by .*rule test-rule/);
  assert.ok(!text.includes('canary'), text);
  await until('the failure is reported', () => /cannot start notify-send: No such file/.test(none.text));
  // Both commands still list the requests while notify-send is running.
  await until('both list it', () => good.text.includes(question.id) && none.text.includes(question.id));
  await ask(socket, 'POST', `/confirm/${question.id}`, { decision: 'deny' });
  assert.match((await first).error.message, /denied/);
  const second = call(client, { judge: 'ask', n: 2 });
  const [next] = await waits(socket);
  await until('both list the next', () => good.text.includes(next.id) && none.text.includes(next.id));
  await until('one notification for each question', () => readFileSync(shown, 'utf8').split('--app-name').length - 1 === 2);
  await ask(socket, 'POST', `/confirm/${next.id}`, { decision: 'deny' });
  await second;
});

both('an approval for the session applies to the shown program and _meta', async (t, args) => {
  const profile = (name) => ({
    mcpServers: { local: fake('--tool', 'a', '--name', name) },
    policies: { judge: { plugin: policyPlugin } },
    approval: { api: true },
  });
  const gateway = await t.gateway(profile('one'), { args });
  const client = await t.http(gateway);
  await until('calls are decided', async () => (await call(client, { judge: 'allow' })).result);
  const { socket } = await statusOf(gateway);
  const start = (meta) => {
    const done = { answered: false };
    done.result = client.tool('local__a', { judge: 'ask' }, { meta }).then((result) => ({ result }), (error) => ({ error }))
      .finally(() => (done.answered = true));
    return done;
  };
  // Makes a call and approves it for the session.
  const allowed = async (meta) => {
    const one = start(meta);
    const [question] = await waits(socket);
    await ask(socket, 'POST', `/confirm/${question.id}`, { decision: 'allow', scope: 'session' });
    assert.ok((await one.result).result);
    return question;
  };
  assert.equal((await allowed({ progressToken: 1 })).meta, '');
  assert.ok((await start({ progressToken: 2, traceparent: 'x' }).result).result);
  assert.equal((await allowed({ force: 'yes' })).meta, '{"force":"yes"}');
  assert.ok((await start({ force: 'yes', progressToken: 3 }).result).result);
  writeFileSync(gateway.config, JSON.stringify(profile('other')));
  const { changed } = await ask(socket, 'POST', '/reload-config');
  assert.deepEqual(changed, ['local']);
  await allowed({ force: 'yes' });
});

test('if the endpoint is killed, all approval requests are rejected and nothing runs', async (t) => {
  const { gateway, client, log, socket } = await asking(t, []);
  const calls = Array.from({ length: 5 }, (_, n) => call(client, { judge: 'ask', n }));
  const questions = await waits(socket, 5);
  const endpoint = (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint');
  process.kill(endpoint.pid, 'SIGKILL');
  for (const outcome of await Promise.all(calls)) assert.ok(outcome.error, show(outcome));
  await until('it is back', async () => {
    const now = (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint');
    return now.state === 'running' && now.pid !== endpoint.pid;
  });
  assert.deepEqual(await waits(socket, 0), []);
  for (const q of questions) assert.equal((await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'allow' })).status, 404);
  assert.equal(ran(log), 0);
  const again = call(client, { judge: 'ask' });
  const [q] = await waits(socket);
  assert.equal((await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'allow' })).status, 200);
  assert.ok((await again).result);
});

test('a resolved approval request is logged without its arguments', async (t) => {
  const { gateway, client, socket } = await asking(t, []);
  const held = call(client, { judge: 'ask', api_key: 'hunter2' });
  const [q] = await waits(socket);
  await ask(socket, 'POST', `/confirm/${q.id}`, { decision: 'deny' });
  await held;
  const { log: file } = await statusOf(gateway);
  assert.ok(existsSync(file), file);
  const line = await until('the log line', () => readFileSync(file, 'utf8').split('\n').find((one) => one.includes(q.id)));
  assert.match(line, /denied by api.*"a" on server "local", rule "test-rule", digest [0-9a-f]{64}/);
  assert.ok(!readFileSync(file, 'utf8').includes('hunter2'));
});

// ---- elicitation with the official TypeScript client -------------------------------------------

async function official(t, gateway, transport, answer) {
  const seen = [];
  const client = new Client({ name: 'official', version: '1.0.0' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(types.ElicitRequestSchema, (asked) => {
    seen.push(asked.params);
    return answer(asked.params, seen.length);
  });
  await client.connect(transport ?? new StreamableHTTPClientTransport(new URL(gateway.url)));
  t.defer(() => client.close());
  const use = (args) => client.callTool({ name: 'local__a', arguments: args }).then((result) => ({ result }), (error) => ({ error }));
  return { client, seen, use };
}

both('a client that the profile trusts is asked by elicitation', async (t, args) => {
  const { gateway, log } = await asking(t, args, { approval: { elicitation: true } });
  const accept = (content) => ({ action: 'accept', content });
  const answers = [accept({ decision: 'allow' }), accept({ decision: 'deny' }), { action: 'decline' }, { action: 'cancel' },
    accept({ decision: 'allow', scope: 'session' })];
  const { seen, use } = await official(t, gateway, null, (_, n) => answers[n - 1]);
  assert.ok((await use({ judge: 'ask', n: 1, password: 'hunter2' })).result);
  assert.match(seen[0].message, /Server: local\nTool: a\nArguments: .*"n":1.*\nRule: test-rule\nReason: as the call says/);
  assert.ok(!seen[0].message.includes('hunter2'));
  for (let n = 2; n <= 4; ++n) {
    const outcome = await use({ judge: 'ask', n: 1 });
    assert.match(outcome.error?.message ?? show(outcome), /needs approval, which was denied/);
  }
  assert.ok((await use({ judge: 'ask', n: 1 })).result);
  assert.ok((await use({ judge: 'ask', n: 1 })).result);
  assert.equal(seen.length, 5);
  assert.equal(ran(log), 3);
});

both('elicitation also works over stdio; an untrusted client is not asked', async (t, args) => {
  for (const trusted of [true, false]) {
    const log = t.path(`log-${trusted}`);
    const plain = await t.stdio(profileOf(log, { approval: { elicitation: trusted } }), {
      args, capabilities: { elicitation: {} }, onAsk: () => ({ action: 'accept', content: { decision: 'allow' } }),
    });
    const outcome = await until('decided', async () => {
      const got = await call(plain, { judge: 'ask' });
      return !/policy-failed/.test(got.error?.message ?? '') && got;
    });
    if (trusted) assert.ok(outcome.result, show(outcome));
    else assert.match(outcome.error?.message ?? show(outcome), /no approval surface is available/);
    assert.equal(plain.asks.length, trusted ? 1 : 0);
    assert.equal(ran(log), trusted ? 1 : 0);
  }
});

both('the first decision counts, and the client\'s form is cancelled', async (t, args) => {
  const { gateway, log, socket } = await asking(t, args, { approval: { elicitation: true, api: true } });
  const client = await t.http(gateway, { capabilities: { elicitation: {} }, onAsk: () => null });
  const held = call(client, { judge: 'ask' });
  const [q] = await waits(socket);
  await until('the form is there', () => client.asks.length === 1);
  assert.equal((await command(gateway, 'allow', q.id)).code, 0);
  assert.ok((await held).result);
  await client.note('notifications/cancelled');
  assert.equal(ran(log), 1);
});

await run();

// Tests what identifies a client of MCP 2026-07-28, whose requests have no session: rules, budgets,
// records and approvals treat the requests of one connection, or over HTTP of one peer, as those of one
// client.
import { request } from 'node:http';
import { assert, fake, run, show, test, until } from './lib.mjs';
import { PREFIX, httpOf, meta } from './stateless_client.mjs';
import { Records } from './records.mjs';
import { statusOf } from './status.mjs';

const modes = [['in compartments', []], ['in one process', ['--single-process']]];

function service(socketPath, method, path, body) {
  return new Promise((done, failed) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const req = request({ socketPath, method, path, headers: { 'Content-Length': Buffer.byteLength(text) } }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done({ status: res.statusCode, ...JSON.parse(data) }));
    });
    req.on('error', failed);
    req.end(text);
  });
}
// Sends a call and resolves with "ok", or with the message of its error.
const outcome = ({ answer }) => (answer.result ? 'ok' : answer.error.message);
const named = (name) => ({ more: { [`${PREFIX}clientInfo`]: { name, version: '1' } } });

for (const [mode, args] of modes) {
  const rules = {
    few: { on: 'mcp.request', if: 'mcp.request.tool_name == "x"', decision: 'block', reason: 'too many', over: { calls: 3, per: '1h' } },
    fifth: { on: 'mcp.request', if: 'mcp.request.tool_name == "y" && session.calls > 5', decision: 'block', reason: 'the sixth call' },
  };
  const profile = { mcpServers: { a: fake('--tool', 'x', '--tool', 'y') }, security: { rules: { mcp: rules } }, telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } } };

  test(`budgets and session.calls count all requests of a client, ${mode}`, async (t) => {
    const gateway = await t.gateway(profile, { args });
    const http = await httpOf(t, gateway), other = await httpOf(t, gateway);
    const call = async (client, name) => outcome(await client.send('tools/call', { name, arguments: {} }));
    const seen = [];
    // Another connection, and another claimed name, do not give a client a new budget.
    for (const client of [http, other, http, other, http]) seen.push(await call(client, 'a__x'));
    assert.deepEqual(seen.slice(0, 3), ['ok', 'ok', 'ok']);
    for (const message of seen.slice(3)) assert.match(message, /too many/);
    assert.match(outcome(await http.send('tools/call', { name: 'a__x' }, named('another'))), /too many/);
    assert.match(await call(http, 'a__y'), /the sixth call/);
    // Records have one number for all of them.
    const records = new Records(gateway);
    const rows = () => records.rows("SELECT session FROM mcp_calls WHERE method = 'tools/call' ORDER BY id");
    await until('all calls are recorded', async () => (await rows()).length === 7);
    const sessions = (await rows()).map(([session]) => session);
    assert.equal(new Set(sessions).size, 1, show(sessions));
    assert.match(sessions[0], /^[1-9]\d*$/);
    // Clients with a session have budgets of their own.
    const old = [await t.http(gateway), await t.http(gateway)];
    for (const client of old) {
      for (let n = 0; n < 3; ++n) assert.ok(await client.tool('a__x'));
      await assert.rejects(client.tool('a__x'), /too many/);
    }
    await until('they are recorded', async () => (await rows()).length === 15);
    assert.equal(new Set((await rows()).map(([session]) => session)).size, 3);
  });

  test(`on a pipe, the connection is the client, ${mode}`, async (t) => {
    for (let pipes = 0; pipes < 2; ++pipes) {
      const pipe = await t.stdio(profile, { initialize: false, args: [...args, '--own'] });
      const call = (name) => pipe.call('tools/call', { name, arguments: {}, _meta: meta() });
      for (let n = 0; n < 3; ++n) assert.equal((await call('a__x')).resultType, 'complete');
      await assert.rejects(call('a__x'), /too many/);
      assert.equal((await call('a__y')).resultType, 'complete');
      await assert.rejects(call('a__y'), /the sixth call/);
    }
  });

  test(`an approval for a tool holds for the client, and not for a session that does not exist, ${mode}`, async (t) => {
    const gateway = await t.gateway({
      mcpServers: { a: fake('--tool', 'x', '--tool', 'y') },
      security: { rules: { mcp: { human: { on: 'mcp.request', if: 'true', decision: 'ask' } } } },
      approval: { api: true },
    }, { args });
    const { socket } = await statusOf(gateway);
    const http = await httpOf(t, gateway);
    const asks = async (options, name, given, scope) => {
      const answer = http.send('tools/call', { name, arguments: given }, options);
      let pending = [];
      await until('it waits', async () => (pending = (await service(socket, 'GET', '/confirm/pending')).pending).length === 1);
      const [question] = pending;
      assert.equal(question.meta, '', 'the protocol\'s own members are not shown');
      for (const bad of ['session', { tool: true }]) {
        const refused = await service(socket, 'POST', `/confirm/${question.id}`, { decision: 'allow', scope: bad });
        assert.equal(refused.status, 400, show(refused));
        assert.match(JSON.stringify(refused), /has no session/);
      }
      const done = await service(socket, 'POST', `/confirm/${question.id}`, scope ? { decision: 'allow', scope } : { decision: 'deny' });
      assert.equal(done.status, 200, show(done));
      return outcome(await answer);
    };
    const passes = async (options, name, given) => outcome(await http.send('tools/call', { name, arguments: given }, options));
    assert.equal(await asks(named('one'), 'a__x', { n: 1 }, { tool: true, minutes: 10 }), 'ok');
    for (let n = 2; n < 5; ++n) assert.equal(await passes(named('one'), 'a__x', { n }), 'ok');
    assert.match(await asks(named('two'), 'a__x', { n: 1 }), /denied/);
    assert.match(await asks(named('one'), 'a__y', { n: 1 }), /denied/);
    // Exactly the same call.
    assert.equal(await asks(named('one'), 'a__y', { n: 1 }, { minutes: 5 }), 'ok');
    assert.equal(await passes(named('one'), 'a__y', { n: 1 }), 'ok');
    assert.match(await asks(named('one'), 'a__y', { n: 2 }), /denied/);
  });
}

await run();

// Attacks on parked calls of clients of MCP 2026-07-28: forged and replayed requestState, clients that
// park any number of calls, never repeat their requests or cycle through capability sets, and a server
// that asks for ever. The expiry of a requestState takes more than a minute; see sealed_state_test.cpp.
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { assert, fake, run, show, sleep, test, until } from '../e2e/lib.mjs';
import { Guest } from '../e2e/frames.mjs';
import { ANSWERS, ASKS, CAPABLE, answering, asked, asker, asking, call, calls, modes, refused } from '../e2e/parked_client.mjs';
import { PREFIX, httpOf, lines, meta } from '../e2e/stateless_client.mjs';
import { statusOf } from '../e2e/status.mjs';

const forged = /not one that this gateway has issued/;

// A server over HTTP whose tool `ask` requests an elicitation on the stream of the call, and returns
// the answer. `running` has the calls that have not ended, `cancelled` counts cancelled calls, and
// `answers` the answers to elicitations.
async function startAsking(t) {
  const server = { running: new Map(), cancelled: 0, answers: { result: 0, error: 0 }, calls: 0 };
  let next = 0;
  const web = createServer((request, response) => {
    let text = '';
    request.on('data', (data) => (text += data)).on('end', () => {
      if (request.method !== 'POST') return response.writeHead(405).end();
      const { id, method, params, ...rest } = JSON.parse(text);
      const reply = (result) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      };
      if (method === 'initialize') return reply({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'asking', version: '1' } });
      if (method === 'tools/list') return reply({ tools: [{ name: 'ask', inputSchema: { type: 'object' } }] });
      if (method === 'tools/call') {
        const key = `q${++next}`;
        ++server.calls;
        server.running.set(key, { id, response });
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        return response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: key, ...ASKS.elicit })}\n\n`);
      }
      if (method === undefined) {
        const one = server.running.get(id);
        server.running.delete(id);
        ++server.answers[rest.result ? 'result' : 'error'];
        const result = { content: [{ type: 'text', text: JSON.stringify(rest.result ?? rest.error) }] };
        one?.response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: one.id, result })}\n\n`);
      }
      if (method === 'notifications/cancelled') {
        ++server.cancelled;
        for (const [key, one] of server.running) {
          if (one.id !== params.requestId) continue;
          server.running.delete(key);
          one.response.end();
        }
      }
      return response.writeHead(202).end();
    });
  });
  await new Promise((done) => web.listen(0, '127.0.0.1', done));
  t.defer(() => web.close());
  t.defer(() => web.closeAllConnections());
  return Object.assign(server, { url: `http://127.0.0.1:${web.address().port}/mcp` });
}

// Makes `count` calls of h__ask, each on one of `connections`. Resolves with the number of calls for
// which the client was asked for input, and their results.
async function park(connections, count, first = 0) {
  let n = first;
  const parked = [], others = new Set();
  await Promise.all(connections.map(async (http) => {
    while (n < first + count) {
      const args = { n: n++ };
      const { answer } = await call(http, 'h__ask', { args });
      if (answer.result?.resultType === 'input_required') parked.push({ http, args, result: answer.result });
      else others.add(answer.result?.content?.[0].text ?? show(answer));
    }
  }));
  return { parked, others };
}
const many = (t, gateway, count) => Promise.all(Array.from({ length: count }, () => httpOf(t, gateway)));
const answered = async (http, { args, result }) => (await call(http, 'h__ask', { args }, answering(result, ANSWERS.elicit))).answer;

for (const [mode, args] of modes) {
  test(`a requestState with any changed bit or length is rejected, and another request cannot use it, ${mode}`, async (t) => {
    const log = t.path('log');
    const socket = t.path('guest.sock');
    const gateway = await t.gateway({
      transports: {
        http: { plugin: 'transport-http', listen: '127.0.0.1:0' },
        guests: { plugin: 'transport-vsock', listen: `unix:${socket}` },
      },
      mcpServers: { a: asking(log), b: asking(t.path('b')) },
    }, { listen: null, args });
    const http = await httpOf(t, gateway);
    const interim = await asked(http, 'a__elicit');
    const good = answering(interim, ANSWERS.elicit);
    const state = good.requestState;
    const bytes = Buffer.from(state, 'base64url');
    assert.equal(bytes.toString('base64url'), state);
    const bad = new Set();
    for (let i = 0; i < bytes.length; ++i) {
      const flipped = Buffer.from(bytes);
      flipped[i] ^= 1 << (i % 8);
      bad.add(flipped.toString('base64url'));
      bad.add(bytes.subarray(0, i).toString('base64url'));
    }
    for (let i = 0; i < state.length; ++i) bad.add(`${state.slice(0, i)}${state[i] === '_' ? '-' : '_'}${state.slice(i + 1)}`);
    for (const more of [`${state}A`, `${state}=`, ` ${state}`, `${state}\0`, state + state, `G1.${state}`, 'x'.repeat(1 << 20)]) bad.add(more);
    for (const requestState of bad) await refused(http, 'a__elicit', { ...good, requestState }, forged);
    // Another tool, server, method, argument or principal.
    for (const name of ['a__sample', 'b__elicit', 'a__x']) await refused(http, name, good, /another method, name or URI/);
    await refused(http, 'a__elicit', good, /another method, name or URI/, { method: 'prompts/get' });
    for (const other of [{}, { n: 2 }, { n: '1' }, { n: 1, m: null }]) await refused(http, 'a__elicit', good, /other arguments/, { args: other });
    const guest = new Guest(t, socket);
    const stolen = await guest.request('tools/call', { name: 'a__elicit', arguments: { n: 1 }, _meta: meta(CAPABLE), ...good });
    assert.equal(stolen.error.code, -32602, show(stolen));
    assert.match(stolen.error.message, /issued to another client/);
    assert.deepEqual(calls(log), ['elicit'], 'none of this has reached a server');
    assert.deepEqual(calls(t.path('b')), []);
    // The call is unchanged. A replay gets the stored result, and nothing runs twice.
    const { answer } = await call(http, 'a__elicit', {}, good);
    assert.deepEqual(answer.result.asked, { result: ANSWERS.elicit }, show(answer));
    for (let i = 0; i < 20; ++i) assert.deepEqual((await call(http, 'a__elicit', {}, good)).answer.result.asked, answer.result.asked);
    await refused(http, 'a__elicit', answering(interim, { action: 'decline' }), /with other inputResponses/);
    assert.deepEqual(calls(log), ['elicit']);
  }, { timeout: 120_000 });

  test(`10,000 parked calls of one client keep no other client from being asked, ${mode}`, async (t) => {
    const server = await startAsking(t);
    const gateway = await t.gateway({ mcpServers: { h: { url: server.url } } }, { args });
    const [victim, attackers] = [await httpOf(t, gateway), await many(t, gateway, 4)];
    // The first call of the victim is asked for input before the attack, and answered after it.
    const [early] = (await park([victim], 1)).parked;
    assert.ok(early);
    const kept = [];
    for (let n = 1000; n <= 10_000; n += 1000) {
      const { parked, others } = await park(attackers, 1000, n);
      kept.push(...parked);
      for (const text of others) assert.match(text, /the client cannot be asked: too many open requests for input of this client \(limit: 64\)|-32602.*too many calls wait for input/);
      const during = await park([victim], 1, 100_000 + n);
      assert.equal(during.parked.length, 1, 'the victim is asked');
      assert.equal((await answered(victim, during.parked[0])).result?.content[0].text, JSON.stringify(ANSWERS.elicit));
    }
    assert.ok(kept.length >= 63, `${kept.length}`);
    assert.ok(server.running.size <= 64 + attackers.length, `${server.running.size}`);
    assert.equal((await answered(victim, early)).result?.content[0].text, JSON.stringify(ANSWERS.elicit));
    // The calls that made room were cancelled at the server, and their client gets the reason.
    const ends = await Promise.all(kept.map((one) => answered(one.http, one)));
    const reasons = ends.filter(({ error }) => error).map(({ error }) => `${error.code} ${error.message}`);
    assert.ok(reasons.length > 0);
    for (const reason of reasons) assert.match(reason, /^-32602 the call of this requestState was cancelled, and may have run: too many calls wait for input/);
    await until('the server is notified', () => server.cancelled >= reasons.length);
    await until('no call remains', () => server.running.size === 0);
  }, { timeout: 400_000 });

  test(`a client that uses a connection for each call keeps no other client from being asked, ${mode}`, async (t) => {
    const server = await startAsking(t);
    const gateway = await t.gateway({ mcpServers: { h: { url: server.url } } }, { args });
    const victim = await httpOf(t, gateway);
    for (let turn = 0; turn < 3; ++turn) {
      for (let n = 0; n < 100; n += 10) {
        const { parked } = await park(await many(t, gateway, 10), 10, turn * 1000 + n);
        assert.equal(parked.length, 10);
      }
      const mine = await park([victim], 1, 100_000 + turn);
      assert.equal(mine.parked.length, 1);
      assert.equal((await answered(victim, mine.parked[0])).result?.content[0].text, JSON.stringify(ANSWERS.elicit));
    }
  }, { timeout: 120_000 });

  test(`the limits of a client without a session count its requests together, ${mode}`, async (t) => {
    const gateway = await t.gateway({
      mcpServers: { s: fake('--tool', 'slow', '--delay', 'slow=60000'), a: fake('--tool', 'x') },
      approval: { api: true },
      security: { rules: { mcp: { guard: { on: 'mcp.request', if: 'mcp.request.tool_name == "x"', decision: 'ask' } } } },
      limits: { in_flight_per_session: 20, approvals_per_session: 4 },
    }, { args });
    const http = await httpOf(t, gateway);
    const outcome = (name) => {
      const ended = new AbortController();
      t.defer(() => ended.abort());
      return Promise.race([call(http, name, { signal: ended.signal }).then(({ answer }) => answer.error?.message ?? 'done', () => 'gone'), sleep(3000).then(() => 'waits')]);
    };
    const approvals = await Promise.all(Array.from({ length: 6 }, () => outcome('a__x')));
    assert.equal(approvals.filter((text) => text === 'waits').length, 4, show(approvals));
    for (const text of approvals) assert.match(text, /waits|limits\.approvals_per_session = 4/);
    const slow = await Promise.all(Array.from({ length: 20 }, () => outcome('s__slow')));
    assert.equal(slow.filter((text) => text === 'waits').length, 16, show(slow));
    for (const text of slow) assert.match(text, /waits|limits\.in_flight_per_session = 20/);
    // A client with a session is not affected.
    const old = await t.http(gateway);
    assert.equal((await old.call('tools/list')).tools.length, 2);
  }, { timeout: 120_000 });

  test(`a client that cycles through capability sets uses few processes, and others get their set, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({ mcpServers: { a: { ...fake('--tool', 'elicit', '--ask', `elicit=${JSON.stringify(ASKS.elicit)}`, '--log', log), sandbox: 'off' } } }, { args });
    const http = await httpOf(t, gateway);
    const processes = () => readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0].endsWith('fake_mcp') && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(log);
      } catch {
        return false;
      }
    }).length;
    const sets = [{ sampling: {} }, { sampling: { tools: {} } }, { sampling: { context: {} } }, { elicitation: { url: {} } },
      { elicitation: { url: {} }, sampling: {} }, { elicitation: { form: {} }, sampling: {} }, { elicitation: {}, sampling: { tools: {} } }];
    const use = (set) => http.result('tools/list', {}, { more: { [`${PREFIX}clientCapabilities`]: set } });
    for (let turn = 0; turn < 50; ++turn) for (const set of sets) await use(set);
    assert.ok(processes() >= 1 && processes() <= 5, `${processes()}`);
    // A later client gets its set when one has not been used for 5 s. The set of a parked call is not replaced.
    await sleep(5500);
    const interim = await asked(http, 'a__elicit');
    for (let turn = 0; turn < 3; ++turn) {
      for (const set of sets) await use(set);
      await sleep(5100);
      assert.ok(processes() <= 6, `${processes()}`);
    }
    assert.deepEqual((await call(http, 'a__elicit', {}, answering(interim, ANSWERS.elicit))).answer.result.asked, { result: ANSWERS.elicit });
  }, { timeout: 120_000 });

  test(`neither a client that never repeats its request nor a server that asks for ever leaves anything behind, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({ mcpServers: { e: asker(t), a: asking(log) }, limits: { ask_timeout_ms: 2000 } }, { args });
    const http = await httpOf(t, gateway);
    const silent = [];
    for (let n = 0; n < 20; ++n) silent.push({ n, interim: await asked(http, 'a__elicit', { args: { n } }) });
    let rounds = 0;
    let { answer } = await call(http, 'e__ever');
    for (; answer.result?.resultType === 'input_required' && rounds < 200; ++rounds) {
      ({ answer } = await call(http, 'e__ever', {}, answering(answer.result, ANSWERS.elicit)));
    }
    assert.equal(rounds, 100);
    assert.match(answer.result.content[0].text, /the client cannot be asked: .*100 rounds/);
    await until('the calls are cancelled', () => lines(log, '<', 'notifications/cancelled').length === 20);
    for (const { n, interim } of silent) await refused(http, 'a__elicit', answering(interim, ANSWERS.elicit), /has ended, and may have run/, { args: { n } });
    assert.equal((await call(http, 'a__x')).answer.result.content[0].text, 'fake/x');
    assert.equal(calls(log).filter((name) => name === 'elicit').length, 20);
    assert.equal((await statusOf(gateway)).in_flight, 0);
  }, { timeout: 120_000 });
}

await run();

// Attempts to lock out other clients, to open sessions from web pages, to start lazy servers
// without a request for them, and to display misleading names.
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { assert, fake, run, show, sleep, test, until } from '../e2e/lib.mjs';
import { ask, statusOf } from '../e2e/status.mjs';

const modes = [['in compartments', []], ['in one process', ['--single-process']]];
const initialize = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}';
const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const jsonHeaders = 'Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n';

// Sends a POST request. Resolves with {status, session}. Rejects if there is no response within 5
// s.
function post(gateway, body, { session, agent = false, from } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request({
      host: '127.0.0.1', port: gateway.port, path: '/mcp', method: 'POST', agent, localAddress: from, timeout: 5000,
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...(session && { 'mcp-session-id': session }) },
    }, (res) => {
      res.resume().on('end', () => resolve({ status: res.statusCode, session: res.headers['mcp-session-id'] })).on('error', reject);
    });
    request.on('timeout', () => request.destroy(new Error('no answer'))).on('error', reject).end(body);
  });
}
// Opens a connection that stays open until the test finishes, and writes `text`. Resolves when the
// text was written. Calls `ended(bytes)` when the gateway has closed the connection.
function hold(t, gateway, text, ended = () => {}) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(gateway.port, '127.0.0.1', () => socket.write(text, resolve));
    t.defer(() => socket.destroy());
    let got = '';
    socket.on('data', (data) => { got += data; }).on('end', () => ended(got)).on('error', (error) => (/ECONNRESET|EPIPE/.test(error.code) ? resolve() : reject(error)));
  });
}
const rawPost = (gateway, session, body) =>
  `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\n${jsonHeaders}${session ? `Mcp-Session-Id: ${session}\r\n` : ''}Content-Length: ${body.length}\r\n\r\n${body}`;

// Starts `n` handshakes on one connection, 200 at a time, and does not complete them. Resolves with
// the number of responses with status 200.
function flood(t, gateway, n) {
  const request = rawPost(gateway, '', initialize);
  return new Promise((resolve, reject) => {
    let sent = 0, answered = 0, good = 0, tail = '';
    const more = () => {
      const now = Math.min(200, n - sent);
      sent += now;
      socket.write(request.repeat(now));
    };
    const socket = net.connect(gateway.port, '127.0.0.1', more);
    t.defer(() => socket.destroy());
    socket.on('error', reject).on('close', () => reject(new Error(`closed after ${answered} answers`)));
    socket.on('data', (data) => {
      const text = tail + data;
      let end = 0;
      for (const { 0: line, 1: status, index } of text.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        ++answered;
        good += status === '200' ? 1 : 0;
        end = index + line.length;
      }
      tail = text.slice(Math.max(end, text.length - 11));
      if (answered < sent) return;
      if (sent < n) more();
      else resolve(good);
    });
  });
}

// Ways in which a client can hold many connections. The table holds 72 connections (twice the
// number of sessions, plus 64).
const holds = {
  'without a request': () => '',
  'with half a head': (gateway) => `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\n`,
  'with half a body': (gateway) => rawPost(gateway, '', initialize).slice(0, -5),
  'of HTTP+SSE': (gateway) => `GET /sse HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAccept: text/event-stream\r\n\r\n`,
  'that listen': (gateway, session) => `GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAccept: text/event-stream\r\nMcp-Session-Id: ${session}\r\n\r\n`,
  'that have had an answer': (gateway, session) => rawPost(gateway, session, '{"jsonrpc":"2.0","id":5,"method":"ping"}'),
  'that wait for calls': (gateway, session, i) => rawPost(gateway, session, `{"jsonrpc":"2.0","id":${i + 10},"method":"tools/call","params":{"name":"a__slow","arguments":{}}}`),
};
for (const [mode, args] of modes) {
  for (const [what, text] of Object.entries(holds)) {
    test(`red team: connections ${what} lock no client out, ${mode}`, async (t) => {
      const go = t.path('go');
      const gateway = await t.gateway({ limits: { sessions: 4 }, mcpServers: { a: fake('--tool', 'x', '--tool', 'slow', '--hold', `slow=${go}`) } }, { args });
      const victim = await t.http(gateway);
      assert.equal((await victim.tool('a__x')).content[0].text, 'fake/x');
      const evil = [];
      for (let i = 0; i < 3; ++i) evil.push(await t.http(gateway, { leaveOpen: true }));
      // Connections are opened in rounds, because most would otherwise be closed before the gateway
      // reads from them.
      for (let i = 0; i < 150; ++i) {
        await hold(t, gateway, text(gateway, evil[i % 3].session, i));
        if (i % 15 === 14) await sleep(40);
      }
      const statuses = [];
      for (let i = 0; i < 3; ++i) statuses.push((await post(gateway, initialize)).status);
      const said = await victim.tool('a__x').then((result) => result.content[0].text, (error) => error.message);
      writeFileSync(go, ''); // lets the calls finish
      assert.deepEqual({ statuses, said }, { statuses: [200, 200, 200], said: 'fake/x' });
    });
  }

  test(`red team: a request that arrives slowly survives a flood of waiting calls, ${mode}`, async (t) => {
    const go = t.path('go');
    const gateway = await t.gateway({ limits: { sessions: 4 }, mcpServers: { a: fake('--tool', 'x', '--tool', 'slow', '--hold', `slow=${go}`) } }, { args });
    const victim = await t.http(gateway, { leaveOpen: true });
    const evil = await t.http(gateway, { leaveOpen: true });
    const text = rawPost(gateway, victim.session, '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__x","arguments":{}}}');
    const socket = net.connect(gateway.port, '127.0.0.1', () => socket.write(text.slice(0, -9)));
    t.defer(() => socket.destroy());
    let got = '';
    const answered = new Promise((resolve) => socket.on('data', (data) => {
      got += data;
      if (got.includes('fake/x')) resolve();
    }).on('error', resolve).on('close', resolve));
    for (let i = 0; i < 150; ++i) {
      await hold(t, gateway, holds['that wait for calls'](gateway, evil.session, i));
      if (i % 15 === 14) await sleep(40);
    }
    socket.write(text.slice(-9));
    await answered;
    writeFileSync(go, ''); // lets the calls finish
    assert.match(got, /^HTTP\/1\.1 200 [^]*fake\/x/);
  });

  test(`red team: calls that are dropped for a new client fail with the reason, ${mode}`, async (t) => {
    const go = t.path('go');
    const gateway = await t.gateway({ limits: { sessions: 4 }, mcpServers: { a: fake('--tool', 'x', '--tool', 'slow', '--hold', `slow=${go}`) } }, { args });
    const greedy = await t.http(gateway, { leaveOpen: true });
    const answers = [];
    for (let i = 0; i < 90; ++i) {
      await hold(t, gateway, holds['that wait for calls'](gateway, greedy.session, i), (bytes) => answers.push(bytes));
      if (i % 15 === 14) await sleep(40);
    }
    assert.equal((await post(gateway, initialize)).status, 200);
    const refused = await until('a refused call', () => answers.find((bytes) => bytes.startsWith('HTTP/1.1 503')));
    writeFileSync(go, ''); // lets the calls finish
    const [head, body] = refused.split('\r\n\r\n');
    assert.match(head, /\r\nRetry-After: 5\b/);
    const { error } = JSON.parse(body);
    assert.equal(error.code, -32000);
    assert.match(error.message, /^Too many connections/);
  });

  test(`red team: a handshake succeeds after 70,000 others, and a session survives them, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 32 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const victim = await t.http(gateway);
    const slow = await post(gateway, initialize);
    assert.equal(await flood(t, gateway, 70_000), 70_000);
    const { counters } = await statusOf(gateway);
    assert.ok(Object.entries(counters).some(([name, n]) => name.endsWith('http.sessions_evicted') && n >= 70_000 - 32), show(JSON.stringify(counters)));
    assert.equal((await post(gateway, initialized, { session: slow.session })).status, 202);
    const call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a__x","arguments":{}}}';
    assert.equal((await post(gateway, call, { session: slow.session })).status, 200);
    const { session } = victim;
    assert.equal((await victim.tool('a__x')).content[0].text, 'fake/x');
    assert.equal(victim.session, session);
  }, { timeout: 120_000 });

  test(`red team: calls succeed although the table is full of other clients' sessions, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 32 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const victims = [await t.http(gateway), await t.http(gateway), await t.http(gateway)];
    const sessions = victims.map((victim) => victim.session);
    // Each client has its own connection and has completed its handshake. All of these addresses
    // are loopback addresses, which count as one peer. peers.mjs has several peers.
    for (let i = 2; i < 130; ++i) {
      const from = `127.0.0.${i}`;
      const opened = await post(gateway, initialize, { from });
      assert.equal(opened.status, 200);
      assert.equal((await post(gateway, initialized, { from, session: opened.session })).status, 202);
    }
    for (const victim of victims) assert.equal((await victim.tool('a__x')).content[0].text, 'fake/x');
    assert.deepEqual(victims.map((victim) => victim.session), sessions);
  });
}

const list = '{"jsonrpc":"2.0","id":7,"method":"tools/list"}';
const remove = (gateway, session) => fetch(gateway.url, { method: 'DELETE', headers: { 'mcp-session-id': session } }).then((res) => res.status);
const begin = async (gateway) => {
  const { session } = await post(gateway, initialize);
  assert.equal((await post(gateway, initialized, { session })).status, 202);
  return session;
};
// Opens enough sessions to evict all earlier sessions.
const evictAll = async (gateway, n) => {
  for (let i = 0; i < n; ++i) await begin(gateway);
};

for (const [mode, args] of modes) {
  test(`red team: a sealed id restores only its own session, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 16 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const [mine, other] = [await begin(gateway), await begin(gateway)];
    const [[id, seal], [otherId, otherSeal]] = [mine.split('.'), other.split('.')];
    await evictAll(gateway, 16);
    const flipped = (text, at) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
    const forged = [
      id, `${id}.`, `${id}.${otherSeal}`, `${otherId}.${seal}`, `${mine}.${seal}`, `${mine}=`, `${mine}A`, mine.slice(0, -1), `${id}..${seal}`,
      `${flipped(id, 0)}.${seal}`, `${id.toUpperCase()}.${seal}`.replace(id, '0'.repeat(id.length)),
      ...Array.from({ length: seal.length }, (_, at) => `${id}.${flipped(seal, at)}`),
    ];
    for (const session of forged) assert.equal((await post(gateway, list, { session })).status, 404, session);
    assert.equal((await post(gateway, list, { session: mine })).status, 200);
    assert.equal((await post(gateway, list, { session: other })).status, 200);
  });

  test(`red team: a closed session cannot be restored, even if it was evicted or resumed before, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 16 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const [open, evicted, restored] = [await begin(gateway), await begin(gateway), await begin(gateway)];
    assert.equal(await remove(gateway, open), 204);
    await evictAll(gateway, 16);
    assert.equal(await remove(gateway, evicted), 204, 'a session that is evicted can be ended');
    assert.equal((await post(gateway, list, { session: restored })).status, 200);
    assert.equal(await remove(gateway, restored), 204);
    for (const session of [open, evicted, restored]) {
      assert.equal((await post(gateway, list, { session })).status, 404);
      assert.equal(await remove(gateway, session), 404);
    }
    await evictAll(gateway, 16);
    for (const session of [open, evicted, restored]) assert.equal((await post(gateway, list, { session })).status, 404);
  });

  test(`red team: simultaneous requests with one sealed id restore one session, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 16 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const session = await begin(gateway);
    await evictAll(gateway, 16);
    const before = (await statusOf(gateway)).sessions;
    const answers = await Promise.all(Array.from({ length: 40 }, () => post(gateway, list, { session })));
    assert.deepEqual(answers.map((one) => one.status), Array(40).fill(200));
    assert.deepEqual((await statusOf(gateway)).sessions, before);
  });
}

test('red team: after the endpoint is killed, a closed session cannot be restored, and other sessions continue', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  const [first, second, open] = [await begin(gateway), await begin(gateway), await begin(gateway)];
  const endpoint = async () => (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint' && one.state === 'running')?.pid;
  const restart = async () => {
    const pid = await endpoint();
    process.kill(pid, 'SIGKILL');
    await until('there is another endpoint', async () => { const next = await endpoint().catch(() => undefined); return next && next !== pid; });
  };
  assert.equal(await remove(gateway, first), 204);
  await restart();
  assert.equal(await remove(gateway, second), 204);
  for (let round = 0; round < 2; ++round) {
    for (const session of [first, second]) assert.equal((await post(gateway, list, { session })).status, 404);
    assert.equal((await post(gateway, list, { session: open })).status, 200);
    await restart();
  }
});

test('red team: a sealed id of another gateway opens no session', async (t) => {
  const profile = { limits: { sessions: 16 }, mcpServers: { a: fake('--tool', 'x') } };
  const [one, other] = [await t.gateway(profile), await t.gateway(profile)];
  const session = await begin(one);
  assert.equal((await post(other, list, { session })).status, 404);
  assert.equal((await post(one, list, { session })).status, 200);
});

test('red team: a restored session is subject to the current rules', async (t) => {
  const profile = (rules) => ({ limits: { sessions: 16 }, mcpServers: { a: fake('--tool', 'x', '--tool', 'y') }, ...rules });
  const gateway = await t.gateway(profile({}));
  const session = await begin(gateway);
  const call = (name) => fetch(gateway.url, {
    method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-session-id': session },
    body: JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name, arguments: {} } }),
  }).then((res) => res.text());
  assert.match(await call('a__x'), /fake\/x/);
  await evictAll(gateway, 16);
  writeFileSync(gateway.config, JSON.stringify(profile({ security: { rules: { mcp: { no: { on: 'mcp.request', if: 'mcp.request.tool_name == "x"', decision: 'block' } } } } })));
  assert.equal((await ask(gateway, 'POST', '/reload-config')).success, true);
  assert.match(await call('a__x'), /blocked by policy/);
  assert.match(await call('a__y'), /fake\/y/);
});

// Sends a request with these header lines on a new connection. Returns the status.
const statusFor = (gateway, method, path, lines) => new Promise((resolve, reject) => {
  const socket = net.connect(gateway.port, '127.0.0.1', () =>
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAccept: text/event-stream\r\n${lines}\r\n\r\n`));
  socket.once('data', (data) => {
    socket.destroy();
    resolve(Number(String(data).slice(9, 12)));
  });
  socket.on('error', reject);
});

test('red team: web pages cannot open a session, with or without an Origin', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  const before = (await statusOf(gateway)).sessions;
  for (const lines of [
    'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Site: same-site', 'sec-fetch-site:\tCROSS-SITE ', 'Sec-Fetch-Site: none, cross-site',
    'Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site', 'Sec-Fetch-Site: cross-site\r\nSec-Fetch-Site: none', 'Origin:\r\nSec-Fetch-Site: cross-site',
    'Origin: null', 'Origin: http://127.0.0.1.example.com', 'Origin: http://localhost\r\nOrigin: http://example.com', 'Origin: http://example.com\r\nSec-Fetch-Site: none',
  ]) {
    for (const [method, path] of [['GET', '/sse'], ['HEAD', '/sse'], ['OPTIONS', '/sse'], ['GET', '/mcp'], ['DELETE', '/mcp']]) {
      const status = await statusFor(gateway, method, path, lines);
      assert.ok(status === 403 || status === 400, `${method} ${path} with ${JSON.stringify(lines)}: ${status}`);
    }
  }
  assert.deepEqual((await statusOf(gateway)).sessions, before);
  for (const lines of ['X: y', 'Sec-Fetch-Site: none', 'Sec-Fetch-Site: same-origin']) assert.equal(await statusFor(gateway, 'GET', '/sse', lines), 200, lines);
});

// The lazy servers that each request starts, out of three whose lists are unknown. A URI that names
// no server may be an original URI of any of them.
const asks = {
  'a tool of one': [(client) => client.tool('one__x'), 'one'],
  'a tool that one lacks': [(client) => client.tool('one__none'), 'one'],
  'a resource of one': [(client) => client.call('resources/read', { uri: 'bulkhead://one/mem://r' }), 'one'],
  'a prompt of one': [(client) => client.call('prompts/get', { name: 'one__p' }), 'one'],
  'a completion of one': [(client) => client.call('completion/complete', { ref: { type: 'ref/prompt', name: 'one__p' }, argument: { name: 'a', value: 'b' } }), 'one'],
  'a tool of an unknown server': [(client) => client.tool('unknown__x'), ''],
  'a tool without a prefix': [(client) => client.tool('x'), ''],
  'a tool without a name': [(client) => client.tool('__x'), ''],
  'a prompt without a prefix': [(client) => client.call('prompts/get', { name: 'p' }), ''],
  'a resource of an unknown server': [(client) => client.call('resources/read', { uri: 'bulkhead://unknown/mem://r' }), ''],
  'a ping': [(client) => client.call('ping'), ''],
  'a level of the log': [(client) => client.call('logging/setLevel', { level: 'debug' }), ''],
  'changed roots': [(client) => client.notify('notifications/roots/list_changed'), ''],
};
test('red team: a request starts only the lazy server that it names', async (t) => {
  for (const [what, [ask, wanted]] of Object.entries(asks)) {
    const logs = Object.fromEntries(['one', 'two', 'three'].map((name) => [name, t.path(`${name}-${what.replaceAll(' ', '-')}`)]));
    const mcpServers = Object.fromEntries(Object.entries(logs).map(([name, log]) => [name, { ...fake('--tool', 'x', '--resource', 'mem://r', '--prompt', 'p', '--log', log), start: 'lazy' }]));
    const gateway = await t.gateway({ limits: { first_list_wait_ms: 1500 }, mcpServers });
    const client = await t.http(gateway, { capabilities: { roots: { listChanged: true } } });
    await ask(client).catch(() => {});
    await sleep(50);
    const states = Object.fromEntries((await statusOf(gateway)).servers.map(({ name, state }) => [name, state]));
    const expected = Object.fromEntries(Object.keys(logs).map((name) => [name, name === wanted ? 'ready' : 'idle']));
    assert.deepEqual(states, expected, what);
    await client.close();
    await gateway.stop();
  }
}, { timeout: 60_000 });

test('red team: clients that declare ever other capabilities start a limited number of processes', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x'), b: fake('--tool', 'y') } });
  const samplings = [undefined, {}, { tools: {} }, { context: {} }, { tools: {}, context: {} }];
  const elicitations = [undefined, {}, { form: {} }, { url: {} }, { form: {}, url: {} }];
  for (const sampling of samplings) {
    for (const elicitation of elicitations) {
      const client = await t.http(gateway, { capabilities: { ...(sampling && { sampling }), ...(elicitation && { elicitation }) } });
      await until('the tools are listed', async () => (await client.toolNames()).length === 2);
    }
  }
  const { servers } = await statusOf(gateway);
  // Eight sets, and the empty one.
  assert.deepEqual(servers.map(({ name, connections }) => [name, connections]), [['a', 9], ['b', 9]]);
}, { timeout: 60_000 });

// Terminal escape sequences that start with one or two bytes, line endings, invisible characters,
// and characters that change the text direction.
test('red team: names with control or invisible characters are not offered, and are reported with escapes', async (t) => {
  const bad = ['\u001b[2J', '\u007f', '\u009b31m', '\u0085', '\n', '\u0000', '\u2028', '\u202e', '\u2066', '\u200b', '\u2060', '\ufeff', '\u00ad', '\ufe0f', '\u{e0041}'];
  const plain = (text) => text.replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const tools = bad.flatMap((c, i) => ['--tool-json', plain(JSON.stringify({ name: `t${i}${c}`, inputSchema: { type: 'object' } }))]);
  const others = bad.filter((c) => !/[\u0000\n]/.test(c)).flatMap((c, i) => ['--prompt', `p${i}${c}`, '--resource', `mem://r${i}${c}`]);
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'good', ...tools, ...others) } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['a__good']);
  assert.deepEqual((await client.call('prompts/list')).prompts, []);
  assert.deepEqual((await client.call('resources/list')).resources, []);
  for (const [i, c] of bad.entries()) await assert.rejects(client.tool(`a__t${i}${c}`), /./);
  await until('it is reported', () => gateway.stderr().includes('is not offered'));
  assert.doesNotMatch(gateway.stderr(), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/, show(gateway.stderr()));
});

await run({ parallel: 2 });

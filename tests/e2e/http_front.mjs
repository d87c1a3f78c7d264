// Tests the HTTP transport for clients: streams and their resumption, batches, HTTP+SSE and
// rejected requests.
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { assert, events, fake, importFromNpm, member, run, sleep, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

// Sends raw bytes. Resolves with all bytes that are received until the connection is closed or `ms`
// have elapsed.
function raw(port, text, ms = 15_000) {
  return new Promise((resolve, reject) => {
    let got = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(text));
    const timer = setTimeout(() => socket.destroy(), ms);
    socket.on('data', (data) => (got += data));
    socket.on('error', (error) => (error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error)));
    socket.on('close', () => {
      clearTimeout(timer);
      resolve(got);
    });
  });
}
const statusesIn = (text) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((found) => Number(found[1]));

test('an interrupted stream is resumed with Last-Event-ID', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'slow', '--delay', '500', '--progress', '3') } });
  const client = await t.http(gateway);
  await client.tools();
  const body = client.message('tools/call', { name: 'a__slow', arguments: { n: 1 }, _meta: { progressToken: 'p' } }, 'cut');
  const res = await client.exchange('POST', { body, headers: client.headers(), stream: true });
  assert.match(res.headers['content-type'], /event-stream/);
  let last;
  let seen = 0;
  for await (const event of events(res)) {
    if (event.id) last = event.id;
    if (event.data && ++seen === 1) break; // leaving the loop closes the connection
  }
  assert.ok(last, 'events carry ids');
  await sleep(700); // the response arrives while no client is listening
  const again = await client.exchange('GET', { headers: client.headers({ accept: 'text/event-stream', 'last-event-id': last }), stream: true });
  assert.equal(again.statusCode, 200);
  const rest = [];
  for await (const event of events(again)) {
    if (event.data) rest.push(event.data);
    if (event.data && member(event.data, 'id') === '"cut"') break;
  }
  again.destroy();
  assert.equal(rest.length, 3, 'two progress notes and the answer, each once');
  assert.equal(member(rest.at(-1), 'id'), '"cut"');
  const bad = await client.exchange('GET', { headers: client.headers({ accept: 'text/event-stream', 'last-event-id': 'no-such-event' }), stream: true });
  assert.equal(bad.statusCode, 400);
  bad.destroy();
});

test('the error for an oversized head names the limit', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  assert.match(await raw(gateway.port, `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`), /431[^]*limits\.header_bytes/);
});

const modes = [['in compartments', []], ['in one process', ['--single-process']]];
// Returns the counters of the HTTP transport, keyed by the last segment of their name.
const httpCounters = async (gateway) => Object.fromEntries(Object.entries((await statusOf(gateway)).counters)
  .filter(([name]) => name.includes('http.')).map(([name, value]) => [name.replace(/^.*http\./, ''), value]));
// Opens `n` sessions without completing the handshakes. Resolves with the statuses other than 200.
async function flood(gateway, n, { ready = false } = {}) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const initialize = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}';
  const post = (body, session) => new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...(session && { 'mcp-session-id': session }) };
    const request = http.request({ host: '127.0.0.1', port: gateway.port, path: '/mcp', method: 'POST', agent, headers }, (res) => {
      res.resume().on('end', () => resolve(res));
    });
    request.on('error', reject);
    request.end(body);
  });
  const one = async () => {
    const opened = await post(initialize);
    if (ready && opened.statusCode === 200) await post('{"jsonrpc":"2.0","method":"notifications/initialized"}', opened.headers['mcp-session-id']);
    return opened.statusCode;
  };
  const statuses = await Promise.all(Array.from({ length: n }, one));
  agent.destroy();
  return statuses.filter((status) => status !== 200);
}

for (const [mode, args] of modes) {
  // More than the default limit of 4096.
  test(`incomplete handshakes do not cause a rejection or close other sessions, ${mode}`, async (t) => {
    const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x', '--tool', 'grow', '--add', 'grow=y') } }, { args });
    const [quiet, listening] = [await t.http(gateway), await t.http(gateway)];
    await listening.tools();
    const stream = await listening.listen();
    let cut = false;
    stream.on('close', () => (cut = true));
    assert.deepEqual(await flood(gateway, 4500), []);
    const { sessions_evicted: evicted } = await httpCounters(gateway);
    assert.equal(evicted, 4500 + 2 - 4096);
    const fresh = await Promise.all(Array.from({ length: 8 }, () => t.http(gateway)));
    for (const client of [...fresh, quiet]) assert.equal((await client.tool('a__x')).content[0].text, 'fake/x');
    assert.equal((await httpCounters(gateway)).sessions_evicted, evicted + 8, 'no session had to resume');
    await fresh[0].tool('a__grow');
    await listening.note('notifications/tools/list_changed');
    assert.equal(cut, false, 'the stream is the first one still');
  }, { timeout: 60_000 });

  test(`a full table evicts the least recently used session, which resumes transparently, ${mode}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({
      limits: { sessions: 4 },
      mcpServers: { a: fake('--tool', 'x', '--tool', 'slow', '--hold', `slow=${t.path('go')}`, '--resource', 'mem://r', '--log', log, '--tool', 'touch', '--notify',
        'touch={"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem://r"}}') },
    }, { args });
    const [first, calling, listening, later] = [await t.http(gateway), await t.http(gateway), await t.http(gateway), await t.http(gateway)];
    const watching = first;
    await watching.call('resources/subscribe', { uri: 'bulkhead://a/mem://r' });
    const slow = calling.tool('a__slow');
    await until('the call runs', () => readFileSync(log, 'utf8').includes('"slow"'));
    await listening.listen();
    await later.call('ping');
    const fifth = await t.http(gateway);
    assert.equal((await httpCounters(gateway)).sessions_evicted, 1);
    assert.equal((await fifth.tool('a__x')).content[0].text, 'fake/x');
    // The first client resumes its session with its own ID, which evicts another session.
    const { session } = watching;
    assert.equal((await watching.tool('a__x')).content[0].text, 'fake/x');
    assert.equal(watching.session, session);
    assert.equal((await httpCounters(gateway)).sessions_evicted, 2);
    await later.call('ping');
    assert.equal((await httpCounters(gateway)).sessions_evicted, 3);
    writeFileSync(t.path('go'), '');
    assert.equal((await slow).content[0].text, 'fake/slow', 'a call in flight is not touched');
    if (!args.length) {  // the ledger has the subscription
      await until('the subscription is repeated', () => readFileSync(log, 'utf8').split('resources/subscribe').length > 2);
      await watching.listen();
      await listening.tool('a__touch');
      await watching.note('notifications/resources/updated');
    }
  });

  test(`a session that its client has closed is not resumed, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 2 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const status = async (client) => (await client.exchange('POST', { body: client.message('ping', undefined, 1), headers: client.headers() })).status;
    const client = await t.http(gateway);
    assert.deepEqual(await flood(gateway, 3, { ready: true }), []);
    assert.ok((await httpCounters(gateway)).sessions_evicted >= 2);
    assert.equal(await status(client), 200, 'evicted');
    assert.equal((await client.exchange('DELETE', { headers: client.headers() })).status, 204);
    assert.equal(await status(client), 404, 'ended by itself');
    const forged = await t.http(gateway, { leaveOpen: true });
    assert.deepEqual(await flood(gateway, 3, { ready: true }), []);
    const { session } = forged;
    forged.session = session.slice(0, -4) + 'AAAA';
    assert.equal(await status(forged), 404);
    forged.session = session.split('.')[0];
    assert.equal(await status(forged), 404, 'the id alone, without what was sealed');
    forged.session = session;
    assert.equal(await status(forged), 200);
  });

  test(`requests without a session succeed and evict no session, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 2 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const [one, two] = [await t.http(gateway), await t.http(gateway)];
    const post = (body, headers = {}) => one.exchange('POST', { body, headers: {
      'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers } });
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
    const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'a__x', 'mcp-param-region': 'eu' };
    for (const [headers, message, status, answer] of [
      [modern, one.message('tools/call', { name: 'a__x', _meta: meta }, 'm'), 200, /"id":"m","result":\{"resultType":"complete",.*"fake\/x"/],
      [{ ...modern, 'mcp-session-id': 'no-such-session', 'last-event-id': '1-1' }, one.message('tools/call', { name: 'a__x', _meta: meta }, 's'), 200, /"id":"s","result"/],
      [{}, one.message('server/discover', undefined, 7), 400, /"id":7,"error":\{"code":-32602/],
      [{}, one.message('tools/list', undefined, 8), 400, /"id":8,"error":\{"code":-32600,"message":"the session is not initialized/],
      [{}, one.message('ping', undefined, 9), 200, '{"jsonrpc":"2.0","id":9,"result":{}}'],
      [{}, '{', 400, /"error":\{"code":-32700/],
      [{}, one.message('notifications/initialized'), 202, ''],
      [{}, '{"jsonrpc":"2.0","id":1,"result":{}}', 400, /"error":\{"code":-32600,"message":"a response can be sent only in a session/],
      [modern, '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}', 400, /"error":\{"code":-32600/],
      [Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`mcp-param-${i}`, '1'])), one.message('ping', undefined, 9), 431, /too many/],
    ]) {
      const got = await post(message, headers);
      assert.equal(got.status, status, got.body);
      if (typeof answer === 'string') assert.equal(got.body, answer);
      else assert.match(got.body, answer);
      assert.equal(got.headers['mcp-session-id'], undefined);
    }
    // GET and DELETE are operations on sessions, which this revision does not have.
    for (const method of ['GET', 'DELETE']) {
      for (const headers of [{}, { 'mcp-session-id': one.session }]) {
        const got = await one.exchange(method, { headers: { accept: 'text/event-stream', 'mcp-protocol-version': '2026-07-28', ...headers } });
        assert.deepEqual([got.status, got.headers.allow], [405, 'POST, OPTIONS'], method);
      }
      assert.equal((await one.exchange(method, { headers: { accept: 'text/event-stream' } })).status, 400);
    }
    const unknown = await one.call('server/discover').catch((error) => error);
    assert.deepEqual([unknown.code, unknown.status], [-32601, 200], 'in a session, the method is unknown');
    assert.equal((await httpCounters(gateway)).sessions_evicted, 0);
    assert.equal((await statusOf(gateway)).sessions, 2);
    for (const client of [one, two]) assert.equal((await client.tool('a__x')).content[0].text, 'fake/x');
    assert.equal((await httpCounters(gateway)).sessions_evicted, 0);
  });

  test(`silent connections do not block others, ${mode}`, async (t) => {
    const gateway = await t.gateway({ limits: { sessions: 8 }, mcpServers: { a: fake('--tool', 'x') } }, { args });
    const limit = 2 * 8 + 64;
    const client = await t.http(gateway);
    const stream = await client.listen();
    let cut = false;
    stream.on('close', () => (cut = true));
    const open = [];
    t.defer(() => open.forEach((socket) => socket.destroy()));
    const silent = (text = '') => new Promise((resolve, reject) => {
      const socket = net.connect(gateway.port, '127.0.0.1', () => {
        if (text) socket.write(text);
        resolve();
      });
      socket.on('error', (error) => (error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error)));
      socket.resume();
      open.push(socket);
    });
    const pieces = ['', 'POST /mcp HTTP/1.1\r\nHost: 127', `GET /nothing HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\n\r\n`];
    for (const text of pieces) {
      for (let n = 0; n < 3 * limit; n += 20) await Promise.all(Array.from({ length: 20 }, () => silent(text)));
      const fresh = await t.http(gateway);
      assert.equal((await fresh.tool('a__x')).content[0].text, 'fake/x', JSON.stringify(text));
      await fresh.close();
    }
    const counters = await httpCounters(gateway);
    assert.equal(counters.connections_refused, 0);
    assert.ok(counters.connections_evicted >= 6 * limit, `${counters.connections_evicted}`);
    assert.equal(cut, false, 'the stream of a client is not ended for them');
  });
}

test('a session can have several concurrent calls', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'slow', '--tool', 'fast', '--delay', 'slow=2000') } });
  const client = await t.http(gateway);
  const order = [];
  await Promise.all(['slow', 'slow', 'fast', 'fast'].map((tool) => client.tool(`a__${tool}`).then(() => order.push(tool))));
  assert.deepEqual(order, ['fast', 'fast', 'slow', 'slow']);
});

test('batches are accepted only in revision 2025-03-26', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  const client = await t.http(gateway, { revision: '2025-03-26' });
  const batch = `[${client.message('ping', undefined, 1)},${client.message('tools/call', { name: 'a__x', arguments: {} }, 2)},${client.message('notifications/x')}]`;
  const answer = await client.exchange('POST', { body: batch, headers: client.headers() });
  assert.equal(answer.status, 200);
  const texts = answer.headers['content-type'].startsWith('application/json')
    ? JSON.parse(answer.body)
    : [...answer.body.matchAll(/^data: (.+)$/gm)].flatMap((found) => JSON.parse(found[1]));
  assert.deepEqual(texts.map((entry) => entry.id).sort(), [1, 2]);
  const only = await client.exchange('POST', { body: `[${client.message('notifications/x')}]`, headers: client.headers() });
  assert.equal(only.status, 202);
  const newer = await t.http(gateway);
  const refused = await newer.exchange('POST', { body: batch, headers: newer.headers() });
  assert.match(refused.body, /-32600/);
});

test('clients of 2024-11-05 can use HTTP+SSE', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  const { SSEClientTransport } = await importFromNpm('@modelcontextprotocol/sdk/client/sse.js');
  const { Client } = await importFromNpm('@modelcontextprotocol/sdk/client/index.js');
  const client = new Client({ name: 'old', version: '1' });
  await client.connect(new SSEClientTransport(new URL(`http://127.0.0.1:${gateway.port}/sse`)));
  t.defer(() => client.close());
  assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name), ['a__x']);
  assert.equal((await client.callTool({ name: 'a__x', arguments: {} })).content[0].text, 'fake/x');
});

test('Host and Origin are checked', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  const client = await t.http(gateway);
  const ping = (headers) => client.exchange('POST', { body: client.message('ping', undefined, 1), headers: client.headers(headers) });
  const { port } = gateway;
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`]) {
    assert.equal((await ping({ host, origin: `http://${host}` })).status, 200, host);
  }
  for (const [host, origin] of [['evil.example.com', 'http://evil.example.com'], [`evil.example.com:${port}`, undefined], [`127.0.0.1:${port}`, 'http://evil.example.com'],
    [`127.0.0.1:${port}`, 'null'], [`localhost.evil.example:${port}`, undefined]]) {
    const answer = await ping({ host, ...(origin ? { origin } : {}) });
    assert.equal(answer.status, 403, `${host} ${origin}`);
  }
});

// Requests for images, frames and scripts have no Origin header, but browsers add Sec-Fetch-Site.
for (const [mode, args] of modes) {
  test(`a web page's request without Origin is rejected, ${mode}`, async (t) => {
    const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } }, { args });
    const client = await t.http(gateway);
    await client.tools();
    const sessions = async () => (await statusOf(gateway)).sessions;
    const before = await sessions();
    const ask = async (method, path, headers, body) => {
      const res = await client.exchange(method, { path, headers: { accept: 'application/json, text/event-stream', ...headers }, body, stream: true });
      t.defer(() => res.destroy());
      return res.statusCode;
    };
    const initialize = client.message('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }, 1);
    const session = client.headers();
    const entries = {
      'GET /sse': (headers) => ask('GET', '/sse', headers),
      'POST /mcp': (headers) => ask('POST', '/mcp', headers, initialize),
      'GET /mcp': (headers) => ask('GET', '/mcp', { ...session, ...headers }),
      'DELETE /mcp': (headers) => ask('DELETE', '/mcp', { ...session, ...headers }),
      'POST /messages': (headers) => ask('POST', '/messages?sessionId=0', headers, initialize),
      'OPTIONS /mcp': (headers) => ask('OPTIONS', '/mcp', headers),
      'GET /nothing': (headers) => ask('GET', '/nothing', headers),
    };
    for (const site of ['cross-site', 'same-site', 'Cross-Site', 'something']) {
      for (const [what, request] of Object.entries(entries)) {
        assert.equal(await request({ 'sec-fetch-site': site }), 403, `${what} ${site}`);
      }
    }
    assert.equal(await sessions(), before, 'no session was opened, and none ended');
    assert.equal(await ask('GET', '/sse', { 'sec-fetch-site': 'cross-site', origin: 'http://evil.example' }), 403);
    // Requests of programs, from the address bar, of a page with the same origin, and of a page of
    // this machine with its Origin header.
    for (const headers of [{}, { 'sec-fetch-site': 'none' }, { 'sec-fetch-site': 'same-origin' },
      { 'sec-fetch-site': 'cross-site', origin: 'http://localhost:3000' }]) {
      assert.equal(await ask('GET', '/sse', headers), 200, JSON.stringify(headers));
      assert.equal(await ask('POST', '/mcp', headers, initialize), 200, JSON.stringify(headers));
    }
    assert.equal(await sessions(), before + 8);
  });
}

test('smuggled, slow and oversized requests get an error, and their connections are closed', async (t) => {
  const gateway = await t.gateway({
    limits: { request_read_ms: 400, message_bytes: 100_000, header_bytes: 4096, write_queue_bytes: 200_000 },
    mcpServers: { a: fake('--tool', 'x') },
  });
  const client = await t.http(gateway);
  const session = client.session;
  const head = (extra) => `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nMcp-Session-Id: ${session}\r\n${extra}\r\n`;
  const ping = client.message('ping', undefined, 5);
  const bad = {
    'two lengths': `${head(`Content-Length: ${ping.length}\r\nContent-Length: 3\r\n`)}${ping}`,
    'length and chunks': `${head(`Content-Length: ${ping.length}\r\nTransfer-Encoding: chunked\r\n`)}${ping}`,
    'odd coding': `${head('Transfer-Encoding: chunked, identity\r\n')}0\r\n\r\n`,
    'signed length': `${head('Content-Length: +5\r\n')}${ping}`,
    'space before colon': `${head(`Content-Length : ${ping.length}\r\n`)}${ping}`,
    'folded header': `${head(`Content-Length: ${ping.length}\r\nX-A: 1\r\n  folded\r\n`)}${ping}`,
    'two hosts': `${head(`Host: evil.example.com\r\nContent-Length: ${ping.length}\r\n`)}${ping}`,
  };
  for (const [what, text] of Object.entries(bad)) {
    // The remaining bytes of the connection must not be parsed as a request.
    const got = statusesIn(await raw(gateway.port, `${text}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n`));
    assert.equal(got.length, 1, `${what}: ${got}`);
    assert.ok(got[0] >= 400 && got[0] < 500, `${what}: ${got}`);
  }
  assert.deepEqual(statusesIn(await raw(gateway.port, head('Content-Length: 5000000\r\n'))), [413]);
  const large = statusesIn(await raw(gateway.port, head(`X-Large: ${'x'.repeat(20_000)}\r\n`)));
  assert.ok(large.length <= 1 && large.every((status) => status === 431 || status === 400), String(large));
  const started = Date.now();
  const slow = statusesIn(await raw(gateway.port, 'POST /mcp HTTP/1.1\r\nHost: 127', 20_000));
  assert.ok(Date.now() - started < 15_000, 'a slow request is cut off');
  assert.ok(slow.every((status) => status === 408), String(slow));
  const two = head(`Content-Length: ${ping.length}\r\n`) + ping;
  assert.deepEqual(statusesIn(await raw(gateway.port, two + two, 3000)), [200, 200], 'pipelined requests are answered in order');
  assert.deepEqual(await client.call('ping'), {});
});

test('a session that is idle for too long is closed', async (t) => {
  const gateway = await t.gateway({ limits: { session_idle_ms: 1000 }, mcpServers: { a: fake('--tool', 'x') } });
  const client = await t.http(gateway);
  const status = async () => (await client.exchange('POST', { body: client.message('ping', undefined, 1), headers: client.headers() })).status;
  assert.equal(await status(), 200);
  await sleep(2500);
  assert.equal(await status(), 404);
});

test('unknown paths and methods get 404 or 405', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  const client = await t.http(gateway);
  const status = async (method, path, headers = {}) => (await client.exchange(method, { path, headers })).status;
  assert.equal(await status('GET', '/nothing'), 404);
  assert.equal(await status('PUT', '/mcp'), 405);
  for (const path of ['/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource/mcp', '/.well-known/openid-configuration']) {
    assert.equal(await status('GET', path), 404, path);
  }
  await until('the gateway still works', () => client.tool('a__x'));
});

await run({ parallel: 4 });

// The HTTP side toward clients: streams and resumption, batches, the old pair, and what is refused.
import net from 'node:net';
import { assert, events, fake, importFromNpm, member, run, sleep, test, until } from './lib.mjs';

// Sends raw bytes, resolves with all that comes back until the other side closes or `ms` are over.
function raw(port, text, ms = 1500) {
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

test('a stream that is cut is taken up again with Last-Event-ID', async (t) => {
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
    if (event.data && ++seen === 1) break; // the connection is dropped with this
  }
  assert.ok(last, 'events carry ids');
  await sleep(700); // the answer comes while nobody listens
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

test('a refused session names the limit', async (t) => {
  const gateway = await t.gateway({ limits: { sessions: 1 }, mcpServers: { a: fake('--tool', 'x') } });
  await t.http(gateway);
  await assert.rejects(t.http(gateway), /limits\.sessions = 1/);
  assert.match(await raw(gateway.port, `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`), /431[^]*limits\.header_bytes/);
});

test('several calls at once on one session', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'slow', '--tool', 'fast', '--delay', 'slow=2000') } });
  const client = await t.http(gateway);
  const order = [];
  await Promise.all(['slow', 'slow', 'fast', 'fast'].map((tool) => client.tool(`a__${tool}`).then(() => order.push(tool))));
  assert.deepEqual(order, ['fast', 'fast', 'slow', 'slow']);
});

test('batches in 2025-03-26 and in no other revision', async (t) => {
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

test('the old pair for clients of 2024-11-05', async (t) => {
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

test('requests that smuggle, dawdle or are too large are answered and closed', async (t) => {
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
    // Whatever follows on the connection must not be taken for a request.
    const got = statusesIn(await raw(gateway.port, `${text}GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n`));
    assert.equal(got.length, 1, `${what}: ${got}`);
    assert.ok(got[0] >= 400 && got[0] < 500, `${what}: ${got}`);
  }
  assert.deepEqual(statusesIn(await raw(gateway.port, head('Content-Length: 5000000\r\n'))), [413]);
  const large = statusesIn(await raw(gateway.port, head(`X-Large: ${'x'.repeat(20_000)}\r\n`)));
  assert.ok(large.length <= 1 && large.every((status) => status === 431 || status === 400), String(large));
  const started = Date.now();
  const slow = statusesIn(await raw(gateway.port, 'POST /mcp HTTP/1.1\r\nHost: 127', 5000));
  assert.ok(Date.now() - started < 4000, 'a slow request is cut off');
  assert.ok(slow.every((status) => status === 408), String(slow));
  const two = head(`Content-Length: ${ping.length}\r\n`) + ping;
  assert.deepEqual(statusesIn(await raw(gateway.port, two + two, 600)), [200, 200], 'pipelined requests are answered in order');
  assert.deepEqual(await client.call('ping'), {});
});

test('a session that is idle too long has ended', async (t) => {
  const gateway = await t.gateway({ limits: { session_idle_ms: 1000 }, mcpServers: { a: fake('--tool', 'x') } });
  const client = await t.http(gateway);
  const status = async () => (await client.exchange('POST', { body: client.message('ping', undefined, 1), headers: client.headers() })).status;
  assert.equal(await status(), 200);
  await sleep(2500);
  assert.equal(await status(), 404);
});

test('what is not there is 404 or 405', async (t) => {
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

// Tests builtin-http in a complete gateway: its tools, its rules, and malicious servers. The rules
// are tested in a private network in which this machine has public addresses and a name server.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { assert, lastingPort, run, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';
import { startDns, startHostileWeb } from '../fixtures/hostile_web.mjs';

const publicAddress = '93.184.216.34';
const metadataAddress = '169.254.169.254';

// Runs this file again in a private network. Returns if no private network can be created.
function enterOwnNetwork() {
  if (process.env.WEB_NETWORK !== undefined || process.getuid() !== 0) return;
  const resolv = join(tmpdir(), `bulkhead-resolv-${process.pid}.conf`);
  writeFileSync(resolv, 'nameserver 127.0.0.1\noptions timeout:2 attempts:2\n');
  const set = `ip link set lo up && ip addr add ${publicAddress}/32 dev lo && ip addr add ${metadataAddress}/32 dev lo && mount --bind ${resolv} /etc/resolv.conf && exec "$@"`;
  const own = (words) => spawnSync('unshare', ['-n', '-m', 'sh', '-c', set, 'sh', ...words], { stdio: 'inherit', env: { ...process.env, WEB_NETWORK: 'own' } });
  const can = spawnSync('unshare', ['-n', '-m', 'sh', '-c', set, 'sh', 'true'], { stdio: 'ignore' }).status === 0;
  const status = can ? (own([process.execPath, '--no-warnings', fileURLToPath(import.meta.url), ...process.argv.slice(2)]).status ?? 1) : 0;
  rmSync(resolv);
  if (can) process.exit(status);
  process.env.WEB_NETWORK = 'shared';
}
enterOwnNetwork();
const ownNetwork = process.env.WEB_NETWORK === 'own';

const allMethods = ['get', 'post', 'put', 'patch', 'delete', 'head'];
const loopback = { plugin: 'builtin-http', allow_addresses: ['127.0.0.0/8'] };

async function site(t, answer) {
  const seen = [];
  const server = createServer((req, res) => {
    let body = '';
    req.on('data', (data) => (body += data));
    req.on('end', () => {
      seen.push({ method: req.method, url: req.url, body, headers: req.headers });
      answer(req, res, body);
    });
  }).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  t.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, seen };
}
const html = (res, text, type = 'text/html; charset=utf-8') => res.writeHead(200, { 'content-type': type }).end(text);

async function hostile(t, ...more) {
  const web = await startHostileWeb(...more);
  t.defer(() => web.stop());
  return web;
}

// Starts a gateway and a client. Returns the client and call(tool, args), which resolves with the
// text of the result.
async function started(t, tools) {
  const gateway = await t.gateway({ tools });
  const client = await t.http(gateway);
  const call = async (name, args, options) => {
    const result = await client.tool(name, args, options);
    assert.equal(result.content.length, 1);
    return result;
  };
  return {
    gateway,
    client,
    call,
    text: async (name, args) => {
      const result = await call(name, args);
      assert.ok(!result.isError, result.content[0].text);
      return result.content[0].text;
    },
    error: async (name, args) => {
      const result = await call(name, args);
      assert.equal(result.isError, true, result.content[0].text.slice(0, 300));
      assert.match(result.content[0].text, /^Error: /);
      return result.content[0].text;
    },
  };
}
const chunk = (text) => text.slice(text.indexOf('\n\n') + 2);

test('D01 fetch_http returns all three formats', async (t) => {
  const page = '<!doctype html><title>T</title><script>var hidden = 1;</script><h1>Heading</h1><p>See <a href="https://b.test/">that</a>.<ul><li>one<li>two</ul>';
  const web = await site(t, (_, res) => html(res, page));
  const { text } = await started(t, { local: loopback });
  const markdown = await text('local__fetch_http', { url: web.url });
  assert.match(markdown, /^URL: http:\/\/127\.0\.0\.1:\d+\/\nDomain: 127\.0\.0\.1\nContent length: \d+\n\n/);
  assert.equal(chunk(markdown), '# Heading\n\nSee [that](https://b.test/).\n\n- one\n- two\n');
  assert.equal(chunk(await text('local__fetch_http', { url: web.url, format: 'content' })), 'Heading\n\nSee that.\n\none\ntwo\n');
  assert.equal(chunk(await text('local__fetch_http', { url: web.url, format: 'raw' })), page);
});

test('D02 the parts of a long page are contiguous', async (t) => {
  const whole = 'aé€😀\n'.repeat(1100);
  const web = await site(t, (_, res) => html(res, whole, 'text/plain; charset=utf-8'));
  const { text } = await started(t, { local: loopback });
  let read = '';
  let calls = 0;
  for (let next = 0; next !== undefined; ++calls) {
    const part = await text('local__fetch_http', { url: web.url, start_index: next, max_length: 5000 });
    assert.match(part, /\nShowing: \d+\.\.\d+\n/);
    read += chunk(part);
    const hint = /\nRemaining: \d+ bytes\. Use start_index=(\d+) to continue\.\n/.exec(part);
    next = hint ? Number(hint[1]) : undefined;
  }
  assert.equal(calls, 3);
  assert.equal(read, whole);
});

test('D03 grep_http shows 50 of 60 hits and reports that', async (t) => {
  const lines = Array.from({ length: 60 }, (_, i) => `<p>hit number ${i + 1}</p>`).join('\n');
  const web = await site(t, (_, res) => html(res, lines));
  const { text, error } = await started(t, { local: loopback });
  const found = await text('local__grep_http', { url: web.url, pattern: 'HIT \\w+ \\d', context_lines: 1, max_matches: 50, max_length: 100_000 });
  assert.equal(found.match(/^--- Match \d+ ---$/gm).length, 50);
  assert.equal(found.match(/^>>> \d+: hit number \d+$/gm).length, 50);
  assert.match(found, /^>>> 1: hit number 1$/m);
  assert.match(found, /^Matches found: more than 50$/m);
  assert.match(await error('local__grep_http', { url: web.url, pattern: '(' }), /invalid regular expression/);
});

test('D04 http_headers sends HEAD or GET', async (t) => {
  const web = await site(t, (_, res) => res.writeHead(404, { 'x-one': '1' }).end());
  const { text } = await started(t, { local: loopback });
  assert.match(await text('local__http_headers', { url: web.url }), /^URL: .*\nStatus: 404 Not Found\n\nHeaders:\n(  .*\n)*  x-one: 1\n/);
  await text('local__http_headers', { url: web.url, method: 'GET' });
  assert.deepEqual(web.seen.map((one) => one.method), ['HEAD', 'GET']);
});

test('D05 requests are sent with each method, under both prefixes', async (t) => {
  const web = await site(t, (_, res, body) => res.writeHead(201, { 'content-type': 'application/json' }).end(`{"got":${JSON.stringify(body)}}`));
  const tool = { ...loopback, methods: allMethods };
  const { client, text } = await started(t, { local: tool, builtin: tool });
  const names = await client.toolNames();
  for (const prefix of ['local', 'builtin']) {
    for (const method of allMethods) {
      assert.ok(names.includes(`${prefix}__http_${method}`));
      const body = ['get', 'head'].includes(method) ? {} : { body: `body of ${method}` };
      const answer = await text(`${prefix}__http_${method}`, { url: `${web.url}/x`, headers: { 'X-Mine': 'yes' }, ...body });
      assert.match(answer, /\nStatus: 201 Created\n/);
      if (method !== 'head') assert.ok(answer.endsWith(`{"got":"${body.body ?? ''}"}`), answer);
      const last = web.seen.at(-1);
      assert.deepEqual([last.method, last.body, last.headers['x-mine']], [method.toUpperCase(), body.body ?? '', 'yes']);
    }
  }
  const plain = await started(t, { local: loopback });
  assert.deepEqual((await plain.client.toolNames()).sort(), ['echo', 'fetch_http', 'grep_http', 'http_headers'].map((name) => `local__${name}`));
});

test('D08 each error has a specific text', async (t) => {
  const web = await site(t, (_, res) => html(res, '%PDF', 'application/pdf'));
  const { error } = await started(t, { local: loopback });
  const texts = [
    await error('local__fetch_http', {}),
    await error('local__fetch_http', { url: 'ftp://a.test/' }),
    await error('local__fetch_http', { url: 'http:///path' }),
    await error('local__fetch_http', { url: web.url }),
  ];
  assert.equal(new Set(texts).size, 4);
  assert.match(texts[0], /"url" is missing/);
  assert.match(texts[1], /scheme "ftp"/);
  assert.match(texts[2], /no host/);
  assert.match(texts[3], /application\/pdf/);
});

test('the web compartment can convert a page in another character set', async (t) => {
  const web = await site(t, (_, res) => html(res, Buffer.from('93fa967b8cea', 'hex'), 'text/plain; charset=Shift_JIS'));
  const { text } = await started(t, { local: loopback });
  assert.equal(chunk(await text('local__fetch_http', { url: web.url })), '日本語');
});

test('a fresh page is requested once, and a stale page is revalidated', async (t) => {
  const web = await site(t, (req, res) => {
    if (req.headers['if-none-match'] === '"1"') return res.writeHead(304, { etag: '"1"' }).end();
    const headers = req.url === '/fresh' ? { 'cache-control': 'max-age=60' } : { etag: '"1"' };
    return res.writeHead(200, { 'content-type': 'text/plain', ...headers }).end('page');
  });
  const { text } = await started(t, { local: loopback });
  for (const path of ['/fresh', '/old']) {
    for (let i = 0; i < 3; ++i) assert.equal(chunk(await text('local__fetch_http', { url: web.url + path })), 'page');
  }
  assert.deepEqual(web.seen.map((one) => [one.url, one.headers['if-none-match']]),
    [['/fresh', undefined], ['/old', undefined], ['/old', '"1"'], ['/old', '"1"']]);
});

test('a long request reports progress and can be cancelled', async (t) => {
  const web = await hostile(t);
  const { gateway, client } = await started(t, { local: loopback });
  const slow = client.request('tools/call', { name: 'local__fetch_http', arguments: { url: `${web.url}/slow` }, _meta: { progressToken: 'mine' } }, { id: 'slow' });
  slow.catch(() => {});
  const first = await client.note('notifications/progress', 10_000);
  assert.equal(first.params.progressToken, 'mine');
  const second = await client.note('notifications/progress', 10_000);
  assert.ok(second.params.progress > first.params.progress);
  assert.match(second.params.message, /bytes received/);
  assert.equal(web.open.size, 1);
  await client.notify('notifications/cancelled', { requestId: 'slow' });
  await until('the connection to the server is closed', () => web.open.size === 0);
  assert.ok((await statusOf(gateway)).compartments.every((one) => one.state === 'running'));
});

// The expected response for each malicious page. The text names the limit that was exceeded.
const harm = {
  '/endless': /larger than 1000000 bytes/,
  '/endless-header': /request failed/,
  '/endless-continue': /request failed/,
  '/slow': /request failed/,
  '/slow-head': /request failed/,
  '/silent': /request failed/,
  '/bomb': /larger than 1000000 bytes/,
  '/bomb-twice': /larger than 1000000 bytes/,
  '/bomb-layers': /request failed/,
  '/not-gzip': /request failed/,
  '/loop': /more than 5 redirects/,
  '/chain?n=6': /more than 5 redirects/,
  '/lying-type': /binary content/,
  '/quadratic': /too complex/,
  '/deeper': /too complex/,
  '/length-too-long': /request failed/,
  '/length-negative': /request failed/,
  '/length-twice': /request failed/,
  '/chunk-huge': /request failed/,
  '/not-http': /request failed/,
  '/nothing': /request failed/,
  '/header-large': /request failed/,
  '/headers-many': /request failed/,
  '/to?url=file:///etc/passwd': /redirect was not followed.*scheme "file"/,
  '/to?url=gopher://127.0.0.1/': /redirect was not followed/,
  '/to?url=http://0x7f000001/': /redirect was not followed/,
};
const harmless = {
  '/': 'hello',
  '/chain?n=5': 'end of the chain',
  '/endless-redirect': 'hello',
  '/length-too-short': 'short',
  '/deep': 'deep\n',
};

test('with a malicious web server, nothing hangs, escapes or exceeds its limit', async (t) => {
  const web = await hostile(t);
  const { gateway, text, error } = await started(t, { local: { ...loopback, max_body_bytes: 1_000_000, timeout_ms: 8000 } });
  const compartment = async () => (await statusOf(gateway)).compartments.find((one) => one.name === 'web');
  await text('local__fetch_http', { url: web.url });
  const before = await compartment();
  await Promise.all(Object.entries(harm).map(async ([path, expected]) => {
    for (const tool of ['fetch_http', 'grep_http']) {
      assert.match(await error(`local__${tool}`, { url: web.url + path, ...(tool === 'grep_http' ? { pattern: 'x' } : {}) }), expected, path);
    }
  }));
  for (const [path, expected] of Object.entries(harmless)) {
    assert.equal(chunk(await text('local__fetch_http', { url: web.url + path })), expected, path);
  }
  await until('hostile connections are closed', () => web.open.size <= 8);
  const after = await compartment();
  assert.equal(after.pid, before.pid);
  const peak = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${after.pid}/status`, 'utf8'))[1]);
  assert.ok(peak < 1_000_000, `${peak} KiB`);
}, { timeout: 60_000 });

const guarded = { plugin: 'builtin-http', block: ['blocked.test', '*.sub.test'], timeout_ms: 5000 };
function needsOwnNetwork(t) {
  if (!ownNetwork) t.skip('needs a network namespace (root, unshare, ip)');
}
// All tests in this file use the same name server.
let dns;
async function names(t) {
  needsOwnNetwork(t);
  dns ??= await startDns('127.0.0.1', {
    'public.test': [publicAddress],
    'blocked.test': [publicAddress],
    'x.sub.test': [publicAddress],
    'sub.test': [publicAddress],
    'inner.test': ['127.0.0.1'],
    'metadata.test': [metadataAddress],
    'both.test': [publicAddress, '127.0.0.1'],
    'changing.test': (n) => [n % 2 === 1 ? publicAddress : '127.0.0.1'],
    'xn--bcher-kva.test': [publicAddress],
  });
  return dns;
}

test('D06 the block list, the allow list and the default are applied', async (t) => {
  await names(t);
  const web = await hostile(t, publicAddress);
  const at = (name) => `http://${name}:${web.port}/`;
  const { text, error } = await started(t, {
    http: { ...guarded, allow: ['*.sub.test', 'blocked.test', 'bücher.test', 'public.test:1'], block: ['blocked.test'] } });
  assert.equal(chunk(await text('http__fetch_http', { url: at('x.sub.test') })), 'hello');
  assert.equal(chunk(await text('http__fetch_http', { url: at('bücher.test') })), 'hello');
  const { connections } = web;
  for (const name of ['sub.test', 'blocked.test', 'BLOCKED.test.', 'public.test', publicAddress]) {
    for (const tool of ['fetch_http', 'http_headers']) assert.match(await error(`http__${tool}`, { url: at(name) }), /blocked/, name);
  }
  assert.equal(web.connections, connections);
});

test('D07 each hop of a redirect is checked by name and by address', async (t) => {
  await names(t);
  const web = await hostile(t, publicAddress, { port: await lastingPort() });
  const inner = await hostile(t, '127.0.0.1', { port: web.port });
  const metadata = await hostile(t, metadataAddress, { port: web.port });
  const { text, error } = await started(t, { http: guarded });
  const base = `http://public.test:${web.port}`;
  assert.equal(chunk(await text('http__fetch_http', { url: `${base}/to?url=${base}/` })), 'hello');
  const { connections } = web;
  for (const to of ['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', metadataAddress, 'inner.test', 'metadata.test', 'blocked.test', 'x.sub.test', 'localhost']) {
    const url = `http://${to}:${web.port}/latest/meta-data/`;
    assert.match(await error('http__fetch_http', { url }), /blocked|request failed/, to);
    assert.match(await error('http__fetch_http', { url: `${base}/to?url=${url}` }), /blocked|request failed/, to);
    assert.match(await error('http__grep_http', { url: `${base}/to?url=${url}`, pattern: 'x' }), /blocked|request failed/, to);
  }
  assert.ok(web.connections > connections);
  assert.deepEqual(web.requests.filter((line) => line.includes('meta-data') && !line.includes('/to?')), []);
  assert.equal(inner.connections + metadata.connections, 0);
});

test('a name whose address changes never reaches internal addresses', async (t) => {
  const { queries } = await names(t);
  const web = await hostile(t, publicAddress, { port: await lastingPort() });
  const inner = await hostile(t, '127.0.0.1', { port: web.port });
  const results = [];
  // Each call has a new libcurl client, so no DNS response is cached.
  for (let i = 0; i < 4; ++i) {
    const { call } = await started(t, { http: guarded });
    results.push((await call('http__fetch_http', { url: `http://changing.test:${web.port}/` })).content[0].text);
  }
  assert.deepEqual(results.map((text) => /hello$/.test(text)), [true, false, true, false]);
  assert.match(results[1], /127\.0\.0\.1 of changing\.test is blocked/);
  assert.equal(queries.filter((name) => name === 'changing.test').length, 4);
  // If the first address of a name is unreachable, the second is not tried.
  web.stop();
  const { error } = await started(t, { http: guarded });
  assert.match(await error('http__fetch_http', { url: `http://both.test:${web.port}/` }), /blocked|request failed/);
  assert.equal(inner.connections, 0);
});

await run();

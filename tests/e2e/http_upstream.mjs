// Tests upstreams over HTTP: JSON and SSE responses, sessions, credentials, failures and HTTP+SSE.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { assert, filesBelow, lastingPort, member, run, runProgram, sleep, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';
import { startStateless } from '../fixtures/stateless_server.mjs';

test('A24 JSON and SSE responses are accepted, and requests contain the session and revision', async (t) => {
  const up = await t.fakeHttp();
  const gateway = await t.gateway({ mcpServers: { up: { type: 'http', url: up.url } } });
  const client = await t.http(gateway);
  assert.equal((await client.tool('up__echo', { n: 1 })).echo.n, 1);
  assert.equal((await client.tool('up__echo_sse', { n: 2 })).echo.n, 2);
  const [session] = up.sessions.keys();
  for (const { headers } of up.messages('tools/call')) {
    assert.equal(headers['mcp-session-id'], session);
    assert.equal(headers['mcp-protocol-version'], '2025-11-25');
  }
  await gateway.stop();
  assert.deepEqual([up.opened, up.deleted], [1, 1], 'the session is ended with DELETE');
});

test('A24 an event stream that is closed early is resumed', async (t) => {
  const up = await t.fakeHttp({ retryMs: 100 });
  const gateway = await t.gateway({ mcpServers: { up: { url: up.url } } });
  const client = await t.http(gateway);
  assert.equal((await client.tool('up__poll', { n: 3 })).echo.n, 3);
  const resumed = up.requests.filter((request) => request.headers['last-event-id']);
  assert.equal(resumed.length, 1);
  assert.equal(up.messages('tools/call').length, 1, 'the call is not repeated');
  await assert.rejects(client.tool('up__drop'), (error) => error.code === -32603 && /\bup\b/.test(error.message));
  assert.equal(up.messages('tools/call').length, 2);
});

test('A24 HTTP+SSE works if configured and if detected automatically', async (t) => {
  const up = await t.fakeHttp({ streamable: false });
  const gateway = await t.gateway({ mcpServers: { told: { type: 'sse', url: up.sseUrl }, found: { type: 'http', url: up.sseUrl } } });
  const client = await t.http(gateway);
  assert.equal((await client.tool('told__echo', { n: 1 })).echo.n, 1);
  assert.equal((await client.tool('found__echo', { n: 2 })).echo.n, 2);
});

test('A25 the bearer token and headers reach the server and appear nowhere else', async (t) => {
  const up = await t.fakeHttp();
  const gateway = await t.gateway(
    { mcpServers: { up: { url: up.url, headers: { Authorization: 'Bearer ${env:UP_TOKEN}', 'X-Custom': 'some ${WHAT:-thing}' } } } },
    { env: { UP_TOKEN: 'sesame-4711' }, args: ['--log-level', 'debug', '--verbose'] },
  );
  const client = await t.http(gateway);
  await client.tool('up__echo');
  for (const { headers } of up.messages()) {
    assert.equal(headers.authorization, 'Bearer sesame-4711');
    assert.equal(headers['x-custom'], 'some thing');
  }
  up.mode = '500';
  const error = await client.tool('up__echo').catch((e) => e);
  const status = JSON.stringify(await statusOf(gateway));
  const files = filesBelow(gateway.dir).flatMap(({ text }) => text ?? []);
  for (const text of [error.message, status, gateway.stderr(), ...files]) assert.ok(!text.includes('sesame-4711'));
});

for (const header of ['accept', 'Mcp-Session-Id', 'last-event-id', 'Host']) {
  test(`A25 the header ${header} cannot be configured`, async (t) => {
    const profile = { mcpServers: { up: { url: 'http://127.0.0.1:9/mcp', headers: { [header]: 'x' } } } };
    const done = runProgram(t, ['profile', 'show', '--config', '{config}'], { profile });
    assert.notEqual(done.code, 0);
    assert.match(done.stderr, new RegExp(header, 'i'));
    assert.match(done.stderr, /gateway\.json:\d+/);
  });
}

test('A26 failures are distinguished; a lost session is reopened', async (t) => {
  const up = await t.fakeHttp();
  const gateway = await t.gateway({ limits: { retry_min_ms: 50, retry_max_ms: 100 }, mcpServers: { up: { url: up.url } } });
  const client = await t.http(gateway);
  await client.tools();
  const failure = async (mode) => {
    up.mode = mode;
    const error = await client.tool('up__echo').then(() => assert.fail(`answered in mode ${mode}`), (e) => e);
    up.mode = 'ok';
    assert.match(error.message, /\bup\b/);
    return error.message;
  };
  assert.match(await failure('401'), /401|auth/i);
  await until('works again', () => client.tool('up__echo'));
  assert.match(await failure('500'), /500|server error/i);
  await until('works again', () => client.tool('up__echo'));
  const opened = up.opened;
  up.forgetSessions();
  // `after` is an error that names the session, or the result of a repeated call. The call may be
  // repeated, because a call that got 404 was not executed.
  const after = await client.tool('up__echo').catch((error) => error);
  if (after instanceof Error) assert.match(after.message, /session/i);
  await until('a new session works', () => client.tool('up__echo'));
  assert.equal(up.opened, opened + 1);
});

for (const args of [[], ['--single-process']]) {
  test(`F32 if a server is busy, lists are retried after Retry-After, but calls are not ${args}`, async (t) => {
    const busy = { initialize: { status: 503, after: 1, times: 1 }, 'tools/list': { status: 503, after: 1, times: 2 }, 'tools/call': { status: 429, after: 1, times: 1 } };
    const up = await t.fakeHttp({ busy });
    const gateway = await t.gateway({ mcpServers: { up: { url: up.url } }, limits: { first_list_wait_ms: 15_000, call_timeout_ms: 3_000 } }, { args });
    const client = await t.http(gateway);
    assert.ok((await client.toolNames()).includes('up__echo'));
    const at = (method) => up.requests.filter(({ body }) => body && member(body, 'method') === JSON.stringify(method)).map((request) => request.at);
    const gaps = (times) => times.slice(1).map((time, i) => time - times[i]);
    assert.equal(at('initialize').length, 2);
    assert.equal(at('tools/list').length, 3);
    for (const gap of [...gaps(at('initialize')), ...gaps(at('tools/list'))]) assert.ok(gap >= 990, `after ${gap} ms`);
    const refused = await client.tool('up__echo').catch((error) => error);
    assert.match(refused.message, /too many requests \(HTTP 429\)/);
    assert.equal(at('tools/call').length, 1, 'a call is sent once');
    assert.equal((await client.tool('up__echo', { n: 1 })).echo.n, 1);
  });

  test(`F32 while a server is busy on server/discover, no initialize overtakes it ${args}`, async (t) => {
    const busy = (status, after) => ({ 'server/discover': { status, after, times: 2 } });
    // The first server supports both generations, so that it would accept initialize as well.
    const modern = await startStateless({ both: true, busy: busy(503, 2) });
    t.defer(() => modern.stop());
    const old = await t.fakeHttp({ busy: busy(503, 2) });
    const limited = await startStateless({ both: true, busy: busy(429, 2) });
    t.defer(() => limited.stop());
    const ups = { modern, old, limited };
    const mcpServers = Object.fromEntries(Object.entries(ups).map(([name, { url }]) => [name, { url }]));
    const gateway = await t.gateway({ mcpServers, limits: { first_list_wait_ms: 30_000, connect_timeout_ms: 30_000 } }, { args });
    const client = await t.http(gateway);
    const names = await client.toolNames();
    for (const name of Object.keys(ups)) assert.ok(names.includes(`${name}__echo`), name);
    for (const [name, { requests }] of Object.entries(ups)) {
      const sent = requests.filter(({ body }) => body).map(({ body, at }) => ({ method: JSON.parse(body).method, at }));
      const opening = sent.filter(({ method }) => method === 'server/discover' || method === 'initialize');
      const probes = ['server/discover', 'server/discover', 'server/discover'];
      assert.deepEqual(opening.map(({ method }) => method), name === 'old' ? [...probes, 'initialize'] : probes, name);
      for (const i of [1, 2]) assert.ok(opening[i].at - opening[i - 1].at >= 1990, `${name}: ${opening[i].at - opening[i - 1].at} ms`);
    }
    const { servers } = await statusOf(gateway);
    const revisions = Object.fromEntries(servers.map(({ name, protocol }) => [name, protocol]));
    assert.deepEqual(revisions, { modern: '2026-07-28', old: '2025-11-25', limited: '2026-07-28' });
  });

  test(`F32 a Retry-After beyond the connect time-out fails at once, and the reason says so ${args}`, async (t) => {
    const up = await startStateless({ both: true, busy: { 'server/discover': { status: 503, after: 30, times: 1000 } } });
    t.defer(() => up.stop());
    const limits = { connect_timeout_ms: 20_000, retry_min_ms: 50 };
    const gateway = await t.gateway({ mcpServers: { up: { url: up.url } }, limits }, { args });
    await until('it fails before the time-out', async () => {
      const { reason } = (await statusOf(gateway)).servers[0];
      return /asks for a retry after 30 s, which exceeds the request's time-out/.test(reason ?? '');
    }, 15_000);
    await sleep(1_000); // in this time, the lane's own delay of 50 ms would pass several times
    assert.deepEqual(up.requests.map(({ body }) => JSON.parse(body).method), ['server/discover']);
  });
}

test('an upstream that is down at the start, or goes down later, is reconnected', async (t) => {
  const port = await lastingPort();
  const up = await t.fakeHttp({ port });
  await up.stop();
  const gateway = await t.gateway({
    limits: { retry_min_ms: 50, retry_max_ms: 100, grace_ms: 100 },
    mcpServers: { up: { url: `http://127.0.0.1:${port}/mcp` } },
  });
  const client = await t.http(gateway);
  await client.listen();
  assert.deepEqual(await client.toolNames(), []);
  const again = await t.fakeHttp({ port });
  await client.note('notifications/tools/list_changed');
  assert.ok((await client.toolNames()).includes('up__echo'));
  await again.stop();
  await assert.rejects(client.tool('up__echo'), /\bup\b/);
  await t.fakeHttp({ port });
  await until('it works again', () => client.tool('up__echo'));
});

test('progress, log messages and list_changed of an HTTP upstream are forwarded', async (t) => {
  const up = await t.fakeHttp();
  const gateway = await t.gateway({ mcpServers: { up: { url: up.url } } });
  const client = await t.http(gateway);
  await client.listen();
  await client.tools();
  const answer = await client.request('tools/call', { name: 'up__progress', arguments: {}, _meta: { progressToken: 'mine' } });
  assert.equal(answer.via, 'sse');
  const progress = answer.notes.filter((note) => note.method === 'notifications/progress');
  assert.deepEqual(progress.map((note) => [note.params.progressToken, note.params.progress]), [['mine', 1], ['mine', 2], ['mine', 3]]);
  assert.equal(answer.notes.filter((note) => note.method === 'notifications/message').length, 3);
  await client.tool('up__grow');
  await client.note('notifications/tools/list_changed');
  await until('the new tool is listed', async () => (await client.toolNames()).some((name) => name.startsWith('up__grown')));
});

// Creates a key and a self-signed certificate for 127.0.0.1.
function selfSigned(t, name) {
  const [key, cert] = [t.path(`${name}.key`), t.path(`${name}.pem`)];
  execFileSync('openssl', [
    'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert,
  ], { stdio: 'ignore' });
  return { file: cert, key: readFileSync(key), cert: readFileSync(cert) };
}

test('A24 an upstream may support only HTTP/2 over TLS', async (t) => {
  const { file, key, cert } = selfSigned(t, 'good');
  const up = await t.fakeHttp({ tls: { key, cert } });
  const stranger = await t.fakeHttp({ tls: selfSigned(t, 'unknown') });
  const gateway = await t.gateway(
    { mcpServers: { up: { url: up.url }, stranger: { url: stranger.url } } },
    { env: { SSL_CERT_FILE: file } },
  );
  const client = await t.http(gateway);
  await client.listen();
  await client.tools();
  assert.equal((await client.tool('up__echo', { n: 1 })).echo.n, 1);
  assert.equal((await client.tool('up__echo_sse', { n: 2 })).echo.n, 2);
  const long = 'x'.repeat(1_000_000); // exceeds the initial window of HTTP/2
  assert.equal((await client.tool('up__echo', { long })).echo.long, long);
  const calls = Array.from({ length: 20 }, (_, n) => client.tool('up__slow', { ms: 100, n }));
  assert.deepEqual((await Promise.all(calls)).map(({ echo }) => echo.n), calls.map((_, n) => n));
  await client.tool('up__grow');
  await client.note('notifications/tools/list_changed');
  await assert.rejects(client.tool('up__drop'), /\bup\b/);
  assert.equal((await client.tool('up__poll', { n: 3 })).echo.n, 3);
  assert.deepEqual([...new Set(up.requests.map(({ version }) => version))], ['2.0']);
  console.log(`    ${up.requests.length} requests over ${up.sockets.size} connections`);
  // During each retry, the state of the server is `connecting`.
  await until('its certificate is rejected', async () => {
    const { state, reason } = (await statusOf(gateway)).servers.find(({ name }) => name === 'stranger');
    return state === 'failed' && /certificate/i.test(reason);
  });
  assert.equal(stranger.requests.length, 0);
  await gateway.stop();
  assert.deepEqual([up.opened, up.deleted], [1, 1], 'the session is ended with DELETE');
});

await run();

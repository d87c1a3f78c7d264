// Servers of MCP 2026-07-28, which have no sessions, over stdio and HTTP, for clients of the
// revisions with a session; and how the gateway finds out which generation a server is of.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { assert, fake, filesBelow, node, run, sleep, test, until } from './lib.mjs';
import { startStateless } from '../fixtures/stateless_server.mjs';

const script = fileURLToPath(new URL('../fixtures/stateless_server.mjs', import.meta.url));
// The SDK is outside of the sandbox's view.
const overStdio = (...args) => ({ command: node, args: [script, 'stdio', ...args], sandbox: 'off' });
const PREFIX = 'io.modelcontextprotocol/';
const said = (result) => JSON.parse(result.content[0].text);

async function overHttp(t, options) {
  const up = await startStateless(options);
  t.defer(() => up.stop());
  return up;
}
// Both transports of a stateless server.
const transports = {
  stdio: async () => ({ definition: overStdio() }),
  http: async (t) => {
    const up = await overHttp(t);
    return { up, definition: { url: up.url } };
  },
};

for (const [transport, start] of Object.entries(transports)) {
  test(`a stateless server over ${transport}: tools, resources, prompts, completion`, async (t) => {
    const { definition } = await start(t);
    const gateway = await t.gateway({ mcpServers: { up: definition } });
    const client = await t.http(gateway, { capabilities: { roots: { listChanged: true } } });
    const { result, resultText } = await client.request('tools/call', '{"name":"up__echo","arguments":{ "a" : [1e2, "ü"] }}');
    assert.deepEqual(said(result), { a: [100, 'ü'] });
    assert.deepEqual(Object.keys(JSON.parse(resultText)).sort(), ['content', 'structuredContent']);
    const broken = await client.tool('up__broken');
    assert.equal(broken.isError, true);
    assert.equal(broken.resultType, undefined);
    const { meta } = said(await client.tool('up__seen', {}, { meta: { 'com.example/own': 7 } }));
    assert.equal(meta[`${PREFIX}protocolVersion`], '2026-07-28');
    assert.deepEqual(meta[`${PREFIX}clientCapabilities`], {});
    assert.equal(meta[`${PREFIX}clientInfo`].name, 'bulkhead');
    assert.equal(meta[`${PREFIX}logLevel`], undefined);
    assert.equal(meta['com.example/own'], 7);
    const { resources } = await client.call('resources/list');
    const uri = resources.find(({ name }) => name === 'up__note' || name === 'note').uri;
    const read = await client.call('resources/read', { uri });
    assert.equal(read.contents[0].text, 'text 1');
    assert.deepEqual(Object.keys(read), ['contents'], 'no ttlMs, cacheScope, resultType or serverInfo');
    const got = await client.call('prompts/get', { name: 'up__hello' });
    assert.equal(got.messages[0].content.text, 'hello');
    assert.deepEqual(Object.keys(got), ['messages']);
    const completed = await client.call('completion/complete', { ref: { type: 'ref/prompt', name: 'up__hello' }, argument: { name: 'a', value: 'x' } });
    assert.deepEqual(completed, { completion: { values: ['a'] } });
    const unknown = await client.tool('up__echo2').catch((error) => error);
    assert.match(unknown.message, /echo2/);
  });

  test(`a stateless server over ${transport}: a missing resource has the code of the sessions`, async (t) => {
    const { definition } = await start(t);
    const gateway = await t.gateway({ mcpServers: { up: definition } });
    const client = await t.http(gateway);
    const { resources } = await client.call('resources/list');
    const uri = resources[0].uri.replace('note', 'missing');
    const error = await client.call('resources/read', { uri }).then(() => assert.fail('it was read'), (e) => e);
    assert.equal(error.code, -32002);
    assert.match(error.message, /missing/);
  });

  test(`a stateless server over ${transport}: progress, log level and cancellation`, async (t) => {
    const { definition, up } = await start(t);
    const gateway = await t.gateway({ mcpServers: { up: definition } });
    const client = await t.http(gateway);
    const params = (ms) => ({ name: 'up__slow', arguments: { ms }, _meta: { progressToken: 'mine' } });
    const quiet = await client.request('tools/call', params(30));
    assert.deepEqual(quiet.notes.map(({ params: p }) => [p.progressToken, p.progress]), [['mine', 1], ['mine', 2], ['mine', 3]]);
    await client.call('logging/setLevel', { level: 'info' });
    const loud = await client.request('tools/call', params(30));
    assert.deepEqual(loud.notes.filter(({ method }) => method === 'notifications/message').map(({ params: p }) => p.data), ['step 1', 'step 2', 'step 3']);
    assert.equal(said(await client.tool('up__seen')).meta[`${PREFIX}logLevel`], 'info');
    await client.call('logging/setLevel', { level: 'error' });
    const errors = await client.request('tools/call', params(30));
    assert.deepEqual(errors.notes.filter(({ method }) => method === 'notifications/message'), []);
    const id = client.nextId;
    const running = client.request('tools/call', params(20_000)).catch(() => {});
    await sleep(300);
    await client.notify('notifications/cancelled', { requestId: id });
    if (up) await until('the server sees the cancellation', () => up.content.cancelled.length === 1);
    assert.equal(said(await client.tool('up__echo', 5)), 5, 'the server still works');
    if (up) assert.equal(up.messages('notifications/cancelled').length, 0, 'closing the response is the cancellation');
    await Promise.race([running, sleep(200)]);
  });
}

for (const [transport, start] of Object.entries(transports)) {
  test(`a stateless server over ${transport}: changed lists and watched resources are reported`, async (t) => {
    const { definition, up } = await start(t);
    const gateway = await t.gateway({ mcpServers: { up: definition } });
    const client = await t.http(gateway);
    await client.listen();
    await client.tools();
    await client.tool('up__grow');
    await client.note('notifications/tools/list_changed');
    assert.ok((await client.toolNames()).some((name) => name.startsWith('up__grown')));
    const { resources } = await client.call('resources/list');
    const uri = resources[0].uri;
    assert.deepEqual(await client.call('resources/subscribe', { uri }), {});
    await client.tool('up__touch', { uri: 'test://note' });
    const { params } = await client.note('notifications/resources/updated');
    assert.equal(params.uri, uri);
    assert.equal(params._meta?.[`${PREFIX}subscriptionId`], undefined, 'the subscription is the gateway\'s own');
    await client.call('resources/unsubscribe', { uri });
    if (up) await until('the server is no longer asked about it', () => up.messages('subscriptions/listen').at(-1).params.notifications.resourceSubscriptions === undefined);
    await client.tool('up__touch', { uri: 'test://note' });
    await sleep(200);
    assert.equal(client.notes.filter(({ method }) => method === 'notifications/resources/updated').length, 0);
    if (up) assert.equal(up.messages('resources/subscribe').length + up.messages('logging/setLevel').length, 0);
  });
}

test('subscriptions/listen that ends is opened again, and the lists are read again', async (t) => {
  const { definition, up } = await transports.http(t);
  const gateway = await t.gateway({ mcpServers: { up: definition } });
  const client = await t.http(gateway);
  await client.listen();
  await client.tools();
  assert.deepEqual(up.messages('subscriptions/listen')[0].params.notifications, { toolsListChanged: true, resourcesListChanged: true });
  up.content.tools.push('late');  // while nothing is announced
  up.cutListens();
  await client.note('notifications/tools/list_changed');
  assert.ok((await client.toolNames()).includes('up__late'));
  assert.equal(up.messages('subscriptions/listen').length, 2);
});

test('requests to a stateless server over HTTP have their headers, and no session', async (t) => {
  const { up, definition } = await transports.http(t);
  const gateway = await t.gateway({ mcpServers: { up: definition } });
  const client = await t.http(gateway);
  const names = await client.toolNames();
  assert.ok(names.includes('up__region'));
  assert.ok(!names.includes('up__invalid'), 'an invalid x-mcp-header is not offered over HTTP');
  assert.match(gateway.stderr(), /"invalid" is not offered/);
  await client.tool('up__region', { region: 'süd' });
  await client.tool('up__region', {});
  const { resources } = await client.call('resources/list');
  for (const { uri } of resources) await client.call('resources/read', { uri });
  await client.call('prompts/get', { name: 'up__hello' });
  for (const { method, headers, body } of up.requests) {
    assert.equal(method, 'POST', 'no GET stream, no DELETE');
    const message = JSON.parse(body);
    assert.equal(headers['mcp-protocol-version'], '2026-07-28');
    assert.equal(headers['mcp-method'], message.method);
    assert.equal(headers['mcp-session-id'], undefined);
  }
  const [first, second] = up.messages('tools/call');
  assert.equal(first.headers['mcp-name'], 'region');
  assert.equal(first.headers['mcp-param-region'], '=?base64?c8O8ZA==?=');
  assert.equal(second.headers['mcp-param-region'], undefined);
  assert.deepEqual(up.messages('resources/read').map(({ headers }) => headers['mcp-name']), ['test://note', '=?base64?dGVzdDovL8O8?=']);
  assert.equal(up.messages('prompts/get')[0].headers['mcp-name'], 'hello');
  await gateway.stop();
  assert.ok(up.requests.every(({ method }) => method === 'POST'));
});

test('servers of both generations behind one gateway, and on stdio an invalid x-mcp-header is ignored', async (t) => {
  const up = await overHttp(t);
  const old = await t.fakeHttp();
  const gateway = await t.gateway({ mcpServers: { a: overStdio(), b: { url: up.url }, c: { url: old.url }, d: fake('--tool', 'echo') } });
  const client = await t.http(gateway);
  await until('all are listed', async () => (await client.toolNames()).filter((name) => name.endsWith('__echo')).length === 4);
  assert.ok((await client.toolNames()).includes('a__invalid'));
  const results = await Promise.all(['a', 'b', 'c', 'd'].map((name) => client.tool(`${name}__echo`, { name })));
  for (const result of results) assert.ok(JSON.stringify(result).includes('name'));
  for (const result of results) assert.equal(result.resultType, undefined);
});

// ---- which generation a server is of ------------------------------------------------------------

const lines = (path) => (existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []);
const received = (path) => lines(path).filter((line) => line.startsWith('< ')).map((line) => JSON.parse(line.slice(2)).method).filter(Boolean);
const starts = (path) => lines(path).filter((line) => line.startsWith('! start')).length;

for (const [kind, options] of Object.entries({
  'answers an error': [],
  'is silent': ['--hang', 'server/discover'],
  exits: ['--exit-on', 'server/discover'],
})) {
  test(`a server with sessions that ${kind} on server/discover never gets it`, async (t) => {
    const log = t.path('log');
    const profile = { mcpServers: { up: { ...fake('--tool', 'echo', '--log', log, ...options), sandbox: 'off' } } };
    const gateway = await t.gateway(profile);
    const client = await t.http(gateway);
    await client.tool('up__echo');
    await until('the list is stored', () => filesBelow(gateway.dir).some(({ path, text }) => path.endsWith('/lists/up') && text?.includes('"protocol":"2025-11-25"')));
    await gateway.stop();
    await gateway.again();
    const second = await t.http(gateway);
    await second.tool('up__echo');
    assert.equal(received(log).filter((method) => method === 'initialize').length, 2);
    assert.ok(!received(log).includes('server/discover'));
    assert.equal(starts(log), 2);
  });
}

test('a stateless server gets initialize once, and the verdict is used by the next gateway', async (t) => {
  const { definition, up } = await transports.http(t);
  const gateway = await t.gateway({ mcpServers: { up: definition } });
  await (await t.http(gateway)).tool('up__echo');
  assert.equal(up.messages('initialize').length, 1);
  await until('the list is stored', () => filesBelow(gateway.dir).some(({ path, text }) => path.endsWith('/lists/up') && text?.includes('"protocol":"2026-07-28"')));
  await gateway.stop();
  await gateway.again();
  await (await t.http(gateway)).tool('up__echo');
  assert.equal(up.messages('initialize').length, 1);
});

test('a server that is upgraded, downgraded and upgraded again between starts', async (t) => {
  const log = t.path('log');
  const old = { ...fake('--tool', 'echo', '--log', log), sandbox: 'off' };
  const chosen = t.path('which');
  const wrapper = t.path('server.sh');
  const use = ({ command, args }) => {
    writeFileSync(`${chosen}.new`, `exec ${[command, ...args].map((word) => `'${word}'`).join(' ')}\n`);
    renameSync(`${chosen}.new`, chosen);
  };
  writeFileSync(wrapper, `. ${chosen}\n`);
  use(old);
  const gateway = await t.gateway({ mcpServers: { up: { command: '/bin/sh', args: [wrapper], sandbox: 'off' } } });
  const works = async () => {
    const client = await t.http(gateway);
    return until('a call works', async () => JSON.stringify(await client.tool('up__echo', { n: 1 })).includes('1'));
  };
  await works();
  for (const next of [overStdio(), old, overStdio('--both')]) {
    await gateway.stop();
    use(next);
    await gateway.again();
    await works();
  }
});

test('a server over HTTP that changes its generation while the gateway runs', async (t) => {
  const first = await startStateless();
  const { port } = first;
  const gateway = await t.gateway({ limits: { retry_min_ms: 50, retry_max_ms: 200 }, mcpServers: { up: { url: first.url } } });
  const client = await t.http(gateway);
  await client.tool('up__echo', { n: 1 });
  await first.stop();
  const old = await t.fakeHttp({ port });
  await until('a call works', () => client.tool('up__echo', { n: 2 }));
  assert.ok(old.opened >= 1);
  await old.stop();
  const last = await overHttp(t, { port });
  await until('a call works again', async () => said(await client.tool('up__echo', { n: 3 })).n === 3);
  for (const { content } of [first, last]) assert.ok(content.calls.filter(({ args }) => args.n !== undefined).length <= 1, 'no call runs twice');
});

test('protocol pins the revision', async (t) => {
  const log = t.path('log');
  const up = await overHttp(t, { both: true });
  const gateway = await t.gateway({
    mcpServers: {
      old: { ...fake('--tool', 'echo', '--log', log), sandbox: 'off', protocol: '2025-03-26' },
      wrong: { ...fake('--tool', 'echo'), protocol: '2026-07-28' },
      both: { url: up.url, protocol: '2025-06-18' },
    },
  });
  const client = await t.http(gateway);
  await client.tool('old__echo');
  await client.tool('both__echo');
  assert.equal(received(log)[0], 'initialize');
  assert.equal(JSON.parse(lines(log).find((line) => line.includes('"initialize"')).slice(2)).params.protocolVersion, '2025-03-26');
  assert.equal(up.messages('server/discover').length, 0);
  assert.equal(up.messages('initialize')[0].params.protocolVersion, '2025-06-18');
  const names = await client.toolNames();
  assert.ok(!names.some((name) => name.startsWith('wrong__')));
  assert.match(gateway.stderr(), /"wrong": rejected server\/discover/);
});

await run();

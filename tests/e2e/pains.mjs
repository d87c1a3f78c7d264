// Tests known faults of other gateways. A comment before each test describes the fault.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { assert, fake, patience, processesWith, run, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const MODERN = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
const quickly = { retry_min_ms: 50, retry_max_ms: 150, grace_ms: 100 };
const read = (file) => readFileSync(file, 'utf8');
const received = (log, method) => read(log).split('\n').filter((line) => line.startsWith('< ') && line.includes(`"${method}"`));
const lastPid = (log) => processesWith(log).at(-1);

// Fault: the first request of a client of 2026-07-28 hangs, or terminates the session of a client
// that falls back to initialize. Or it is forwarded to upstreams of earlier revisions, which may
// exit because they do not know the method. Or such upstreams are dropped.
test('pain-2 modern client, old upstreams', async (t) => {
  const old = (revision) => fake('--tool', 'a', '--protocol', revision, '--exit-on', 'server/discover');
  const web = await t.fakeHttp({ protocol: '2025-03-26' });
  const profile = { mcpServers: { y24: old('2024-11-05'), y25: old('2025-03-26'), web: { url: web.url } } };
  const gateway = await t.gateway(profile);
  for (const client of [await t.http(gateway, { initialize: false }), await t.stdio(profile, { initialize: false })]) {
    // Over HTTP, headers repeat values of the body.
    const mirrored = (method, name) => ({ headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(name && { 'mcp-name': name }) } });
    const discovered = await client.call('server/discover', { _meta: MODERN }, mirrored('server/discover'));
    assert.deepEqual(discovered.supportedVersions, ['2026-07-28']);
    for (const name of ['y24__a', 'y25__a', 'web__echo']) {
      assert.equal((await client.call('tools/call', { name, arguments: {}, _meta: MODERN }, mirrored('tools/call', name))).resultType, 'complete', name);
    }
    await client.initialize();
    assert.equal(client.server.protocolVersion, '2025-11-25');
    for (const tool of ['y24__a', 'y25__a', 'web__echo']) await client.tool(tool);
  }
  // This revision does not define the header. A server may reject a header that was not negotiated.
  assert.ok([undefined, '2025-03-26'].includes(web.messages('tools/call')[0].headers['mcp-protocol-version']));
  // The gateway asks a new server itself; the clients' requests end at the gateway.
  const probes = web.messages('server/discover').map((message) => JSON.parse(message.raw).params._meta['io.modelcontextprotocol/clientInfo'].name);
  assert.deepEqual(probes, ['bulkhead', 'bulkhead'], 'once for each of the two gateways');
});

// Fault: the list waits for the slowest upstream, or fails as soon as one upstream fails.
test('pain-5 one failing upstream does not affect the list of others', async (t) => {
  const gateway = await t.gateway({
    limits: { first_list_wait_ms: 3000 * patience, connect_timeout_ms: 30_000 },
    mcpServers: {
      good: fake('--tool', 'a'),
      mute: fake('--tool', 'a', '--hang', 'initialize'),
      listless: fake('--tool', 'a', '--hang', 'tools/list'),
      broken: fake('--tool', 'a', '--fail', 'tools/list=1000'),
      absurd: fake('--tool', 'a', '--tool-json', '"not a tool"'),
      dying: fake('--exit-on', 'initialize'),
      gone: { command: '/no/such/program' },
      refused: { url: 'http://127.0.0.1:9/mcp' },
      unresolved: { url: 'http://no-such-host.invalid/mcp' },
    },
  });
  const client = await t.http(gateway);
  const names = await client.toolNames();
  assert.ok(names.includes('good__a'));
  await client.tool('good__a');
  const { servers } = await statusOf(gateway);
  assert.equal(servers.length, 9);
  for (const server of servers) {
    if (server.name === 'good' || server.name === 'absurd') continue;
    // The first list has not waited for the time-out of these servers.
    if (server.name === 'mute' || server.name === 'listless') assert.equal(server.state, 'connecting', server.name);
    assert.notEqual(server.state, 'ready', server.name);
    if (server.state === 'failed') assert.ok(server.reason.length > 5, `${server.name} has a reason`);
  }
});

// Fault: after the first list has failed or was empty, it is never requested again.
test('pain-6 a server that was connected with zero tools recovers', async (t) => {
  const web = await t.fakeHttp({ tools: [] });
  const broken = t.path('broken');
  writeFileSync(broken, '');
  const gateway = await t.gateway({
    limits: quickly,
    mcpServers: { failing: fake('--tool', 'a', '--refuse', `tools/list=${broken}`), empty: fake('--tool', 'a', '--empty-until', '400'), web: { url: web.url } },
  });
  const client = await t.http(gateway);
  await client.listen();
  assert.ok(!(await client.toolNames()).includes('failing__a'));
  assert.notEqual((await statusOf(gateway)).servers.find((server) => server.name === 'failing').state, 'ready');
  rmSync(broken);
  await until('tools after failed and empty lists', async () => {
    const names = await client.toolNames();
    return names.includes('failing__a') && names.includes('empty__a');
  });
  web.tools.push('echo');
  await until('the stream of the upstream is open', () => [...web.sessions.values()].some((session) => session.get));
  web.announce('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
  await until('the tool that appeared', async () => (await client.toolNames()).includes('web__echo'));
  await client.note('notifications/tools/list_changed');
});

// Fault: a server that failed to start is never retried, or a server that has exited is reported as
// healthy.
test('pain-7 a server that has exited is restarted, and status shows it', async (t) => {
  const [log, broken] = [t.path('log'), t.path('broken')];
  writeFileSync(broken, '');
  const gateway = await t.gateway({ limits: quickly, mcpServers: { up: fake('--tool', 'a', '--log', log, '--fail-while', broken) } });
  const state = async () => (await statusOf(gateway)).servers[0];
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), []);
  assert.notEqual((await state()).state, 'ready');
  assert.match((await state()).reason, /exit|told to fail|ended/i);
  rmSync(broken);
  await until('it is up', () => client.tool('up__a'));
  for (let i = 0; i < 2; ++i) {
    const pid = lastPid(log);
    writeFileSync(broken, '');
    process.kill(pid, 'SIGKILL');
    await until('its end is detected', async () => (await state()).state !== 'ready');
    rmSync(broken);
    await until('it is up again', () => client.tool('up__a'));
    assert.notEqual(lastPid(log), pid);
  }
  assert.ok((await state()).restarts >= 2);
});

// Fault: each refresh, health check, status query or list opens an upstream session that is never
// closed.
test('pain-8 lists, status and clients leave no upstream sessions', async (t) => {
  const web = await t.fakeHttp();
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { web: { url: web.url }, child: fake('--tool', 'a', '--log', log, '--add', 'a=b') } });
  for (let round = 0; round < 5; ++round) {
    const client = await t.http(gateway);
    for (let i = 0; i < 5; ++i) await client.tools();
    await statusOf(gateway);
    await client.tool('child__a'); // changes the catalogue
    await client.call('ping');
    await client.close();
  }
  assert.equal(web.opened, 1);
  assert.equal(read(log).match(/^! start/gm).length, 1);
  await gateway.stop();
  assert.equal(web.deleted, 1);
  assert.equal(web.sessions.size, 0);
});

// Fault: each call opens a new upstream session, so state is lost and each call requires a
// handshake.
test('pain-9 calls share the upstream session; per-client sessions stay separate', async (t) => {
  const [shared, own] = [await t.fakeHttp(), await t.fakeHttp()];
  const gateway = await t.gateway({ mcpServers: { shared: { url: shared.url }, own: { url: own.url, session: 'per-client' } } });
  const clients = [await t.http(gateway), await t.http(gateway), await t.http(gateway)];
  for (let i = 0; i < 5; ++i) {
    for (const client of clients) {
      await client.tool('shared__echo');
      await client.tool('own__echo', { who: clients.indexOf(client) });
    }
  }
  const sessionsOf = (web) => new Set(web.messages('tools/call').map(({ headers }) => headers['mcp-session-id']));
  assert.equal(sessionsOf(shared).size, 1);
  assert.equal(shared.messages('initialize').length, 1);
  assert.equal(sessionsOf(own).size, 3);
  const users = new Map();
  for (const { headers, raw } of own.messages('tools/call')) {
    const who = /"who":(\d)/.exec(raw)[1];
    users.set(headers['mcp-session-id'], (users.get(headers['mcp-session-id']) ?? new Set()).add(who));
  }
  for (const who of users.values()) assert.equal(who.size, 1, 'a session belongs to one client');
  const before = own.sessions.size;
  await clients[0].close();
  await until('the session of a disconnected client is ended', () => own.sessions.size === before - 1);
});

// Fault: only one of several permitted formats or orders is accepted.
test('pain-11 session ids and headers of real clients are accepted', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x') } });
  const client = await t.http(gateway, { initialized: false, leaveOpen: true });
  const id = client.session;
  assert.match(id, /^[\x21-\x7e]{16,}$/);
  const call = (headers) =>
    client.exchange('POST', { body: client.message('tools/call', { name: 'a__x', arguments: {} }, 5), headers });
  const accepts = ['application/json, text/event-stream', 'text/event-stream,application/json', 'application/json;q=0.9, text/event-stream;q=1.0',
    'text/event-stream , application/json, */*;q=0.1', '*/*', 'Application/JSON, Text/Event-Stream'];
  for (const accept of accepts) {
    const answer = await call({ accept, 'mcp-session-id': id });
    assert.equal(answer.status, 200, accept);
    assert.match(answer.body, /fake\/x/);
  }
  for (const name of ['Mcp-Session-Id', 'MCP-SESSION-ID', 'mcp-session-id']) {
    assert.equal((await call({ accept: accepts[0], [name]: id })).status, 200, name);
  }
  assert.equal((await call({ accept: accepts[0], 'mcp-session-id': id, 'mcp-protocol-version': '2025-11-25' })).status, 200);
  assert.equal((await call({ accept: accepts[0], 'mcp-session-id': id, 'mcp-protocol-version': 'nonsense' })).status, 400);
  const stream = await client.listen(); // sent before notifications/initialized
  assert.match(stream.headers['content-type'], /^text\/event-stream/);
  assert.equal((await call({ accept: accepts[0] })).status, 400, 'no session id');
  assert.equal((await call({ accept: accepts[0], 'mcp-session-id': 'unknown' })).status, 404);
  const get = (headers) => client.exchange('GET', { headers: { accept: 'text/event-stream', ...headers } });
  assert.equal((await get({ 'mcp-session-id': 'unknown' })).status, 404);
  const gone = await client.exchange('DELETE', { headers: { 'mcp-session-id': id } });
  assert.ok(gone.status >= 200 && gone.status < 300);
  assert.equal((await call({ accept: accepts[0], 'mcp-session-id': id })).status, 404);
  const probe = await client.exchange('GET', { path: '/.well-known/oauth-protected-resource', headers: {} });
  assert.equal(probe.status, 404, 'no authorization server is advertised');
});

// Fault: the prefix makes names longer than clients accept, and one long name makes the whole
// session unusable. Or shortened names collide, or differ after a restart.
test('pain-15 names over 64 characters are shortened', async (t) => {
  const long = 'a_tool_with_a_name_that_is_already_as_long_as_some_clients_will_tak';
  const log = t.path('log');
  const server = 'some-server-with-a-long-name';
  const tools = [`${long}1`, `${long}2`, 'x'.repeat(128), 'short'];
  const definition = fake(...tools.flatMap((tool) => ['--tool', tool]), '--log', log);
  const lists = [];
  for (let start = 0; start < 2; ++start) {
    const gateway = await t.gateway({ mcpServers: { [server]: definition } });
    const client = await t.http(gateway);
    const names = await client.toolNames();
    assert.equal(new Set(names).size, 4);
    for (const name of names) assert.match(name, /^[A-Za-z0-9_.-]{1,64}$/);
    assert.ok(names.includes(`${server}__short`));
    for (const [i, name] of names.entries()) assert.equal((await client.tool(name)).content[0].text, `fake/${tools[i]}`);
    lists.push(names);
  }
  assert.deepEqual(lists[0], lists[1], 'stable over starts');
  const strict = await t.gateway({ naming: { long_names: 'error' }, mcpServers: { [server]: definition } });
  const client = await t.http(strict);
  assert.deepEqual(await client.toolNames(), [`${server}__short`]);
  assert.match(JSON.stringify(await statusOf(strict)), new RegExp(long));
});

// Fault: notifications are dropped, or are buffered until the response arrives.
test('pain-16 notifications are forwarded immediately', async (t) => {
  const message = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"l","data":{"k":[1e400]}}}';
  const gateway = await t.gateway({
    mcpServers: {
      a: fake('--tool', 'tell', '--tool', 'slow', '--delay', 'slow=3000', '--progress', '2', '--resource', 'r:1', '--prompt', 'p',
        '--add', 'tell=new', '--add-resource', 'tell=r:2', '--add-prompt', 'tell=q', '--notify', `tell=${message}`),
    },
  });
  const [caller, other] = [await t.http(gateway), await t.http(gateway)];
  for (const client of [caller, other]) await client.listen();
  // A client that has not requested a list need not be notified of its changes.
  for (const client of [caller, other]) {
    for (const kind of ['tools', 'resources', 'prompts']) await client.all(`${kind}/list`, kind);
  }
  await caller.tool('a__tell');
  for (const client of [caller, other]) {
    for (const kind of ['tools', 'resources', 'prompts']) await client.note(`notifications/${kind}/list_changed`);
  }
  const said = await caller.note('notifications/message');
  assert.match(said.raw, /\{"k":\[1e400\]\}/);
  assert.equal(said.params.logger, 'l');
  let answered = false;
  const call = caller.tool('a__slow', {}, { meta: { progressToken: 7 } }).then(() => (answered = true));
  const progress = await caller.note('notifications/progress');
  assert.equal(progress.params.progressToken, 7);
  assert.ok(!answered, 'progress arrives while the call runs');
  await call;
  assert.ok(!other.notes.some((entry) => entry.method === 'notifications/progress'), 'progress belongs to the caller');
});

// Fault: _meta, progress, log messages or elicitation requests are dropped, or an elicitation
// request is sent to an unrelated client.
test('pain-19 _meta, progress, log messages and elicitation requests reach the right client', async (t) => {
  const log = t.path('log');
  const ask = 'ask={"method":"elicitation/create","params":{"message":"ok?","requestedSchema":{"type":"object","properties":{"x":{"type":"number","default":1e400}}}}}';
  const definition = fake('--tool', 'ask', '--ask', ask, '--tool', 'plain', '--progress', '2', '--log', log, '--result', 'plain={"content":[],"_meta":{"seen":[1.0]}}');
  const gateway = await t.gateway({ mcpServers: { a: definition } });
  const answer = '{"action":"accept","content":{"x":12345678901234567890}}';
  const options = (said) => ({ capabilities: { elicitation: {}, sampling: {} }, onAsk: () => said });
  const [caller, other] = [await t.http(gateway, options(answer)), await t.http(gateway, options('{"action":"decline"}'))];
  for (const client of [caller, other]) await client.listen();
  const asked = await caller.request('tools/call', { name: 'a__ask', arguments: {} });
  assert.ok(asked.resultText.includes(answer), 'the answer of the user arrives as it was given');
  assert.equal(caller.asks.length, 1);
  assert.equal(other.asks.length, 0);
  assert.match(caller.asks[0].raw, /"default":1e400/);
  const result = await caller.request('tools/call', '{"name":"a__plain","arguments":{},"_meta":{"com.example/k":{"n":1e400},"progressToken":"tok"}}');
  assert.match(result.resultText, /"_meta":\{"seen":\[1\.0\]\}/);
  const call = received(log, 'tools/call').at(-1);
  assert.match(call, /"com\.example\/k":\{"n":1e400\}/);
  assert.deepEqual(result.notes.filter((note) => note.method === 'notifications/progress').map((note) => note.params.progressToken), ['tok', 'tok']);
  await caller.call('logging/setLevel', { level: 'error' });
  await until('the level reaches the server', () => received(log, 'logging/setLevel').length > 0);
});

// Fault: an elicitation or sampling request that belongs to no call is sent to any client, or a
// request to a client that does not support it blocks the call.
test('pain-19 server-initiated requests without a matching client are rejected', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({
    mcpServers: { a: fake('--tool', 'x', '--unsolicited-ask', 'roots/list', '--tool', 'ask', '--ask', 'ask={"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}', '--log', log) },
  });
  const able = await t.http(gateway, { capabilities: { roots: {}, sampling: {}, elicitation: {} }, onAsk: () => ({ roots: [] }) });
  await able.listen();
  const unable = await t.http(gateway);
  await unable.tool('a__x');
  await until('the unsolicited request is rejected', () => /^< .*"id":"unsolicited".*"error"/m.test(read(log)));
  const refused = await unable.tool('a__ask');
  assert.equal(refused.asked.error.code, -32601);
  assert.equal(able.asks.length, 0);
});

// Fault: if several clients share a connection, a server-initiated request is sent to the first
// caller.
test('pain-19 with several in-flight calls, no unrelated client is asked', async (t) => {
  const ask = 'ask={"method":"elicitation/create","params":{"message":"ok?","requestedSchema":{"type":"object","properties":{}}}}';
  const web = await t.fakeHttp();
  const gateway = await t.gateway({
    mcpServers: { pipe: fake('--tool', 'slow', '--delay', 'slow=3000', '--tool', 'ask', '--ask', ask), web: { url: web.url } },
  });
  const options = () => ({ capabilities: { elicitation: {} }, onAsk: () => ({ action: 'accept', content: {} }) });
  const [bystander, asker] = [await t.http(gateway, options()), await t.http(gateway, options())];
  await bystander.listen();
  for (const [slow, asking] of [['pipe__slow', 'pipe__ask'], ['web__slow', 'web__ask']]) {
    const running = bystander.tool(slow, { ms: 3000 });
    await until('the slow call runs', async () => (await statusOf(gateway)).in_flight === 1);
    const { asked } = await asker.tool(asking, { params: { message: 'ok?', requestedSchema: { type: 'object', properties: {} } } });
    if (slow.startsWith('web')) assert.equal(asked.result.action, 'accept', 'HTTP says which call asks');
    else assert.ok(asked.error ?? ['accept', 'cancel'].includes(asked.result.action), JSON.stringify(asked));
    await running;
  }
  assert.equal(bystander.asks.length, 0);
});

// Fault: the catalogue is not updated after the first connection.
test('pain-20 the catalogue follows list_changed and restarts', async (t) => {
  const web = await t.fakeHttp({ tools: ['echo'] });
  const gateway = await t.gateway({
    limits: quickly,
    mcpServers: { a: fake('--tool', 'first', '--tool', 'die', '--die', 'die', '--add', 'first=second', '--tool', 'third', '--remove', 'third=first'), web: { url: web.url } },
  });
  const client = await t.http(gateway);
  await client.listen();
  assert.deepEqual((await client.toolNames()).sort(), ['a__die', 'a__first', 'a__third', 'web__echo']);
  await client.tool('a__first');
  await until('an added tool', async () => (await client.toolNames()).includes('a__second'));
  await client.tool('a__second');
  await client.tool('a__third');
  await until('a removed tool', async () => !(await client.toolNames()).includes('a__first'));
  await assert.rejects(client.tool('a__first'), { code: -32601 });
  await client.tool('a__die').catch(() => {});
  await until('the list of the new process', async () => {
    const names = await client.toolNames();
    return names.includes('a__first') && !names.includes('a__second');
  });
  web.tools = ['slow'];
  web.forgetSessions();
  await client.tool('web__echo').catch(() => {});
  await until('the list of the new session', async () => {
    const names = await client.toolNames();
    return names.includes('web__slow') && !names.includes('web__echo');
  });
});

// Fault: if a server hangs, the client waits forever or receives an error that does not name the
// server.
test('pain-24 if a server hangs, the timeout error names the server', async (t) => {
  const web = await t.fakeHttp();
  const gateway = await t.gateway({
    limits: { connect_timeout_ms: 4000 * patience, call_timeout_ms: 1500, request_timeout_ms: 1500, first_list_wait_ms: 200, retry_min_ms: 20_000, retry_max_ms: 20_000 },
    mcpServers: {
      mute: fake('--tool', 'a', '--hang', 'initialize'),
      listless: fake('--tool', 'a', '--hang', 'tools/list'),
      stuck: fake('--tool', 'a', '--hang', 'tool:a', '--resource', 'r:1', '--hang', 'resources/read', '--prompt', 'p', '--hang', 'prompts/get'),
      web: { url: web.url },
    },
  });
  const client = await t.http(gateway);
  await until('the servers are connected', async () => {
    const names = await client.toolNames();
    return names.includes('stuck__a') && names.includes('web__hang');
  });
  const timed = (promise, name) =>
    promise.then(() => assert.fail('answered'), (error) => {
      assert.equal(error.code, -32000, error.message);
      assert.match(error.message, new RegExp(`\\b${name}\\b`));
      assert.match(error.message, /time|within|after/i);
    });
  await timed(client.tool('stuck__a'), 'stuck');
  await timed(client.tool('web__hang'), 'web');
  await timed(client.call('resources/read', { uri: 'bulkhead://stuck/r:1' }), 'stuck');
  await timed(client.call('prompts/get', { name: 'stuck__p' }), 'stuck');
  for (const name of ['mute', 'listless']) {
    const server = await until(`${name} has failed`, async () => (await statusOf(gateway)).servers.find((s) => s.name === name && s.state === 'failed'));
    assert.match(server.reason, /time|within|answer/i);
    await assert.rejects(client.tool(`${name}__a`), (error) => error.code !== undefined && error.message.includes(name));
  }
});

// Fault: a server-initiated request without a response blocks the call and its resources forever.
test('pain-24 a server-initiated request without a response times out', async (t) => {
  const ask = 'ask={"method":"elicitation/create","params":{"message":"ok?","requestedSchema":{"type":"object","properties":{}}}}';
  const gateway = await t.gateway({ limits: { ask_timeout_ms: 400 }, mcpServers: { a: fake('--tool', 'ask', '--ask', ask) } });
  const client = await t.http(gateway, { capabilities: { elicitation: {} }, onAsk: () => null });
  const said = await client.tool('a__ask').catch((error) => error);
  if (said instanceof Error) assert.match(said.message, /\ba\b/);
  else assert.ok(said.asked.error ?? said.asked.result.action === 'cancel', JSON.stringify(said));
  assert.equal(client.asks.length, 1);
  await until('nothing is left of it', async () => (await statusOf(gateway)).in_flight === 0);
});

// Fault: a hidden tool can be called, or the policy evaluates a different name than the one that is
// executed (two members `name`, different case, an escape sequence, a header).
test('pain-25 lists and calls agree on tool names', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { a: { ...fake('--tool', 'open', '--tool', 'secret', '--log', log), denyTools: ['secret'] } } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['a__open']);
  await assert.rejects(client.tool('a__secret'), { code: -32601 });
  const tricks = [
    '{"name":"a__open","name":"a__secret","arguments":{}}',
    '{"name":"a__open","arguments":{},"Name":"a__secret"}',
    '{"NAME":"a__secret","name":"a__open","arguments":{}}',
    '{"name":"a__open","arguments":{},"n\\u0061me":"a__secret"}',
    '{"name":"a__open","arguments":{},"arguments":{"x":1}}',
    '{"name":"a__open","arguments":{},"Arguments":{"x":1}}',
  ];
  for (const params of tricks) await assert.rejects(client.call('tools/call', params), { code: -32600 }, params);
  const twice = '{"jsonrpc":"2.0","id":90,"method":"ping","method":"tools/call","params":{"name":"a__open"}}';
  await assert.rejects(client.send(twice, 90), { code: -32600 });
  const other = '{"jsonrpc":"2.0","id":91,"method":"tools/call","Params":{"name":"a__secret"},"params":{"name":"a__open"}}';
  await assert.rejects(client.send(other, 91), { code: -32600 });
  const escaped = await client.request('tools/call', '{"name":"a__\\u006fpen","arguments":{}}', { headers: { 'mcp-name': 'a__secret' } });
  assert.equal(escaped.result.content[0].text, 'fake/open', 'routed by the body');
  await assert.rejects(client.call('tools/call', '{"name":"a__s\\u0065cret","arguments":{}}'), { code: -32601 });
  assert.ok(received(log, 'tools/call').every((line) => !line.includes('secret')));
});

// Fault: tools that are listed for one kind of client are shown to all clients.
test('lists depend on the capabilities of the client', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: fake('--tool', 'x', '--tool-if', 'sampling=y') } });
  const [plain, able] = [await t.http(gateway), await t.http(gateway, { capabilities: { sampling: {} } })];
  assert.deepEqual(await plain.toolNames(), ['a__x']);
  // Until its own connection has returned a list, the client sees the list for clients without
  // capabilities.
  await until('the list for a client that can sample', async () => (await able.toolNames()).length === 2);
  assert.deepEqual((await able.toolNames()).sort(), ['a__x', 'a__y']);
  assert.deepEqual(await plain.toolNames(), ['a__x']);
});

await run({ parallel: 4 });

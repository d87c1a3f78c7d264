// Servers of MCP 2026-07-28, which have no sessions, over stdio and HTTP, for clients of the
// revisions with a session; and how the gateway finds out which generation a server is of.
import { existsSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { assert, fake, filesBelow, importFromNpm, lastingPort, node, run, runProgram, show, sleep, test, until } from './lib.mjs';
import { httpOf } from './stateless_client.mjs';
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
    assert.deepEqual(said(await client.tool('up__echo', { n: 5 })), { n: 5 }, 'the server still works');
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
  await until('the log names it', () => filesBelow(gateway.dir).some(({ path, text }) => path.endsWith('bulkhead.log') && /"invalid" is not offered/.test(text)));
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

test('output schemas and structured content that are no objects reach only clients of 2026-07-28', async (t) => {
  const servers = { a: await overHttp(t), b: await overHttp(t) };
  for (const { content } of Object.values(servers)) content.tools.push('numbers');
  const gateway = await t.gateway({
    mcpServers: { a: { url: servers.a.url }, b: { url: servers.b.url }, old: fake('--tool', 'echo') },
  });
  const client = await t.http(gateway);
  const tools = await until('all are listed', async () => {
    const list = (await client.call('tools/list')).tools;
    return ['a__numbers', 'b__numbers', 'old__echo'].every((one) => list.some(({ name }) => name === one)) && list;
  });
  for (const { outputSchema } of tools) assert.ok(outputSchema === undefined || outputSchema.type === 'object', show(outputSchema));
  const modern = await httpOf(t, gateway);
  const raw = (await modern.result('tools/list')).tools;
  for (const server of ['a', 'b']) {
    const { result } = await client.request('tools/call', { name: `${server}__numbers`, arguments: {} });
    assert.deepEqual(result, { content: [{ type: 'text', text: '[1,2]' }] });
    const echoed = await client.tool(`${server}__echo`, { n: 1 });
    assert.deepEqual(echoed.structuredContent, { n: 1 });
    const { outputSchema } = raw.find(({ name }) => name === `${server}__numbers`);
    assert.deepEqual(outputSchema, { type: 'array', items: { type: 'integer' } });
    const own = await modern.result('tools/call', { name: `${server}__numbers`, arguments: {} });
    assert.deepEqual(own.structuredContent, [1, 2]);
  }
});

test('a call whose headers are out of date is sent once more, with those of the new list', async (t) => {
  const { up, definition } = await transports.http(t);
  const gateway = await t.gateway({ mcpServers: { up: definition } });
  const client = await t.http(gateway);
  await client.toolNames();
  const calls = () => up.messages('tools/call').map(({ headers }) => [headers['mcp-param-region'], headers['mcp-param-zone']]);
  up.content.header = 'Zone';  // while nothing is announced
  assert.deepEqual(said(await client.tool('up__region', { region: 'eu' })), { region: 'eu' });
  assert.deepEqual(calls(), [['eu', undefined], [undefined, 'eu']]);
  up.refusals = 9;  // whatever the headers are
  const error = await client.tool('up__region', { region: 'eu' }).then(() => assert.fail('it was accepted'), (e) => e);
  assert.equal(error.code, -32603);
  assert.equal(calls().length, 4, 'it is sent twice, never more');
  up.refusals = 0;
  assert.deepEqual(said(await client.tool('up__region', { region: 'us' })), { region: 'us' });
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

test('clients of 2026-07-28 receive a tool of a stdio server without its invalid x-mcp-header', async (t) => {
  const gateway = await t.gateway({ mcpServers: { up: overStdio() } });
  const http = await httpOf(t, gateway), session = await t.http(gateway);
  const text = (await session.request('tools/list', {})).resultText;
  const { tools } = await http.result('tools/list');
  const schema = (list, name) => list.find((tool) => tool.name === name).inputSchema;
  assert.deepEqual(schema(tools, 'up__invalid'), { type: 'object', properties: { n: { type: 'number' } } });
  assert.deepEqual(schema(tools, 'up__region').properties.region, { type: 'string', 'x-mcp-header': 'Region' });
  assert.deepEqual(schema(JSON.parse(text).tools, 'up__invalid').properties.n, { type: 'number', 'x-mcp-header': 'Bad Name' });
  assert.deepEqual(tools.map(({ name }) => name), JSON.parse(text).tools.map(({ name }) => name));
  // The valid tool has the same bytes in both lists.
  const item = (list) => list.slice(list.indexOf('{"name":"up__region"'), list.indexOf(',{"name":"up__invalid"'));
  assert.ok(item(text).includes('x-mcp-header'), text);
  assert.equal(item(JSON.stringify({ tools })), item(text));
  assert.deepEqual(said((await http.send('tools/call', { name: 'up__invalid', arguments: { n: 1.5 } })).answer.result), { n: 1.5 });
  // The official SDK drops tools with invalid annotations.
  const { Client, StreamableHTTPClientTransport } = await importFromNpm('@modelcontextprotocol/client');
  const client = new Client({ name: 'pinned', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
  t.defer(() => client.close());
  const names = (await client.listTools()).tools.map(({ name }) => name);
  assert.deepEqual(names, tools.map(({ name }) => name));
  assert.deepEqual(said(await client.callTool({ name: 'up__invalid', arguments: { n: 2 } })), { n: 2 });
  assert.deepEqual(said(await client.callTool({ name: 'up__region', arguments: { region: 'eu' } })), { region: 'eu' });
});

// ---- input that a server asks for ---------------------------------------------------------------

const FORM = { method: 'elicitation/create', params: { mode: 'form', message: 'Which one?', requestedSchema: { type: 'object', properties: { n: { type: 'integer' } } } } };
const SAMPLE = { method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: '2+2' } }], maxTokens: 10 } };
const ROOTS = { method: 'roots/list' };
const LINK = { method: 'elicitation/create', params: { mode: 'url', message: 'Sign in', url: 'https://example.com/x' } };
const ANSWERS = {
  'elicitation/create': { action: 'accept', content: { n: 4 } },
  'sampling/createMessage': { role: 'assistant', content: { type: 'text', text: '4' }, model: 'm' },
  'roots/list': { roots: [{ uri: 'file:///work', name: 'work' }] },
};
const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };
// The recorded calls.
function callsOf(t, gateway) {
  const { stdout } = runProgram(t, ['calls', '--json', '--config', gateway.config], { env: gateway.env() });
  return stdout.trim().split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
}
const refuse = () => {
  throw new Error('User rejected');
};
const TELEMETRY = { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } };
async function asking(t, start, { answers = {}, capabilities = CAPABILITIES, profile = {} } = {}) {
  const { definition, up } = await start(t);
  const gateway = await t.gateway({ telemetry: TELEMETRY, ...profile, mcpServers: { up: { ...definition, roots: 'per-client' } } });
  const all = { ...ANSWERS, ...answers };
  const onAsk = (method, params, client) => (typeof all[method] === 'function' ? all[method](params, client) : all[method]);
  const client = await t.http(gateway, { capabilities, onAsk });
  return { up, gateway, client };
}

for (const [transport, start] of Object.entries(transports)) {
  test(`a stateless server over ${transport} asks a client with a session for input`, async (t) => {
    const { client, up, gateway } = await asking(t, start);
    const { meta } = said(await client.tool('up__seen'));
    assert.deepEqual(meta[`${PREFIX}clientCapabilities`], { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } });
    const requests = { form: FORM, 'a "sample"': SAMPLE, roots: ROOTS, link: LINK };
    const state = 'G1.\u0041/ü';
    const { result, notes } = await client.request('tools/call', { name: 'up__ask', arguments: { requests, state }, _meta: { progressToken: 5 } });
    assert.deepEqual(said(result), {
      responses: { form: ANSWERS['elicitation/create'], 'a "sample"': ANSWERS['sampling/createMessage'], roots: ANSWERS['roots/list'], link: ANSWERS['elicitation/create'] },
      state,
    });
    assert.equal(result.resultType, undefined);
    assert.deepEqual(notes, []);
    assert.deepEqual(client.asks.map(({ method, via }) => [method, via]).sort(), Object.values(requests).map(({ method }) => [method, 'post']).sort());
    const asked = (mode) => client.asks.find(({ params }) => params?.mode === mode).params;
    assert.deepEqual(asked('form'), FORM.params);
    const { elicitationId, ...link } = asked('url');
    assert.deepEqual(link, LINK.params);
    assert.match(elicitationId, /^[0-9]+$/, 'the session revisions require it');
    if (up) {
      const [first, second] = up.messages('tools/call').slice(-2);
      assert.notEqual(first.id, second.id);
      const { inputResponses, requestState, ...params } = second.params;
      assert.equal(requestState, state);
      assert.deepEqual(Object.keys(inputResponses), Object.keys(requests));
      assert.deepEqual({ ...params, _meta: { ...params._meta, progressToken: 0 } }, { ...first.params, _meta: { ...first.params._meta, progressToken: 0 } });
      assert.equal(second.headers['mcp-name'], 'ask');
    }
    const records = await until('the record', () => {
      const found = callsOf(t, gateway).filter((record) => JSON.stringify(record).includes('"ask"'));
      return found.length > 0 && found;
    });
    assert.equal(records.length, 1, 'one call, one record');
  });

  test(`a stateless server over ${transport} asks for input in prompts/get and resources/read`, async (t) => {
    const { client } = await asking(t, start, { answers: { 'elicitation/create': { action: 'accept', content: { name: 'Ada' } } } });
    const { messages } = await client.call('prompts/get', { name: 'up__asks' });
    assert.equal(messages[0].content.text, 'hello Ada');
    const { resources } = await client.call('resources/list');
    const uri = resources[0].uri.replace('note', 'asks');
    const { contents } = await client.call('resources/read', { uri });
    assert.equal(contents[0].text, 'text of Ada');
    assert.equal(client.asks.length, 2);
  });

  test(`a stateless server over ${transport} learns that a client declines or cancels, and a refusal ends the call`, async (t) => {
    const answers = {};
    const { client } = await asking(t, start, { answers: { 'elicitation/create': () => answers.form(), 'sampling/createMessage': refuse, 'roots/list': refuse } });
    for (const action of ['decline', 'cancel']) {
      answers.form = () => ({ action });
      assert.deepEqual(said(await client.tool('up__ask', { requests: { form: FORM } })), { responses: { form: { action } } });
    }
    answers.form = refuse;
    assert.deepEqual(said(await client.tool('up__ask', { requests: { form: FORM } })).responses, { form: { action: 'cancel' } }, 'an error of the client');
    answers.form = () => null; // not answered yet
    for (const [key, request] of Object.entries({ sample: SAMPLE, roots: ROOTS })) {
      const result = await client.tool('up__ask', { requests: { form: FORM, [key]: request } });
      assert.equal(result.isError, true);
      assert.match(result.content[0].text, new RegExp(`${request.method} was refused: User rejected`));
      await client.note('notifications/cancelled'); // the form is withdrawn
    }
    assert.deepEqual(said(await client.tool('up__echo', { n: 1 })), { n: 1 });
  });

  test(`a stateless server over ${transport} is called again when it asks for nothing`, async (t) => {
    const { client } = await asking(t, start, { capabilities: {} });
    assert.equal(said(await client.tool('up__later', { times: 3 })), 3);
    const error = await client.call('prompts/get', { name: 'up__asks' }).then(() => assert.fail('it was answered'), (e) => e);
    assert.equal(error.code, -32603);
    assert.match(error.message, /requires elicitation, which this client has not declared/);
  });
}

test('what a client has not declared is not declared to a stateless server, and a call that needs it is refused', async (t) => {
  const { client, up } = await asking(t, transports.http, { capabilities: { elicitation: {} } });
  const { meta } = said(await client.tool('up__seen'));
  assert.deepEqual(meta[`${PREFIX}clientCapabilities`], { elicitation: { form: {} } });
  for (const request of [SAMPLE, ROOTS, LINK]) {
    const result = await client.tool('up__ask', { requests: { a: request } });
    assert.equal(result.isError, true, JSON.stringify(result));
    assert.match(result.content[0].text, /which (this client has not|was not) declared/);
  }
  assert.deepEqual(client.asks, []);
  const calls = up.content.calls.length;
  const forged = await client.call('tools/call', { name: 'up__ask', arguments: {}, inputResponses: { a: {} } }).then(() => assert.fail('it was sent'), (e) => e);
  assert.equal(forged.code, -32602);
  assert.equal(up.content.calls.length, calls);
});

test('a call that waits for input ends when its client cancels it, leaves, or its server is removed', async (t) => {
  const { client, up, gateway } = await asking(t, transports.http, { answers: { 'elicitation/create': null } });
  await client.listen();
  const ask = async (who) => {
    const before = who.asks.length;
    const id = who.nextId;
    const call = who.tool('up__ask', { requests: { form: FORM } }).then((result) => ({ result }), (error) => ({ error }));
    await until('the client is asked', () => who.asks.length > before);
    return { id, call };
  };
  const cancelled = await ask(client);
  await client.notify('notifications/cancelled', { requestId: cancelled.id });
  await client.note('notifications/cancelled');
  const other = await t.http(gateway, { capabilities: CAPABILITIES, onAsk: () => null });
  await ask(other);
  await other.close();
  const calls = up.messages('tools/call').length;
  const last = await ask(client);
  writeFileSync(gateway.config, JSON.stringify({ ...JSON.parse(readFileSync(gateway.config, 'utf8')), limits: { drain_ms: 200 }, mcpServers: {} }));
  assert.equal(runProgram(t, ['reload'], { env: gateway.env() }).code, 0);
  const { error } = await last.call;
  assert.match(error.message, /removed.*may have run/);
  assert.equal(up.messages('tools/call').length, calls + 1, 'no call is sent again');
});

const OWN = { policies: { default: { plugin: 'policy-rules', compartment: 'own' } } };
for (const [where, policies] of Object.entries({ endpoint: {}, own: OWN })) test(`rules judge what a stateless server asks for and what the client answers (policy: ${where})`, async (t) => {
  const block = (on, condition) => ({ on, if: condition, decision: 'block' });
  const { client } = await asking(t, transports.http, { profile: { ...policies, security: { rules: { mcp: {
    asked: block('mcp.input_request', "mcp.input.text.contains('password') || mcp.request.method == 'sampling/createMessage'"),
    answered: block('mcp.input_response', "mcp.input.action == 'accept' && mcp.input.result.content.n == 4"),
  } } } } });
  const form = (message) => ({ ...FORM, params: { ...FORM.params, message } });
  const { responses } = said(await client.tool('up__ask', { requests: { one: form('Your password?'), two: form('Which one?') } }));
  assert.deepEqual(responses, { one: { action: 'decline' }, two: { action: 'decline' } });
  assert.deepEqual(client.asks.map(({ params }) => params.message), ['Which one?']);
  const result = await client.tool('up__ask', { requests: { sample: SAMPLE } });
  assert.equal(result.isError, true);
  assert.match(result.content[0].text, /sampling\/createMessage was refused: The request was blocked by policy/);
  assert.equal(client.asks.length, 1);
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
  test(`a server with sessions that ${kind} on server/discover works, and is remembered`, async (t) => {
    const log = t.path('log');
    const profile = { mcpServers: { up: { ...fake('--tool', 'echo', '--log', log, ...options), sandbox: 'off' } } };
    const first = await t.gateway(profile);
    const client = await t.http(first);
    await client.tool('up__echo');
    assert.deepEqual(received(log).slice(0, 2), ['server/discover', 'initialize']);
    assert.equal(starts(log), kind === 'exits' ? 2 : 1, 'only an exit starts it again');
    await until('the list is stored', () => filesBelow(first.dir).some(({ path, text }) => path.endsWith('/lists/up') && text?.includes('"protocol":"2025-11-25"')));
    await first.stop();
    const before = received(log).length;
    await first.again();
    const second = await t.http(first);
    await second.tool('up__echo');
    assert.equal(received(log)[before], 'initialize', 'the verdict is used');
    assert.ok(!received(log).slice(before).includes('server/discover'));
  });
}

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

const processesOf = (word) => readdirSync('/proc').filter((pid) => {
  try {
    const [program, ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return /^\d+$/.test(pid) && program.endsWith('node') && args.includes(word);
  } catch {
    return false;
  }
});

test('a server over stdio that changes its generation while the gateway runs: no call is lost or runs twice', async (t) => {
  const revision = t.path('revision'), log = t.path('log');
  const server = fileURLToPath(new URL('../matrix/server.mjs', import.meta.url));
  writeFileSync(revision, '2025-11-25');
  const gateway = await t.gateway({
    limits: { retry_min_ms: 20, retry_max_ms: 100 },
    mcpServers: { up: { command: node, args: [server, `@${revision}`, 'stdio', log], sandbox: 'off' } },
  });
  const clients = [await t.http(gateway), await httpOf(t, gateway)];
  const outcomes = new Map();
  const call = async (client) => {
    const text = `call ${outcomes.size}`;
    outcomes.set(text, 'lost');
    const params = { name: 'up__echo', arguments: { text } };
    const { error } = client === clients[0] ? await client.call('tools/call', params).then(() => ({}), (error_) => ({ error: error_ }))
      : (await client.send('tools/call', params)).answer;
    outcomes.set(text, error === undefined ? 'ok' : error.message);
    return error === undefined;
  };
  for (const next of ['2026-07-28', '2025-06-18', '2026-07-28', '2024-11-05']) {
    for (const client of clients) await until('a call works', () => call(client));
    writeFileSync(revision, next);
    const inFlight = [...clients, ...clients].map(call);
    for (const pid of processesOf(log)) process.kill(Number(pid), 'SIGKILL');
    await Promise.all(inFlight);
    for (const client of clients) await until('a call works again', () => call(client));
  }
  const runs = new Map();
  for (const line of readFileSync(log, 'utf8').split('\n').filter((one) => one.startsWith('< '))) {
    const { method, params } = JSON.parse(line.slice(2));
    if (method === 'tools/call') runs.set(params.arguments.text, (runs.get(params.arguments.text) ?? 0) + 1);
  }
  for (const [text, outcome] of outcomes) {
    assert.ok((runs.get(text) ?? 0) <= 1, `${text} ran ${runs.get(text)} times`);
    if (outcome === 'ok') assert.equal(runs.get(text), 1, text);
    else assert.match(outcome, /server "up"/, text);
  }
});

test('a server over HTTP that changes its generation while the gateway runs', async (t) => {
  const port = await lastingPort();
  const first = await startStateless({ port });
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

test('status, tools and doctor show the revision of each server', async (t) => {
  const profile = { mcpServers: { new: overStdio(), old: { ...fake('--tool', 'echo'), protocol: '2025-06-18' } } };
  const gateway = await t.gateway(profile);
  const client = await t.http(gateway);
  await until('both are listed', async () => (await client.toolNames()).filter((name) => name.endsWith('__echo')).length === 2);
  const command = (...words) => runProgram(t, words, { env: gateway.env() }).stdout;
  const revisions = { new: '2026-07-28', old: '2025-06-18' };
  const of = (servers) => Object.fromEntries(servers.map(({ name, protocol }) => [name, protocol]));
  assert.deepEqual(of(JSON.parse(command('status', '--json')).gateways[0].servers), revisions);
  assert.deepEqual(of(JSON.parse(command('tools', '--json', '--config', gateway.config)).servers), revisions);
  for (const [name, revision] of Object.entries(revisions)) {
    assert.match(command('status'), new RegExp(`^ *${name} +stdio +ready .* ${revision}`, 'm'));
    assert.match(command('doctor', '--config', gateway.config), new RegExp(`server ${name}: .*, MCP ${revision}$`, 'm'));
  }
});

test('the hints of merged lists; lists that are out of date are read again', async (t) => {
  const hints = (ttlMs, cacheScope) => ({ 'tools/list': { ttlMs, cacheScope }, 'prompts/list': { ttlMs: 60_000, cacheScope: 'public' } });
  const a = await overHttp(t, { hints: hints(60_000, 'public') });
  const quiet = await overHttp(t, { quiet: true, hints: hints(1500, 'public') });
  const mcpServers = { a: { url: a.url }, quiet: { url: quiet.url }, c: overStdio('--quiet', '--hints', JSON.stringify(hints(40_000, 'public'))) };
  const gateway = await t.gateway({ mcpServers });
  const http = await httpOf(t, gateway);
  const old = await t.http(gateway);
  await old.listen();
  const names = async () => (await old.toolNames()).filter((name) => name.includes('new_one'));
  assert.deepEqual(await names(), []);
  // The list of "quiet" may already be out of date when all servers have started.
  const first = await until('a fresh list', async () => {
    const list = await http.result('tools/list');
    return list.ttlMs > 0 && list;
  });
  assert.ok(first.ttlMs <= 1500, show(first.ttlMs));
  assert.equal(first.cacheScope, 'public');
  const prompts = await http.result('prompts/list');
  assert.ok(prompts.ttlMs > 20_000 && prompts.ttlMs <= 60_000);
  assert.equal(prompts.cacheScope, 'public');
  // The server does not announce the change. Without requests from clients, it is not asked.
  quiet.content.tools.push('new_one');
  const lists = () => quiet.messages('tools/list').length;
  const before = lists();
  await sleep(1700);
  assert.equal(lists(), before);
  const seen = await until('the new tool', async () => {
    const { tools, ttlMs } = await http.result('tools/list');
    const found = tools.some(({ name }) => name === 'quiet__new_one');
    assert.ok(found || ttlMs === 0);
    return found && ttlMs;
  });
  assert.ok(seen > 0 && seen <= 1500);
  assert.deepEqual(await names(), ['quiet__new_one']);
  assert.ok(lists() <= before + 3, 'one request for several clients');
  // The session client is notified.
  await old.note('notifications/tools/list_changed');
  assert.equal(a.messages('tools/list').length, 1, 'it reports changes itself');

  const private_ = await t.gateway({
    mcpServers, security: { rules: { mcp: { no: { on: 'mcp.request', if: 'mcp.request.tool_name == "broken"', decision: 'block' } } } },
  });
  const filtered = await (await httpOf(t, private_)).result('tools/list');
  assert.ok(!filtered.tools.some(({ name }) => name.endsWith('__broken')));
  assert.equal(filtered.cacheScope, 'private');
  const mixed = await t.gateway({ mcpServers: { ...mcpServers, old: fake('--tool', 'x') } });
  const { ttlMs, cacheScope } = await (await httpOf(t, mixed)).result('tools/list');
  assert.deepEqual([ttlMs, cacheScope], [0, 'private']);
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
  await until('the reason is shown', () => /^wrong .* rejected server\/discover/m.test(gateway.stderr()));
});

await run();

// Tests that messages composed by the gateway itself are valid at the client's revision: responses
// to initialize and server/discover, lists, errors and notifications. The matrix checks forwarded
// messages.
import { writeFileSync } from 'node:fs';
import { CheckedWire, REVISIONS, schemaCheck } from '../fixtures/schema_check.mjs';
import { Streamable } from '../matrix/channels.mjs';
import { StatelessClient } from '../matrix/client.mjs';
import { assert, fake, run, test, until } from './lib.mjs';

const SESSIONS = REVISIONS.slice(0, 4);
const ask = (id, method, params) => ({ jsonrpc: '2.0', id, method, ...(params ? { params } : {}) });

test('the checker accepts valid messages of each revision and rejects others', async () => {
  for (const revision of SESSIONS) {
    const check = await schemaCheck(revision);
    const hello = ask(1, 'initialize', { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'c', version: '1' } });
    assert.deepEqual(check.errors(hello), []);
    assert.match(check.errors({ ...hello, params: { ...hello.params, clientInfo: {} } }).join(), /InitializeRequest: .*name/);
    const list = (tool) => ({ jsonrpc: '2.0', id: 1, result: { tools: [tool] } });
    assert.deepEqual(check.errors(list({ name: 't', inputSchema: { type: 'object' } }), 'tools/list'), []);
    assert.match(check.errors(list({ name: 't' }), 'tools/list').join(), /ListToolsResult: .*inputSchema/);
    assert.match(check.errors(ask(1, 'server/discover')).join(), /has no request server\/discover/);
    assert.deepEqual(check.errors({ jsonrpc: '2.0', id: 1, error: { code: -1, message: 'm' } }, 'ping'), []);
    assert.match(check.errors({ jsonrpc: '2.0', id: 1, error: { code: 'x', message: 'm' } }, 'ping').join(), /code/);
    for (const id of [undefined, null]) {
      const anonymous = check.errors({ jsonrpc: '2.0', id, error: { code: -32700, message: 'm' } });
      assert.equal(anonymous.length, id === null && revision === '2025-11-25' ? 1 : 0, `${revision} ${id}`);
    }
    assert.deepEqual(check.foreign({ result: { content: [], resultType: 'complete', other: 0, isError: false } }, 'tools/call'), ['resultType']);
    const _meta = { 'io.modelcontextprotocol/serverInfo': {}, 'com.example/x': 1 };
    assert.deepEqual(check.foreign({ result: { tools: [], ttlMs: 0, _meta } }, 'tools/list'), ['ttlMs', 'io.modelcontextprotocol/serverInfo']);
    assert.deepEqual(check.foreign({ id: 1, method: 'tools/call', params: { name: 'x', requestState: 's' } }), ['requestState']);
    assert.deepEqual(check.errors([ask(1, 'ping')]).length, revision === '2025-03-26' ? 0 : 1);
  }
  const check = await schemaCheck('2026-07-28');
  const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
  assert.deepEqual(check.errors(ask(1, 'tools/list', { _meta })), []);
  assert.match(check.errors(ask(1, 'tools/list', {})).join(), /_meta/);
  assert.match(check.errors(ask(1, 'ping')).join(), /has no request ping/);
  assert.deepEqual(check.foreign({ id: 1, method: 'tools/call', params: { name: 'x', task: {}, requestState: 's' } }), ['task']);
  const result = { resultType: 'complete', tools: [], ttlMs: 0, cacheScope: 'private' };
  assert.deepEqual(check.errors({ jsonrpc: '2.0', id: 1, result }, 'tools/list'), []);
  for (const name of Object.keys(result)) {
    const { [name]: _, ...rest } = result;
    assert.match(check.errors({ jsonrpc: '2.0', id: 1, result: rest }, 'tools/list').join(), new RegExp(name));
  }
  const error = (data) => ({ jsonrpc: '2.0', id: 1, error: { code: -32022, message: 'm', data } });
  assert.deepEqual(check.errors(error({ supported: ['2026-07-28'], requested: 'x' }), 'tools/list'), []);
  assert.match(check.errors(error(undefined), 'tools/list').join(), /UnsupportedProtocolVersionError/);
  const lacking = (data) => ({ jsonrpc: '2.0', id: 1, error: { code: -32021, message: 'm', data } });
  assert.deepEqual(check.errors(lacking({ requiredCapabilities: { roots: {} } }), 'tools/list'), []);
  for (const data of [undefined, {}, { requiredCapabilities: ['roots'] }]) {
    assert.match(check.errors(lacking(data), 'tasks/get').join(), /MissingRequiredClientCapabilityError/);
  }
});

// Returns a profile with a server whose lists contain items of every kind and whose calls fail in
// several ways, and with a server that does not start.
function profile(t) {
  writeFileSync(t.path('gone'), '');
  const up = fake('--tool', 'a', '--tool', 'grow', '--add', 'grow=grown', '--tool', 'hang', '--hang', 'tool:hang', '--tool', 'die', '--die', 'die',
    '--resource', 'mem://r', '--template', 'mem://{x}', '--prompt', 'p', '--page-size', '1');
  return { mcpServers: { up: { ...up, timeout_ms: 1000 }, gone: fake('--tool', 'b', '--fail-while', t.path('gone')) } };
}

// Sends a request. The wire checks the response, so an error also counts as a result.
const attempt = (client, method, params) => client.call(method, params).catch((error) => {
  if (error.code === undefined) throw error;
  return error;
});

async function exercise(client) {
  const lists = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list'];
  for (const method of lists) await attempt(client, method, {});
  await attempt(client, 'ping');
  await attempt(client, 'logging/setLevel', { level: 'info' });
  assert.equal((await client.tool('up__a')).content[0].text, 'fake/a');
  const failures = {
    'an unknown tool': ['tools/call', { name: 'up__nosuch' }],
    'an unknown server': ['tools/call', { name: 'nosuch__x' }],
    'no name': ['tools/call', {}],
    'an unknown method': ['nosuch/method', {}],
    'a bad cursor': ['tools/list', { cursor: 'no such cursor' }],
    'a resource of no server': ['resources/read', { uri: 'bulkhead://nosuch/mem://r' }],
    'a tool of a server that does not start': ['tools/call', { name: 'gone__b' }],
    'no URI': ['resources/read', {}],
    'an unknown prompt': ['prompts/get', { name: 'up__nosuch' }],
    'a bad level': ['logging/setLevel', { level: 'loud' }],
    'a bad reference': ['completion/complete', { ref: { type: 'ref/prompt', name: 'up__nosuch' }, argument: { name: 'x', value: '' } }],
    'a time-out': ['tools/call', { name: 'up__hang' }],
    'a server that dies': ['tools/call', { name: 'up__die' }],
  };
  const codes = {};
  for (const [what, [method, params]] of Object.entries(failures)) {
    const answer = await attempt(client, method, params);
    codes[what] = answer.code ?? (answer.isError ? 'isError' : 'ok');
  }
  assert.deepEqual(Object.entries(codes).filter(([, code]) => code === 'ok'), []);
}

// Returns a wire that receives all messages of a client.
function tapped(client, check) {
  const wire = new CheckedWire(check);
  const [message, finished, incoming] = ['message', 'finished', 'incoming'].map((name) => client[name].bind(client));
  client.message = (...args) => {
    const text = message(...args);
    wire.sent(text);
    return text;
  };
  client.finished = (raw, extra) => {
    wire.received(raw);
    return finished(raw, extra);
  };
  client.incoming = (raw, via) => {
    wire.received(raw);
    return incoming(raw, via);
  };
  return wire;
}

for (const revision of SESSIONS) {
  for (const transport of ['http', 'stdio']) {
    test(`what the gateway composes is valid at ${revision}, ${transport}`, async (t) => {
      const options = { revision, initialize: false };
      const client = await (transport === 'http' ? t.http(await t.gateway(profile(t)), options) : t.stdio(profile(t), options));
      const wire = tapped(client, await schemaCheck(revision));
      await client.initialize();
      assert.equal(client.negotiated, revision);
      if (transport === 'http') await client.listen();
      await exercise(client);
      await client.tool('up__grow');
      await client.note('notifications/tools/list_changed');
      await until('the new tool is listed', async () => (await client.toolNames()).includes('up__grown'));
      const wrong = [...new Set(wire.errors.filter((error) => error.startsWith('received')))];
      assert.deepEqual(wrong, []);
      assert.ok(wire.count > 40, String(wire.count));
    });
  }
}

// Sends requests that no valid client sends. Returns the status and the error of each.
async function invalidRequests(channel, wire) {
  const META = 'io.modelcontextprotocol/';
  const meta = (version) => ({ [`${META}protocolVersion`]: version, [`${META}clientCapabilities`]: {} });
  const valid = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'up__a' };
  const call = (id, _meta) => ask(id, 'tools/call', { name: 'up__a', arguments: {}, ...(_meta ? { _meta } : {}) });
  const cases = [
    [call(1001), valid, 400, -32602],
    [call(1002, { [`${META}protocolVersion`]: '2026-07-28' }), valid, 400, -32602],
    [call(1003, meta('2027-01-01')), { ...valid, 'mcp-protocol-version': '2027-01-01' }, 400, -32022],
    [call(1004, meta('2026-07-28')), { ...valid, 'mcp-name': 'up__grow' }, 400, -32020],
    [ask(1005, 'nosuch/method', { _meta: meta('2026-07-28') }), { ...valid, 'mcp-method': 'nosuch/method' }, 404, -32601],
    [ask(1006, 'tasks/get', { taskId: 't', _meta: meta('2026-07-28') }), { ...valid, 'mcp-method': 'tasks/get', 'mcp-name': 't' }, 400, -32021],
    [ask(1007, 'subscriptions/listen', { notifications: { taskIds: ['t'] }, _meta: meta('2026-07-28') }), { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' }, 400, -32021],
  ];
  for (const [message, headers, status, code] of cases) {
    wire.sent(JSON.stringify(message));
    await channel.send(JSON.stringify(message), message, headers);
    const got = channel.statuses.at(-1);
    const answer = JSON.parse(got.text);
    assert.deepEqual([got.status, answer.error?.code, answer.id], [status, code, message.id], got.text);
    if (code !== -32021) continue;
    const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    assert.deepEqual(answer.error.data.requiredCapabilities, tasks);
  }
}

test('what the gateway composes is valid at 2026-07-28', async (t) => {
  const gateway = await t.gateway(profile(t));
  const channel = new Streamable(gateway.url);
  t.defer(() => channel.close());
  const client = new StatelessClient('2026-07-28', channel, await schemaCheck('2026-07-28'), { capabilities: {}, answers: {} });
  await client.open().catch((error) => t.skip(`the gateway does not serve 2026-07-28: ${error.message}`));
  client.tool = (name, args = {}) => client.call('tools/call', { name, arguments: args });
  await exercise(client);
  await invalidRequests(channel, client.wire);
  await client.watch({ kinds: ['tools'] });
  await client.tool('up__grow');
  await client.note('notifications/tools/list_changed');
  assert.deepEqual([...new Set(client.errors)], []);
});

await run();

// Tests features that the protocol generations treat differently: progress across rounds, results that
// must not be cached, notifications and extensions that one generation does not have; and the official
// SDKs of both generations with servers of the other.
import { fileURLToPath } from 'node:url';
import { Gateway, assert, fake, importFromNpm, node, npmServer, run, show, test, until } from './lib.mjs';
import { PREFIX, httpOf, lines } from './stateless_client.mjs';
import { startRaw } from '../fixtures/raw_stateless.mjs';
import { startStateless } from '../fixtures/stateless_server.mjs';

const REVISION = '2026-07-28';
const TASKS = `${PREFIX}tasks`;

async function overHttp(t, options) {
  const up = await startStateless(options);
  t.defer(() => up.stop());
  return up;
}

test('progress increases for a client with a session whose server of 2026-07-28 asks for input', async (t) => {
  const up = await overHttp(t);
  up.content.tools.push('steps');
  const gateway = await t.gateway({ mcpServers: { up: { url: up.url } } });
  const answer = { action: 'accept', content: { name: 'x' } };
  const client = await t.http(gateway, { capabilities: { elicitation: { form: {} } }, onAsk: () => answer });
  const progress = async (steps) => {
    const { result, notes } = await client.request('tools/call', { name: 'up__steps', arguments: { steps }, _meta: { progressToken: steps } });
    assert.deepEqual(JSON.parse(result.content[0].text), 'done');
    for (const { params } of notes) assert.equal(params.progressToken, steps);
    return notes.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress);
  };
  assert.deepEqual(await progress(5), [1, 2, 3, 4, 5], '1 and 2 are sent once');
  assert.deepEqual(await progress(1), [1, 2], 'another call starts again');
  assert.equal(up.content.calls.length, 4);
});

test('resources/read is not cached, whatever its hints are', async (t) => {
  const up = await overHttp(t, { hints: { 'resources/read': { ttlMs: 60_000, cacheScope: 'public' } } });
  const gateway = await t.gateway({ mcpServers: { up: { url: up.url } } });
  const http = await httpOf(t, gateway);
  const uri = (await http.result('resources/list')).resources.find(({ name }) => /note$/.test(name)).uri;
  for (const version of [1, 2, 3]) {
    up.content.version = version;
    const { contents, ttlMs, cacheScope } = await http.result('resources/read', { uri });
    assert.deepEqual([contents[0].text, ttlMs, cacheScope], [`text ${version}`, 60_000, 'public']);
    assert.equal(up.messages('resources/read').length, version);
  }
  const session = await t.http(gateway);
  assert.deepEqual(await session.call('resources/read', { uri }), { contents: [{ uri: 'test://note', text: 'text 3' }] });
  assert.equal(up.messages('resources/read').length, 4);
});

test('elicitation/complete reaches only the client with a session that was asked', async (t) => {
  const link = { method: 'elicitation/create', params: { mode: 'url', message: 'Sign in', url: 'https://example.com/x', elicitationId: 'e1' } };
  const complete = { jsonrpc: '2.0', method: 'notifications/elicitation/complete', params: { elicitationId: 'e1' } };
  const log = t.path('log');
  const up = fake('--tool', 'ask', '--tool', 'x', '--ask', `ask=${JSON.stringify(link)}`, '--notify', `ask=${JSON.stringify(complete)}`, '--log', log);
  const gateway = await t.gateway({ mcpServers: { up } });
  const capabilities = { elicitation: { url: {} } };
  const asked = await t.http(gateway, { capabilities, onAsk: () => ({ action: 'accept' }) }), other = await t.http(gateway, { capabilities });
  const { notes } = await asked.request('tools/call', { name: 'up__ask', arguments: {} });
  assert.equal(asked.asks.length, 1);
  assert.deepEqual(notes.map(({ method, params }) => [method, params]), [[complete.method, complete.params]]);
  assert.equal(other.notes.length + other.asks.length, 0);

  const http = await httpOf(t, gateway);
  const more = { [`${PREFIX}clientCapabilities`]: capabilities };
  const first = await http.send('tools/call', { name: 'up__ask', arguments: {} }, { more });
  assert.equal(first.answer.result?.resultType, 'input_required', show(first.answer));
  const { inputRequests, requestState } = first.answer.result;
  const [[key, request]] = Object.entries(inputRequests);
  assert.deepEqual([request.method, request.params.url, request.params.elicitationId], [link.method, link.params.url, undefined]);
  const last = await http.send('tools/call', { name: 'up__ask', arguments: {}, requestState, inputResponses: { [key]: { action: 'accept' } } }, { more });
  assert.equal(last.answer.result?.resultType, 'complete', show(last.answer));
  assert.deepEqual([...first.notes, ...last.notes], []);
  assert.equal(lines(log, '>', complete.method).length, 2, 'the server has sent it in both cases');
});

test('only extensions that the gateway relays are offered to clients and declared to servers', async (t) => {
  const extensions = { 'com.example/x': { a: 1 }, [`${PREFIX}ui`]: { mimeTypes: ['text/html;profile=mcp-app'] } };
  const experimental = { 'com.example/e': {} };
  const log = t.path('log');
  const raw = await startRaw({ tools: {}, extensions: { ...extensions, [TASKS]: {} }, experimental });
  t.defer(() => raw.stop());
  const old = fake('--tool', 'x', '--capabilities', JSON.stringify({ tools: {}, extensions, experimental }), '--log', log);
  const gateway = await t.gateway({ mcpServers: { old, raw: { url: raw.url } } });
  const http = await httpOf(t, gateway), session = await t.http(gateway, { capabilities: { extensions, experimental } });
  await until('both are listed', async () => (await session.toolNames()).length === 2);
  const { capabilities } = await http.result('server/discover');
  assert.deepEqual(Object.keys(capabilities.extensions), [TASKS]);
  assert.equal(capabilities.experimental, undefined);
  assert.equal(session.server.capabilities.extensions, undefined);
  assert.equal(session.server.capabilities.experimental, undefined);

  const declared = (one) => Object.keys(one.params._meta[`${PREFIX}clientCapabilities`].extensions ?? {});
  const call = async (more) => {
    const { answer } = await http.send('tools/call', { name: 'raw__echo', arguments: {} }, { more: { [`${PREFIX}clientCapabilities`]: more } });
    assert.ok(answer.result, show(answer));
    const { answer: other } = await http.send('tools/call', { name: 'old__x', arguments: {} }, { more: { [`${PREFIX}clientCapabilities`]: more } });
    assert.ok(other.result, show(other));
    return raw.messages('tools/call').at(-1);
  };
  assert.deepEqual(declared(await call({ extensions, experimental })), []);
  assert.deepEqual(declared(await call({ extensions: { ...extensions, [TASKS]: {} }, experimental })), [TASKS]);
  assert.ok((await session.tool('raw__echo')).received);
  assert.ok(await session.tool('old__x'));
  for (const raw_ of raw.received) assert.doesNotMatch(raw_, /com\.example|\/ui"/);
  assert.equal(raw.messages('tools/call').length, 3);
  const opened = lines(log, '<', 'initialize');
  assert.ok(opened.length > 0);
  for (const { params } of opened) assert.deepEqual([params.capabilities.extensions, params.capabilities.experimental], [undefined, undefined]);
});

// ---- the official SDKs ---------------------------------------------------------------------------

const text = ({ content }) => content[0].text;

test('SDK 1 uses a server of 2026-07-28 over HTTP and stdio', async (t) => {
  const { Client } = await importFromNpm('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await importFromNpm('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { StdioClientTransport } = await importFromNpm('@modelcontextprotocol/sdk/client/stdio.js');
  const { ElicitRequestSchema } = await importFromNpm('@modelcontextprotocol/sdk/types.js');
  const script = fileURLToPath(new URL('../fixtures/stateless_server.mjs', import.meta.url));
  const up = await overHttp(t);
  const profile = { mcpServers: { web: { url: up.url }, pipe: { command: node, args: [script, 'stdio'], sandbox: 'off' } } };
  const gateway = await t.gateway(profile);
  const [command, args, { env, cwd }] = new Gateway(t.dir, profile).stdioCommand();
  for (const transport of [new StreamableHTTPClientTransport(new URL(gateway.url)), new StdioClientTransport({ command, args, env, cwd, stderr: 'ignore' })]) {
    const client = new Client({ name: 'one', version: '1' }, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { name: 'Ada' } }));
    await client.connect(transport);
    t.defer(() => client.close());
    await until('both are listed', async () => (await client.listTools()).tools.filter(({ name }) => name.endsWith('__echo')).length === 2);
    const { resources } = await client.listResources();
    const { prompts } = await client.listPrompts();
    for (const name of ['web', 'pipe']) {
      assert.deepEqual(JSON.parse(text(await client.callTool({ name: `${name}__echo`, arguments: { a: [1] } }))), { a: [1] });
      const progress = [];
      await client.callTool({ name: `${name}__slow`, arguments: { ms: 30 } }, undefined, { onprogress: (one) => progress.push(one.progress) });
      // SDK 1 drops the last notification if the response arrives together with it.
      assert.ok(progress.length >= 2, show(progress));
      assert.deepEqual(progress, [1, 2, 3].slice(0, progress.length));
      const { uri } = resources.find((one) => one.uri.includes(name) && one.uri.endsWith('test://note'));
      assert.equal((await client.readResource({ uri })).contents[0].text, 'text 1');
      assert.ok(prompts.some((one) => one.name === `${name}__hello`));
      assert.equal((await client.getPrompt({ name: `${name}__hello` })).messages[0].content.text, 'hello');
      assert.equal((await client.getPrompt({ name: `${name}__asks` })).messages[0].content.text, 'hello Ada');
    }
  }
  assert.equal(up.messages('initialize').length, 0);
}, { timeout: 60_000 });

test('SDK 2 at 2026-07-28 uses a server of SDK 1 over HTTP and stdio', async (t) => {
  const { Client, StreamableHTTPClientTransport } = await importFromNpm('@modelcontextprotocol/client');
  const { StdioClientTransport } = await importFromNpm('@modelcontextprotocol/client/stdio');
  const profile = { limits: { first_list_wait_ms: 20_000 }, mcpServers: { old: npmServer('@modelcontextprotocol/server-everything/dist/index.js') } };
  const gateway = await t.gateway(profile);
  const [command, args, { env, cwd }] = new Gateway(t.dir, profile).stdioCommand();
  for (const transport of [new StreamableHTTPClientTransport(new URL(gateway.url)), new StdioClientTransport({ command, args, env, cwd, stderr: 'ignore' })]) {
    const client = new Client({ name: 'two', version: '1' }, { versionNegotiation: { mode: { pin: REVISION } } });
    await client.connect(transport);
    t.defer(() => client.close());
    assert.equal(client.getNegotiatedProtocolVersion(), REVISION);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    for (const name of ['old__echo', 'old__get-sum']) assert.ok(names.includes(name), show(names));
    assert.equal(text(await client.callTool({ name: 'old__echo', arguments: { message: 'hi' } })), 'Echo: hi');
    assert.match(text(await client.callTool({ name: 'old__get-sum', arguments: { a: 2, b: 3 } })), /\b5\b/);
    const { resources } = await client.listResources();
    assert.ok((await client.readResource({ uri: resources[0].uri })).contents.length > 0);
    const { prompts } = await client.listPrompts();
    const plain = prompts.find((prompt) => !prompt.arguments?.length);
    assert.ok((await client.getPrompt({ name: plain.name })).messages.length > 0);
  }
}, { timeout: 60_000 });

await run({ parallel: 2 });

// Tests third-party servers and clients: the official TypeScript clients over stdio and HTTP, and
// the list command of a real AI client, use the reference servers behind one endpoint.
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { Gateway, assert, fake, importFromNpm, lastingPort, node, npmBin, npmServer, run, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const execute = promisify(execFile);
const sdk = '@modelcontextprotocol/sdk';
const { Client } = await importFromNpm(`${sdk}/client/index.js`);
const { StdioClientTransport } = await importFromNpm(`${sdk}/client/stdio.js`);
const { StreamableHTTPClientTransport } = await importFromNpm(`${sdk}/client/streamableHttp.js`);
const types = await importFromNpm(`${sdk}/types.js`);
const server = (name) => `@modelcontextprotocol/server-${name}/dist/index.js`;

// Starts server-everything over HTTP. Resolves with its URL.
async function everythingOverHttp(t) {
  const port = await lastingPort();
  const child = spawn(node, [npmBin(server('everything')), 'streamableHttp'], { env: { PATH: process.env.PATH, PORT: String(port) }, stdio: 'ignore' });
  t.defer(() => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}/mcp`;
  await until('server-everything listens', () => fetch(url, { method: 'GET' }).then(() => true), 40_000);
  return url;
}

async function profileOf(t, session) {
  mkdirSync(t.path('files'), { recursive: true });
  writeFileSync(t.path('files/hello.txt'), 'hello from a file');
  return {
    limits: { first_list_wait_ms: 20_000, connect_timeout_ms: 20_000 },
    mcpServers: {
      everything: { ...npmServer(server('everything')), session },
      files: npmServer(server('filesystem'), t.path('files')),
      memory: { ...npmServer(server('memory')), env: { MEMORY_FILE_PATH: t.path('memory.json') } },
      thinking: npmServer(server('sequential-thinking')),
      remote: { type: 'http', url: await everythingOverHttp(t), session },
    },
  };
}

// Creates an official SDK client with all capabilities.
function sdkClient(seen) {
  const client = new Client({ name: 'official', version: '1.0.0' }, { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } });
  client.setRequestHandler(types.CreateMessageRequestSchema, (request) => {
    seen.push('sampling');
    return { model: 'm', role: 'assistant', content: { type: 'text', text: `sampled ${request.params.messages.length}` } };
  });
  client.setRequestHandler(types.ElicitRequestSchema, () => {
    seen.push('elicitation');
    return { action: 'accept', content: { name: 'Ada', check: true, color: 'red' } };
  });
  client.setRequestHandler(types.ListRootsRequestSchema, () => {
    seen.push('roots');
    return { roots: [{ uri: 'file:///somewhere', name: 'somewhere' }] };
  });
  const notes = { 'notifications/message': types.LoggingMessageNotificationSchema, 'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
    'notifications/tools/list_changed': types.ToolListChangedNotificationSchema };
  for (const [name, schema] of Object.entries(notes)) client.setNotificationHandler(schema, (note) => void seen.push([name, note.params]));
  return client;
}

async function useAll(t, client, seen) {
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  for (const prefix of ['everything__', 'files__', 'memory__', 'thinking__', 'remote__']) {
    assert.ok(names.some((name) => name.startsWith(prefix)), `tools of ${prefix}`);
  }
  const call = async (name, args, ...rest) => {
    assert.ok(names.includes(name), `${name} is listed; there are ${names.join(' ')}`);
    return client.callTool({ name, arguments: args }, undefined, ...rest);
  };
  for (const place of ['everything', 'remote']) {
    assert.match(JSON.stringify(await call(`${place}__echo`, { message: 'über' })), /über/);
    const steps = [];
    await call(`${place}__trigger-long-running-operation`, { duration: 1, steps: 4 }, { onprogress: (step) => steps.push(step.progress) });
    // The server sends the last step together with the result. If a client reads them together, it
    // removes the handler before it calls it, even without a gateway. The fourth step is therefore
    // not checked here; pain-19 tests with raw clients that it is forwarded.
    assert.deepEqual(steps.slice(0, 3), [1, 2, 3], `progress of ${place}`);
  }
  // If the client declared roots, this shared server would use them as its directories. Therefore
  // none are declared.
  assert.match(JSON.stringify(await call('files__read_text_file', { path: t.path('files/hello.txt') })), /hello from a file/);
  await call('memory__create_entities', { entities: [{ name: 'n', entityType: 't', observations: ['o'] }] });
  assert.match(JSON.stringify(await call('memory__read_graph', {})), /"n"/);
  await call('thinking__sequentialthinking', { thought: 'x', thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false });
  await askTheClient(call, names, seen);
  await resourcesAndPrompts(client);
  const cancelled = new AbortController();
  const running = call('everything__trigger-long-running-operation', { duration: 20, steps: 4 }, { signal: cancelled.signal });
  setTimeout(() => cancelled.abort('enough'), 100);
  await assert.rejects(running);
  await client.ping();
}

async function askTheClient(call, names, seen) {
  for (const place of ['everything', 'remote']) {
    assert.match(JSON.stringify(await call(`${place}__trigger-sampling-request`, { prompt: 'p', maxTokens: 5 })), /sampled 1/, place);
    await call(`${place}__trigger-elicitation-request`, {});
    assert.ok(names.includes(`${place}__get-roots-list`), `roots are declared to ${place}`);
    assert.match(JSON.stringify(await call(`${place}__get-roots-list`, {})), /somewhere/, place);
  }
  assert.equal(seen.filter((entry) => entry === 'sampling').length, 2);
  assert.equal(seen.filter((entry) => entry === 'elicitation').length, 2);
  assert.ok(seen.includes('roots'));
}

async function resourcesAndPrompts(client) {
  const { resources } = await client.listResources();
  assert.ok(resources.length >= 2);
  const mine = resources.find((entry) => entry.uri.startsWith('bulkhead://everything/'));
  assert.ok((await client.readResource({ uri: mine.uri })).contents.length >= 1);
  const { resourceTemplates } = await client.listResourceTemplates();
  assert.ok(resourceTemplates.length >= 1);
  const { prompts } = await client.listPrompts();
  const simple = prompts.find((prompt) => prompt.name === 'everything__simple-prompt');
  assert.ok(simple, prompts.map((prompt) => prompt.name).join(' '));
  assert.ok((await client.getPrompt({ name: simple.name })).messages.length >= 1);
  const completable = prompts.find((prompt) => prompt.name === 'everything__completable-prompt');
  const { completion } = await client.complete({ ref: { type: 'ref/prompt', name: completable.name }, argument: { name: 'department', value: 'E' } });
  assert.ok(completion.values.includes('Engineering'), JSON.stringify(completion));
  await client.setLoggingLevel('debug');
  await client.subscribeResource({ uri: mine.uri });
  await client.unsubscribeResource({ uri: mine.uri });
}

test('the official client over HTTP', async (t) => {
  const gateway = await t.gateway(await profileOf(t, 'per-client'), { startTimeout: 30_000 });
  const seen = [];
  const client = sdkClient(seen);
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
  t.defer(() => client.close());
  await useAll(t, client, seen);
  const { servers } = await statusOf(gateway);
  assert.ok(servers.every((entry) => entry.state === 'ready'), JSON.stringify(servers));
}, { timeout: 90_000 });

test('the official client over stdio', async (t) => {
  const [command, args, { env, cwd }] = new Gateway(t.dir, await profileOf(t, 'per-client')).stdioCommand();
  const seen = [];
  const client = sdkClient(seen);
  await client.connect(new StdioClientTransport({ command, args, env, cwd, stderr: 'ignore' }));
  t.defer(() => client.close());
  await useAll(t, client, seen);
}, { timeout: 90_000 });

test('two official clients share servers, and a server-initiated request reaches only the client that caused it', async (t) => {
  const gateway = await t.gateway({ limits: { first_list_wait_ms: 20_000, connect_timeout_ms: 20_000 }, mcpServers: { everything: npmServer(server('everything')) } });
  const clients = [];
  for (let i = 0; i < 2; ++i) {
    const seen = [];
    const client = sdkClient(seen);
    await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
    t.defer(() => client.close());
    await client.listTools();
    clients.push({ client, seen });
  }
  await clients[1].client.callTool({ name: 'everything__trigger-sampling-request', arguments: { prompt: 'p', maxTokens: 5 } });
  assert.deepEqual(clients.map(({ seen }) => seen.filter((entry) => entry === 'sampling').length), [0, 1]);
}, { timeout: 60_000 });

test('a client of 2026-07-28 uses a server with sessions over HTTP and stdio', async (t) => {
  const next = await importFromNpm('@modelcontextprotocol/client');
  const stdio = await importFromNpm('@modelcontextprotocol/client/stdio');
  const profile = { limits: { first_list_wait_ms: 20_000 }, mcpServers: { thinking: npmServer(server('sequential-thinking')) } };
  const gateway = await t.gateway(profile);
  const [command, args, { env, cwd }] = new Gateway(t.dir, profile).stdioCommand();
  for (const transport of [new next.StreamableHTTPClientTransport(new URL(gateway.url)), new stdio.StdioClientTransport({ command, args, env, cwd, stderr: 'ignore' })]) {
    const client = new next.Client({ name: 'next', version: '1' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(transport);
    t.defer(() => client.close());
    assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), ['thinking__sequentialthinking']);
    const result = await client.callTool({ name: tools[0].name, arguments: { thought: 'x', thoughtNumber: 1, totalThoughts: 1, nextThoughtNeeded: false } });
    assert.ok(!result.isError);
  }
}, { timeout: 60_000 });

test('Gemini CLI lists the gateway as connected', async (t) => {
  const gateway = await t.gateway({ limits: { first_list_wait_ms: 20_000 }, mcpServers: { thinking: npmServer(server('sequential-thinking')) } });
  const [command, args, { env }] = new Gateway(t.dir, { mcpServers: {} }).stdioCommand();
  mkdirSync(t.path('home/.gemini'), { recursive: true });
  mkdirSync(t.path('work'));
  const settings = { mcpServers: { web: { httpUrl: gateway.url }, pipe: { command, args, env } }, security: { folderTrust: { enabled: false } }, privacy: { usageStatisticsEnabled: false } };
  writeFileSync(t.path('home/.gemini/settings.json'), JSON.stringify(settings));
  const { stdout, stderr } = await execute(node, [npmBin('@google/gemini-cli/bundle/gemini.js'), 'mcp', 'list'], {
    cwd: t.path('work'),
    env: { PATH: process.env.PATH, HOME: t.path('home'), NO_COLOR: '1' },
    timeout: 50_000,
  });
  const said = stdout + stderr;
  for (const name of ['web', 'pipe']) assert.match(said, new RegExp(`${name}:.*Connected`), said);
}, { timeout: 60_000 });

// This program is too large for the pinned packages. The variable CLAUDE names it.
test('Claude Code lists the gateway as connected', async (t) => {
  const claude = process.env.CLAUDE;
  if (!claude) t.skip('CLAUDE does not name the program of Claude Code');
  const gateway = await t.gateway({ mcpServers: { up: fake('--tools', 3) } });
  const [command, args] = new Gateway(t.dir, { mcpServers: {} }).stdioCommand();
  mkdirSync(t.path('home'));
  mkdirSync(t.path('work'));
  const options = { cwd: t.path('work'), env: { PATH: process.env.PATH, HOME: t.path('home'), NO_COLOR: '1' }, timeout: 25_000 };
  const mcp = (...words) => execute(claude, ['mcp', ...words], options);
  await mcp('add', '--transport', 'http', 'web', gateway.url);
  await mcp('add', '--transport', 'sse', 'old', gateway.url.replace(/mcp$/, 'sse'));
  await mcp('add', 'pipe', '--', command, ...args);
  const { stdout } = await mcp('list');
  for (const name of ['web', 'old', 'pipe']) assert.match(stdout, new RegExp(`${name}:.*Connected`), stdout);
}, { timeout: 60_000 });

await run({ parallel: 2 });

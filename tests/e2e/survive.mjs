// Tests that clients continue after crashes of the endpoint, over stdio and HTTP, with the official
// client and with a raw client.
import { spawn } from 'node:child_process';
import { cpSync, existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Gateway, StdioClient, assert, build, ended, fake, importFromNpm, run, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const sdk = '@modelcontextprotocol/sdk';
const { Client } = await importFromNpm(`${sdk}/client/index.js`);
const { StdioClientTransport } = await importFromNpm(`${sdk}/client/stdio.js`);
const { StreamableHTTPClientTransport } = await importFromNpm(`${sdk}/client/streamableHttp.js`);
const types = await importFromNpm(`${sdk}/types.js`);

const URI = 'fake://thing';
const lost = /endpoint was restarted.*may have run.*not retried/;

// The server behind the gateway. All its processes write to the same log.
const server = (log, ...more) => ({
  a: fake('--tool', 'fast', '--tool', 'slow', '--tool', 'touch', '--tool', 'grow', '--resource', URI, '--delay', 'slow=600000',
    '--capabilities', '{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}}',
    '--notify', `touch={"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${URI}"}}`, '--add', 'grow=grown', '--log', log, ...more),
});
const received = (log, text) => (existsSync(log) ? readFileSync(log, 'utf8') : '').split('\n').filter((line) => line.startsWith('<') && line.includes(text)).length;

const endpointOf = async (gateway) => (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint');
async function kill(gateway) {
  const { pid } = await until('the endpoint runs', async () => {
    const one = await endpointOf(gateway);
    return one?.state === 'running' && one;
  }, 10_000);
  process.kill(pid, 'SIGKILL');
}
// Starts a gateway as a child of a test client.
function spawned(t, profile) {
  const gateway = new Gateway(t.dir, profile);
  const [command, args, { env, cwd }] = gateway.stdioCommand();
  return { command, args, options: { env, cwd }, at: (pid) => ({ pid, env: () => gateway.env() }) };
}
function watched() {
  const client = new Client({ name: 'official', version: '1.0.0' }, { capabilities: {} });
  const seen = [];
  const notes = [types.ResourceUpdatedNotificationSchema, types.ToolListChangedNotificationSchema, types.ResourceListChangedNotificationSchema];
  for (const schema of notes) client.setNotificationHandler(schema, ({ method }) => void seen.push(method));
  client.onerror = (error) => seen.push(error);
  return { client, seen, times: (method) => seen.filter((one) => one === method).length };
}
const UPDATED = 'notifications/resources/updated';
const CHANGED = 'notifications/tools/list_changed';
const text = (result) => result.content[0].text;

// The checks for both transports. `gone` is the expected result of the in-flight call.
async function surviveOnce({ client, times }, gateway, log, gone) {
  await client.listTools();
  const { resources } = await client.listResources();
  const { uri } = resources[0];
  await client.setLoggingLevel('warning');
  await client.subscribeResource({ uri });
  const slow = client.callTool({ name: 'a__slow', arguments: {} }, undefined, { timeout: 20_000 }).then(
    () => assert.fail('an answer'), (error) => error);
  await until('the slow call runs', () => received(log, '"slow"') === 1);
  await kill(gateway);
  gone(await slow);
  assert.equal(text(await client.callTool({ name: 'a__fast', arguments: {} })), 'fake/fast');
  await until('list_changed has arrived', () => times(CHANGED) > 0);
  await until('the new server has the subscription', () => received(log, 'resources/subscribe') === 2);
  await until('the new server has the level', () => received(log, 'logging/setLevel') === 2);
  const before = times(UPDATED);
  await client.callTool({ name: 'a__touch', arguments: {} });
  await until('an update arrives', () => times(UPDATED) > before);
  const changed = times(CHANGED);
  await client.listTools();
  await client.callTool({ name: 'a__grow', arguments: {} });
  await until('a change arrives', () => times(CHANGED) > changed);
  assert.ok((await client.listTools()).tools.some((tool) => tool.name === 'a__grown'));
  await client.unsubscribeResource({ uri });
  assert.equal(received(log, '"slow"'), 1, 'the lost call was not repeated');
}

test('the official client on stdio gets one error and no other effects', async (t) => {
  const log = t.path('log');
  const { command, args, options, at } = spawned(t, { mcpServers: server(log) });
  const official = watched();
  const transport = new StdioClientTransport({ command, args, ...options, stderr: 'ignore' });
  await official.client.connect(transport);
  t.defer(() => official.client.close());
  await surviveOnce(official, at(transport.pid), log, (error) => {
    assert.equal(error.code, -32603, String(error));
    assert.match(error.message, lost);
  });
  assert.deepEqual(official.seen.filter((one) => one instanceof Error), []);
});

test('the official client over HTTP keeps its subscription and log level', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: server(log) });
  const official = watched();
  await official.client.connect(new StreamableHTTPClientTransport(new URL(gateway.url)));
  t.defer(() => official.client.close());
  await surviveOnce(official, gateway, log, (error) => assert.ok(error instanceof Error));
});

// A raw client receives exactly one line for each request.
test('one client survives twenty crashes of the endpoint', async (t) => {
  const log = t.path('log');
  const { command, args, options, at } = spawned(t, { mcpServers: server(log), limits: { retry_min_ms: 20, retry_max_ms: 100 } });
  const client = new StdioClient(command, args, options);
  t.defer(() => client.close());
  t.gateways.push({ stderr: () => client.stderr });
  await client.initialize();
  await client.tools();
  const gateway = at(client.child.pid);
  const outcomes = new Map();
  const send = (tool, key) => {
    outcomes.set(key, client.tool(`a__${tool}`, { key }).then(() => 'answer', (error) => error.message));
    return outcomes.get(key);
  };
  for (let round = 0; round < 20; ++round) {
    assert.equal(await send('fast', `before-${round}-`), 'answer');
    const under = ['x', 'y', 'z'].map((name) => send('slow', `slow-${round}-${name}`));
    await until('the slow calls run', () => received(log, `slow-${round}-`) === under.length);
    const { pid } = await until('the endpoint runs', async () => {
      const one = await endpointOf(gateway);
      return one?.state === 'running' && one;
    }, 10_000);
    process.kill(pid, 'SIGSTOP');
    const waiting = ['p', 'q'].map((name) => send('fast', `waiting-${round}-${name}`));
    process.kill(pid, 'SIGKILL');
    for (const outcome of await Promise.all(under)) assert.match(outcome, lost);
    assert.deepEqual(await Promise.all(waiting), ['answer', 'answer'], 'unread input is processed');
  }
  assert.equal(await send('fast', 'last-'), 'answer');
  for (const key of outcomes.keys()) assert.equal(received(log, key), 1, `${key} ran once`);
  const ids = client.lines.map((line) => JSON.parse(line).id).filter((id) => id !== undefined);
  assert.equal(new Set(ids).size, ids.length, 'no id is answered twice');
}, { timeout: 120_000 });

// A client that can write and read any bytes.
class Raw {
  lines = [];
  constructor({ command, args, options }) {
    this.child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'ignore'] });
    let rest = '';
    this.child.stdout.on('data', (data) => {
      const lines = (rest + data).split('\n');
      rest = lines.pop();
      this.lines.push(...lines);
    });
    this.exited = ended(this.child).then(({ code }) => code);
  }
  // Resolves when the gateway, or a small buffer before it, has accepted the text.
  write(text) {
    return new Promise((done) => this.child.stdin.write(text, done));
  }
  request(id, method, params = {}) {
    return this.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  }
  messages() {
    return this.lines.flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });
  }
  answers(id) {
    return this.messages().filter((message) => message.id === id);
  }
  answer(id) {
    return until(`an answer to ${id}`, () => this.answers(id)[0], 10_000);
  }
  async open() {
    await this.request('i', 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } });
    await this.answer('i');
    await this.request('l', 'tools/list');
    await this.answer('l');
  }
  async close() {
    this.child.stdin.end();
    return this.exited;
  }
}

const LARGE = 8 << 20; // more than the buffers of a pipe or socket can hold

test('only a line that was partly read is lost', async (t) => {
  const log = t.path('log');
  const how = spawned(t, { mcpServers: server(log) });
  const client = new Raw(how);
  t.defer(() => client.close());
  await client.open();
  await client.write(`{"jsonrpc":"2.0","id":"half","method":"tools/call","params":{"name":"a__fast","arguments":{"x":"${'x'.repeat(LARGE)}`);
  const before = client.lines.length;
  await kill(how.at(client.child.pid));
  await client.write(`${'y'.repeat(1000)}"}}}\n`);
  await client.request('after', 'tools/call', { name: 'a__fast', arguments: {} });
  assert.ok((await client.answer('after')).result);
  assert.deepEqual(client.messages().slice(before).filter((message) => message.error), [], 'nothing is said about the rest');
  assert.equal(await client.close(), 0);
}, { timeout: 60_000 });

test('a line that was partly written is terminated, and its request gets an error', async (t) => {
  const log = t.path('log');
  const how = spawned(t, { mcpServers: server(log, '--tool', 'big', '--size', `big=${LARGE}`) });
  const client = new Raw(how);
  t.defer(() => client.close());
  await client.open();
  client.child.stdout.pause();
  await client.request('big', 'tools/call', { name: 'a__big', arguments: {} });
  await until('half of the answer is out', () => client.child.stdout.readableLength > 0, 10_000);
  await kill(how.at(client.child.pid));
  client.child.stdout.resume();
  assert.match((await client.answer('big')).error.message, lost);
  await client.request('after', 'tools/call', { name: 'a__fast', arguments: {} });
  assert.ok((await client.answer('after')).result);
  assert.equal(client.answers('big').length, 1);
  assert.equal(client.lines.length - client.messages().length, 1, 'one line is no message');
  assert.equal(await client.close(), 0);
}, { timeout: 60_000 });

test('if the endpoint repeatedly fails to start, the session is closed with the reason', async (t) => {
  const plugins = t.path('plugins');
  cpSync(join(build, 'lib/bulkhead/plugins'), plugins, { recursive: true });
  const { command, args, options, at } = spawned(t, { mcpServers: {} });
  const client = new StdioClient(command, [...args, '--plugin-dir', plugins], options);
  t.defer(() => client.close());
  await client.initialize();
  const plugin = readdirSync(plugins).find((name) => name.includes('transport-stdio'));
  rmSync(join(plugins, plugin), { recursive: true });
  await kill(at(client.child.pid));
  assert.deepEqual(await client.exited, { code: 1, signal: null });
  assert.match(client.stderr, /5 times before it was ready.*transport-stdio/);
});

test('a client whose handshake is interrupted gets an error', async (t) => {
  const { command, args, options, at } = spawned(t, { mcpServers: {} });
  const client = new StdioClient(command, args, { ...options, initialize: false });
  t.defer(() => client.close());
  await kill(at(client.child.pid));
  await client.initialize();
  assert.deepEqual(await client.tools(), []);
});

await run({ parallel: 2 });

// Tests the complete path: the official client, bulkhead-relay as its server, frames over a Unix
// socket, the gateway, and a server behind the gateway.
import { alive, descendants, Gateway, assert, fake, importFromNpm, run, sleep, test, until } from './lib.mjs';
import { Relay, relayProgram } from './relay_process.mjs';
import { statusOf } from './status.mjs';

const sdk = '@modelcontextprotocol/sdk';
const { Client } = await importFromNpm(`${sdk}/client/index.js`);
const { StdioClientTransport } = await importFromNpm(`${sdk}/client/stdio.js`);
const types = await importFromNpm(`${sdk}/types.js`);

const question = { method: 'elicitation/create', params: { message: 'sure?', requestedSchema: { type: 'object', properties: {} } } };
const server = fake(
  '--tool', 'say', '--tool', 'slow', '--tool', 'grow', '--tool', 'ask', '--tool', 'never',
  '--delay', 'slow=300', '--progress', 3, '--add', 'grow=grown', '--ask', `ask=${JSON.stringify(question)}`,
  '--hang', 'tool:never',
);

async function start(t, guests = {}) {
  const socket = t.path('guest.sock');
  const profile = {
    transports: {
      http: { plugin: 'transport-http', listen: '127.0.0.1:0' },
      guests: { plugin: 'transport-vsock', listen: `unix:${socket}`, ...guests },
    },
    mcpServers: { up: server },
  };
  return { socket, profile, gateway: await t.gateway(profile, { listen: null }) };
}
async function connect(t, socket, handlers = {}) {
  const client = new Client({ name: 'guest', version: '1' }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(types.ElicitRequestSchema, handlers.elicit ?? (() => ({ action: 'decline' })));
  if (handlers.changed) client.setNotificationHandler(types.ToolListChangedNotificationSchema, handlers.changed);
  const transport = new StdioClientTransport({ command: relayProgram, args: ['--unix', socket], stderr: 'pipe' });
  client.relayLog = '';
  transport.stderr.on('data', (data) => (client.relayLog += data));
  await client.connect(transport);
  t.defer(() => client.close());
  return client;
}
const call = (client, name, options) => client.callTool({ name: `up__${name}`, arguments: {} }, undefined, options);
const names = async (client) => (await client.listTools()).tools.map((tool) => tool.name);

test('the official client can use lists, calls, progress, list_changed and elicitation through the relay', async (t) => {
  const { socket } = await start(t);
  let changes = 0;
  let asked;
  const client = await connect(t, socket, {
    changed: () => ++changes,
    elicit: (request) => {
      asked = request.params.message;
      return { action: 'accept', content: {} };
    },
  });
  assert.ok((await names(client)).includes('up__say'));
  assert.ok(!(await call(client, 'say')).isError);
  const steps = [];
  await call(client, 'slow', { onprogress: (step) => steps.push(step.progress) });
  // The client drops progress notifications that it reads together with the response, so the next
  // test counts them.
  assert.ok(steps.length >= 1 && steps[0] === 1, `${steps}`);
  await call(client, 'grow');
  await until('list_changed', () => changes > 0);
  assert.ok((await names(client)).includes('up__grown'));
  await call(client, 'ask');
  assert.equal(asked, 'sure?');
  await client.ping();
});

test('all progress arrives before the response', async (t) => {
  const { socket } = await start(t);
  const relay = new Relay(t, ['--unix', socket]);
  relay.request(0, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  await relay.line();
  relay.request(1, 'tools/call', { name: 'up__slow', arguments: {}, _meta: { progressToken: 'p' } });
  for (const step of [1, 2, 3]) assert.deepEqual((await relay.line()).params, { progressToken: 'p', progress: step, total: 3 });
  assert.equal((await relay.line()).id, 1);
});

test('a cancelled call completes, and the relay exits when its input is closed', async (t) => {
  const { socket } = await start(t);
  const client = await connect(t, socket);
  const cancel = new AbortController();
  const pending = call(client, 'never', { signal: cancel.signal });
  await sleep(100);
  cancel.abort();
  await assert.rejects(pending);
  assert.ok(!(await call(client, 'say')).isError);
  const relay = new Relay(t, ['--unix', socket]);
  relay.request(0, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  await relay.line();
  relay.request(1, 'tools/call', { name: 'up__never', arguments: {} });
  relay.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  relay.request(2, 'ping');
  assert.equal((await relay.line()).id, 2);
  assert.equal(await relay.end(), 0, 'nothing is pending');
  assert.deepEqual(relay.lines, []);
});

test('if the gateway is killed and restarted, pending calls fail once and the client continues', async (t) => {
  const { socket, gateway, profile } = await start(t);
  let asked = 0;
  const client = await connect(t, socket, { elicit: () => (++asked, { action: 'accept', content: {} }) });
  assert.ok(!(await call(client, 'say')).isError);
  const pending = [call(client, 'never'), call(client, 'never'), call(client, 'never')].map((p) => p.then(() => 'answered', (error) => error));
  await sleep(200);
  gateway.mayExit = true;
  const below = descendants(gateway.pid);
  process.kill(gateway.pid, 'SIGKILL');
  for (const error of await Promise.all(pending)) {
    // The endpoint may briefly have outlived the server. In that case it reported that the server
    // had exited.
    assert.match(error.message, /tools\/call: connection closed|server "up"/);
    assert.ok([-32001, -32603].includes(error.code), error.message);
  }
  // The endpoint exits shortly after the supervisor, and accepts connections until then.
  await until('all of the gateway has ended', () => !below.some(alive));
  await until('the relay has noticed', () => client.relayLog.trim().endsWith('reconnecting'));
  const again = new Gateway(t.dir, profile, { listen: null });
  t.gateways.push(again);
  t.defer(() => again.stop());
  const waiting = call(client, 'say'); // sent during the outage
  await again.serve();
  assert.ok(!(await waiting).isError);
  await call(client, 'ask');
  assert.equal(asked, 1, 'the new gateway knows what this client can do');
}, { timeout: 40_000 });

test('if only the gateway\'s endpoint crashes, the socket stays open and the client continues', async (t) => {
  const { socket, gateway } = await start(t);
  const client = await connect(t, socket);
  assert.ok(!(await call(client, 'say')).isError);
  const pending = call(client, 'never').then(() => 'answered', (error) => error);
  await sleep(200);
  const { compartments } = await statusOf(gateway);
  process.kill(compartments.find((one) => one.name === 'endpoint').pid, 'SIGKILL');
  assert.equal((await pending).code, -32001);
  assert.ok(!(await call(client, 'say')).isError);
});

test('if a client does not read, each call has one response after the gateway\'s timeout, and the client continues', async (t) => {
  const { socket, gateway } = await start(t, { write_timeout_ms: 500 });
  const relay = new Relay(t, ['--unix', socket]);
  relay.request(0, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } });
  await relay.line();
  relay.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  relay.unread(true);
  const pad = 'p'.repeat(700_000);
  for (let id = 1; id <= 20; ++id) relay.request(id, 'tools/call', { name: 'up__say', arguments: { pad } });
  await until('the gateway disconnects it', async () => (await statusOf(gateway)).counters['guests.vsock.closed.too_slow'] > 0, 20_000);
  relay.unread(false);
  await until('an answer to each', () => relay.lines.length === 20, 30_000);
  const answers = relay.lines.map(JSON.parse).sort((a, b) => a.id - b.id);
  assert.deepEqual(answers.map(({ id }) => id), Array.from({ length: 20 }, (_, i) => i + 1));
  const lost = answers.filter(({ error }) => error);
  assert.ok(lost.length > 0 && lost.every(({ error }) => error.code === -32001), `${lost.length} lost`);
  assert.ok(answers.every(({ error, result }) => error || result.content));
  relay.lines.length = 0;
  relay.request(21, 'tools/call', { name: 'up__say', arguments: {} });
  assert.equal((await relay.line(10_000)).result?.isError ?? false, false);
  assert.equal(await relay.end(), 0, relay.stderr);
}, { timeout: 60_000 });

test('many relays can send calls concurrently', async (t) => {
  const { socket } = await start(t);
  const clients = await Promise.all(Array.from({ length: 16 }, () => connect(t, socket)));
  const answers = await Promise.all(clients.flatMap((client) => Array.from({ length: 25 }, () => call(client, 'say'))));
  assert.equal(answers.filter((answer) => !answer.isError).length, 400);
});

test('doctor passes with the gateway', async (t) => {
  const { socket } = await start(t);
  const doctor = new Relay(t, [], [relayProgram, 'doctor', '--unix', socket]);
  const code = await doctor.exit;
  assert.equal(code, 0, doctor.lines.join('\n'));
});

await run();

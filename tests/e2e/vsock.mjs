// Tests guests that use frames, lines and other protocols on one port, with the real program. A
// Unix socket replaces AF_VSOCK, as on the host side of Firecracker and Cloud Hypervisor.
import { execFile, spawn, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { assert, build, ended, fake, program, root, run, runProgram, sanitized, show, sleep, test, until } from './lib.mjs';
import { Guest, frame, metadata } from './frames.mjs';
import { Records } from './records.mjs';
import { Relay, relayProgram } from './relay_process.mjs';
import { statusOf } from './status.mjs';

const execute = promisify(execFile);
const framePeer = join(root, 'tests/interop/frame_peer.py');
const python = (...args) => execute('python3', [framePeer, ...args], { timeout: 100_000 });

// Starts a gateway with a socket for guests. `more` is additional configuration of the transport,
// and `profile` the rest of the profile.
async function start(t, servers, more = {}, { profile = {}, ...options } = {}) {
  const socket = join(t.dir, 'guest.sock');
  const gateway = await t.gateway(
    {
      ...profile,
      mcpServers: servers,
      transports: {
        guest: { plugin: 'transport-vsock', listen: `unix:${socket}`, ...more },
        http: { plugin: 'transport-http' },
      },
    },
    options,
  );
  return { gateway, socket };
}
const counter = async (gateway, name) => (await statusOf(gateway)).counters[`guest.vsock.${name}`];
const counts = (gateway, name, value) => until(name, async () => (await counter(gateway, name)) === value);
const end = (socket) => socket.destroyed || new Promise((resolve) => socket.on('close', resolve));

for (const args of [[], ['--single-process']]) {
  test(`B03 B05 a session works without a handshake ${args}`, async (t) => {
    const { gateway, socket } = await start(t, { up: fake('--tool', 'a') }, {}, { args });
    const guest = new Guest(t, socket);
    const list = await guest.request('tools/list');
    assert.deepEqual(list.result.tools.map((tool) => tool.name), ['up__a']);
    assert.ok((await guest.call('up__a', {}, { name: 'other' })).result);
    assert.equal(guest.frames.at(-1).name, 'other');
    assert.ok((await guest.call('up__a', {}, { name: '' })).result);
    assert.equal(guest.frames.at(-1).name, '');
    const status = await statusOf(gateway);
    assert.ok(status.endpoints.includes(`unix:${socket}`), 'status shows the listener');
    assert.ok(gateway.stdoutText.includes(socket) || gateway.stderrText.includes(socket), 'so does the banner');
  });

  test(`B03 rows name the process from the frame, otherwise from the metadata line ${args}`, async (t) => {
    const { gateway, socket } = await start(t, { up: fake('--tool', 'a') }, {}, {
      args, profile: { telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } } } });
    const records = new Records(gateway);
    const named = new Guest(t, socket);
    const unnamed = new Guest(t, socket, { start: metadata('') });
    const other = new Guest(t, socket, { start: metadata('second') });
    const sent = [
      [named, 'agent', 'agent'], [named, 'other', 'other'], [named, '', 'unknown'], [named, 'agent', 'agent'],
      [unnamed, '', 'unknown'], [unnamed, 'third', 'third'], [other, 'second', 'second'],
    ];
    for (const [i, [guest, name]] of sent.entries()) {
      assert.ok((await guest.call('up__a', { i }, { name })).result);
    }
    await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === sent.length);
    assert.deepEqual(
      await records.rows(`SELECT json_extract(request_preview, '$.arguments.i'), process_name FROM mcp_calls
                          WHERE method = 'tools/call' ORDER BY 1`),
      sent.map(([, , expected], i) => [i, expected]));
  });
}

test('a list larger than a frame is split into pages that fit', async (t) => {
  const tools = Array.from({ length: 28 }, (_, i) => ['--tool-json', JSON.stringify({
    name: `t${i}`, description: 'x'.repeat(50_000), inputSchema: { type: 'object' } })]);
  const { socket } = await start(t, { up: fake(...tools.flat()) });
  const guest = new Guest(t, socket);
  const names = [];
  let pages = 0;
  for (let cursor; pages === 0 || cursor; ++pages) {
    const { result, error } = await guest.request('tools/list', cursor ? { cursor } : {});
    assert.ok(result, show(error));
    names.push(...result.tools.map(({ name }) => name));
    cursor = result.nextCursor;
  }
  assert.equal(pages, 2);
  assert.deepEqual(new Set(names), new Set(tools.map((_, i) => `up__t${i}`)));
});

test('a handshake may arrive late and repeatedly; in-flight requests continue', async (t) => {
  const { socket } = await start(t, { up: fake('--tool', 'slow', '--delay', 'slow=300') });
  const guest = new Guest(t, socket);
  const early = guest.call('up__slow');
  for (const protocolVersion of ['2024-11-05', '2025-06-18']) {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const { result } = await guest.request('initialize', params);
    assert.equal(result.protocolVersion, protocolVersion);
    assert.ok(result.capabilities.tools && !result.capabilities.tools.listChanged, 'nothing comes unasked');
    guest.notify('notifications/initialized');
  }
  assert.ok((await early).result);
  assert.equal(guest.frames.filter((one) => one.notification).length, 0);
});

test('B01 B02 B13 an independent implementation passes its test vectors, rejections and a minimal relay', async (t) => {
  const { socket } = await start(t, { up: fake('--tool', 'a') });
  assert.match((await python('refusals')).stdout, /11 refused/);
  assert.match((await python('refuse', `unix:${socket}`)).stdout, /11 refused/);
  const child = spawn('python3', [framePeer, 'client', `unix:${socket}`]);
  let out = '';
  child.stdout.on('data', (data) => (out += data));
  const lines = [
    { jsonrpc: '2.0', id: 'a', method: 'tools/list' },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: '$/progress' },
    { jsonrpc: '2.0', id: 'b', method: 'tools/call', params: { name: 'up__a', arguments: {} } },
  ];
  child.stdin.end(lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { code } = await ended(child);
  assert.equal(code, 0);
  const answers = out.trim().split('\n').map((line) => JSON.parse(line));
  assert.equal(answers.length, 2, 'B09: as many answers as requests');
  assert.ok(answers.find((one) => one.id === 'a').result.tools);
  assert.ok(answers.find((one) => one.id === 'b').result);
});

test('B08 invalid JSON gets one error without an ID, and the next request succeeds', async (t) => {
  const { socket } = await start(t, { up: fake('--tool', 'a') });
  const guest = new Guest(t, socket);
  guest.socket.write(frame(1, '{oops'));
  guest.stream = 1;
  assert.ok((await guest.request('tools/list')).result);
  const [bad] = guest.frames;
  assert.equal(bad.stream, 1);
  assert.equal(JSON.parse(bad.payload).error.code, -32700);
  assert.ok(!('id' in JSON.parse(bad.payload)));
});

// MCP does not permit such IDs. The reference endpoint forwards them; docs/guest.md explains why
// this gateway does not.
test('an id that is null or has a fraction is rejected on its stream, and nothing runs', async (t) => {
  const log = t.path('log');
  const { socket } = await start(t, { up: fake('--tool', 'a', '--log', log) });
  const guest = new Guest(t, socket);
  await guest.request('tools/list');
  const ids = ['null', '1.5', '1.0', '1e2'];
  for (const [i, id] of ids.entries()) {
    guest.socket.write(frame(10 + i, `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"up__a","arguments":{}}}`));
  }
  guest.stream = 10 + ids.length;
  assert.ok((await guest.call('up__a', {})).result, 'the next request works');
  for (const [i, id] of ids.entries()) {
    const answers = guest.frames.filter(({ stream }) => stream === 10 + i);
    assert.equal(answers.length, 1, id);
    const { error, ...rest } = JSON.parse(answers[0].payload);
    assert.equal(error.code, -32600, id);
    assert.match(error.message, /\bid\b/);
    assert.deepEqual(rest, { jsonrpc: '2.0' }, 'without an id');
  }
  const calls = readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('<') && line.includes('"tools/call"'));
  assert.equal(calls.length, 1);
});

test('B12 a repeated or decreasing stream ID closes the connection and is counted', async (t) => {
  const { gateway, socket } = await start(t, { up: fake('--tool', 'a') });
  const good = new Guest(t, socket);
  await good.request('tools/list');
  for (const second of [5, 4]) {
    const bad = new Guest(t, socket);
    bad.socket.write(frame(5, '{"jsonrpc":"2.0","id":1,"method":"ping"}'));
    bad.socket.write(frame(second, '{"jsonrpc":"2.0","id":2,"method":"ping"}'));
    await end(bad.socket);
  }
  await counts(gateway, 'closed.stream', 2);
  assert.ok((await good.request('tools/list')).result);
});

test('B14 one port serves frames and TLS, and the TLS service receives every byte', async (t) => {
  const service = createServer((socket) => {
    socket.on('data', (data) => socket.write(`got ${data.length}:`));
    socket.on('end', () => socket.end('bye'));
  });
  await new Promise((resolve) => service.listen(0, '127.0.0.1', resolve));
  t.defer(() => service.close());
  const handoff = `127.0.0.1:${service.address().port}`;
  const { gateway, socket } = await start(t, { up: fake('--tool', 'a') }, { handoff });
  const guest = new Guest(t, socket);
  assert.ok((await guest.request('tools/list')).result);
  const tls = connect({ path: socket, allowHalfOpen: true });
  tls.write(Buffer.concat([metadata(), Buffer.from([0x16, 3, 1, 0, 0xf8, 1, 0, 0])]));
  let heard = '';
  tls.on('data', (data) => (heard += data));
  await until('the first bytes arrive', () => heard === 'got 8:');
  tls.end();
  await end(tls);
  assert.equal(heard, 'got 8:bye');
  await counts(gateway, 'handed_off', 1);
  assert.ok((await guest.request('tools/list')).result);
});

test('B14 without a hand-off service, silent connections and those that are not MCP are closed and counted', async (t) => {
  const { gateway, socket } = await start(t, { up: fake('--tool', 'a') }, { sniff_timeout_ms: 2000 });
  const http = connect(socket);
  http.on('error', () => {});
  http.write('GET / HTTP/1.1\r\n\r\n');
  await end(http);
  const silent = connect(socket);
  silent.on('error', () => {});
  const named = new Guest(t, socket); // has sent its metadata line, so it may be idle
  const busy = new Guest(t, socket);
  assert.ok((await busy.request('tools/list')).result);
  await end(silent);
  assert.ok((await named.request('tools/list')).result);
  await counts(gateway, 'closed.not_mcp', 1);
  await counts(gateway, 'closed.sniff_timeout', 1);
});

// The calls are held until the rejection arrives, so the rejection has not waited for a slot.
for (const compartment of ['own', 'endpoint']) {
  test(`B18 four calls run at a time, and a rejection needs no slot (policy: ${compartment})`, async (t) => {
    const log = t.path('log');
    const gate = t.path('gate');
    const slow = { ...fake('--tool', 'slow', '--hold', `slow=${gate}`, '--log', log), max_in_flight: 4 };
    const policies = { judge: { plugin: join(build, 'tests/judges/test-policy.so'), compartment } };
    const { socket } = await start(t, { slow, other: fake('--tool', 'quick') }, {}, { profile: { policies } });
    const guest = new Guest(t, socket);
    await guest.request('tools/list');
    const arrived = () => readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('<') && line.includes('"tools/call"'));
    const calls = Promise.all(Array.from({ length: 50 }, (_, i) => guest.call('slow__slow', { i })));
    calls.catch(() => {}); // checked below
    await until('four are in flight', () => arrived().length === 4);
    const before = guest.frames.length;
    const blocked = await guest.call('slow__slow', { judge: 'block' });
    assert.match(blocked.error.message, /MCP request blocked by policy \(test-rule\)/);
    assert.ok((await guest.call('other__quick')).result, 'nor does another server wait');
    assert.equal(guest.frames.length, before + 2, 'the fifty are still held');
    writeFileSync(gate, '');
    for (const [i, answer] of (await calls).entries()) assert.deepEqual(answer.result.echo, { i });
    assert.equal(arrived().length, 50, 'the refused call has not arrived');
    let open = 0;
    let most = 0;
    for (const line of readFileSync(log, 'utf8').split('\n')) {
      if (line.startsWith('<') && line.includes('"tools/call"')) most = Math.max(most, ++open);
      if (line.startsWith('>') && line.includes('"content"')) --open;
    }
    assert.equal(most, 4);
  });
}

test('B19 the timeout error of a tool contains the milliseconds, and other calls continue', async (t) => {
  const slow = { ...fake('--tool', 'slow', '--delay', 'slow=3000', '--tool', 'a'), tool_timeouts: { slow: 1000 } };
  const { socket } = await start(t, { up: slow });
  const guest = new Guest(t, socket);
  await guest.request('tools/list');
  const late = guest.call('up__slow');
  assert.ok((await guest.call('up__a')).result);
  const { error } = await late;
  assert.equal(error.code, -32000);
  assert.match(error.message, /1000 ms/);
});

test('a cancelled call is completed with an empty frame', async (t) => {
  const { gateway, socket } = await start(t, { up: fake('--tool', 'hang', '--hang', 'tool:hang') });
  const guest = new Guest(t, socket);
  const call = guest.call('up__hang');
  await until('it is in flight', async () => (await statusOf(gateway)).in_flight === 1);
  guest.notify('notifications/cancelled', { requestId: 'r1' });
  assert.equal(await call, null);
});

test('a guest that offers duplex receives list changes, and requests during a call', async (t) => {
  const ask = JSON.stringify({ method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object', properties: {} } } });
  const { socket } = await start(t, { up: fake('--tool', 'ask', '--ask', `ask=${ask}`, '--tool', 'grow', '--add', 'grow=new') });
  const guest = new Guest(t, socket);
  guest.notify('notifications/bulkhead/duplex', { version: 1 });
  const params = { protocolVersion: '2025-06-18', capabilities: { elicitation: {} }, clientInfo: { name: 't', version: '1' } };
  const { result } = await guest.request('initialize', params);
  assert.equal(result.capabilities.tools.listChanged, true);
  guest.notify('notifications/initialized');
  await guest.request('tools/list');
  await guest.call('up__grow');
  await until('the change is announced', () => guest.sent('notifications/tools/list_changed').length === 1);
  const call = guest.call('up__ask');
  const [question] = await until('the question', () => {
    const asked = guest.sent('elicitation/create');
    return asked.length > 0 && asked;
  });
  guest.socket.write(frame(0, { jsonrpc: '2.0', id: question.id, result: { action: 'accept', content: {} } }));
  assert.ok((await call).result);
});

test('E06 older guests can send lines after the metadata line', async (t) => {
  const { socket } = await start(t, { up: fake('--tool', 'a') });
  const old = connect(socket);
  t.defer(() => old.destroy());
  let text = '';
  old.on('data', (data) => (text += data));
  const answers = () => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  old.write(Buffer.concat([metadata(), Buffer.from('{"jsonrpc":"2.0","id":"a","method":"tools/list"}\n')]));
  await until('the list', () => answers().length === 1);
  assert.equal(answers()[0].result.tools[0].name, 'up__a');
  old.write(`{"x":"${'x'.repeat(1_100_000)}"}\n{"jsonrpc":"2.0","id":"b","method":"ping"}\n`);
  await until('both', () => answers().length === 3);
  assert.equal(answers()[1].error.code, -32600);
  assert.deepEqual(answers()[2], { jsonrpc: '2.0', id: 'b', result: {} });
});

test('a guest that does not read is disconnected; others are not affected', async (t) => {
  const { gateway, socket } = await start(t, { up: fake('--tool', 'big', '--size', 'big=500000') }, { write_timeout_ms: 1500 });
  const slow = new Guest(t, socket);
  const good = new Guest(t, socket);
  await good.request('tools/list');
  slow.socket.pause();
  for (let i = 1; i <= 20; ++i) {
    slow.socket.write(frame(i, { jsonrpc: '2.0', id: i, method: 'tools/call', params: { name: 'up__big', arguments: {} } }));
  }
  await counts(gateway, 'closed.too_slow', 1);
  assert.ok((await good.call('up__big')).result);
});

const asRoot = process.getuid() === 0;

// Users that cannot open the socket's file need not be listed. A gateway of an unprivileged user
// cannot distinguish other users.
test('only listed users may connect', async (t) => {
  const { gateway, socket } = await start(t, { up: fake('--tool', 'a') }, { allow_uids: asRoot ? [65_531] : [] });
  const guest = new Guest(t, socket);
  await end(guest.socket);
  await counts(gateway, 'peers_refused', 1);
});

test('another user is accepted only if listed', async (t) => {
  if (!asRoot) t.skip('needs users of two numbers');
  const { gateway, socket } = await start(t, { up: fake('--tool', 'a') }, { allow_uids: [0, 65_533] });
  chmodSync(t.dir, 0o711);
  assert.equal(statSync(socket).mode & 0o777, 0o666);
  const relay = t.path('relay');
  copyFileSync(relayProgram, relay);
  chmodSync(relay, 0o755);
  chmodSync(join(relay, '..'), 0o711);
  const as = (user) => new Relay(t, [], ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups', relay, '--unix', socket]);
  const listed = as(65_533);
  listed.request(1, 'tools/list');
  assert.equal((await listed.line(10_000)).result.tools[0].name, 'up__a');
  const stranger = as(65_532);
  stranger.request(1, 'tools/list');
  assert.equal((await stranger.line(10_000)).error.code, -32001);
  await until('the rejection is counted', async () => (await counter(gateway, 'peers_refused')) > 0);
  assert.match(gateway.stderrText, /a connection was rejected: uid:65532 is not in allow_uids/);
  assert.ok((await new Guest(t, socket).request('tools/list')).result, 'the own user does, too');
});

test('an unprivileged user\'s gateway rejects allow_uids if it cannot distinguish other users', async (t) => {
  if (asRoot) t.skip('root\'s endpoint knows all users');
  if (runProgram(t, ['doctor']).stdout.includes('cannot create namespaces')) t.skip('nor has it a user namespace');
  const transports = { guest: { plugin: 'transport-vsock', listen: `unix:${t.path('s')}`, allow_uids: [process.getuid(), process.getuid() + 1] } };
  const { code, stderr } = runProgram(t, ['serve', '--config', '{config}'], { profile: { mcpServers: {}, transports } });
  assert.equal(code, 1);
  assert.match(stderr, /user namespace.*start it as root or with --single-process/);
});

test('doctor checks guests\' sockets in the same way as serve', async (t) => {
  const look = (guest, more = {}) => {
    const profile = { mcpServers: {}, transports: { guest: { plugin: 'transport-vsock', ...guest } }, ...more };
    const { code, stdout } = runProgram(t, ['doctor', '--config', '{config}'], { profile });
    return { code, stdout, of: stdout.split('\n').filter((line) => line.includes('transport guest')).join('\n') };
  };
  const bad = (guest, says) => {
    const { code, stdout } = look(guest);
    assert.equal(code, 1, stdout);
    assert.match(stdout, says);
    return stdout;
  };
  for (const [guest, says] of [[{ listen: 'tcp:5002' }, /listen must have the form vsock:5002/], [{ listen: 'vsock:5002', allow_cids: [-1] }, /allow_cids/], [{ foo: 1 }, /foo/]]) {
    // Errors found by the schema are reported with their line, all others by the transport itself.
    const stdout = bad(guest, /^FAIL {2}(transport guest: |configuration: .*:\d+: transports\.guest\.)/m);
    assert.match(stdout, says);
    const profile = { mcpServers: {}, transports: { guest: { plugin: 'transport-vsock', ...guest } } };
    const served = runProgram(t, ['serve', '--config', '{config}'], { profile });
    assert.equal(served.code, 1);
    assert.match(served.stderr, says);
  }
  // The socket for other protocols does not change where guests connect.
  const mixed = look({ listen: 'vsock:5002', handoff: `unix:${t.path('no-service')}` });
  assert.match(mixed.of, /this kernel has (no )?AF_VSOCK/);
  assert.match(mixed.of, /^warn .*hand-off service unix:.*No such file/m);
  const service = createServer();
  await new Promise((resolve) => service.listen(0, '127.0.0.1', resolve));
  t.defer(() => service.close());
  const socket = t.path('s');
  const good = look({ listen: `unix:${socket}`, handoff: `127.0.0.1:${service.address().port}` });
  assert.equal(good.code, 0, good.stdout);
  assert.match(good.of, /^ok .*\/s can be created$/m);
  assert.match(good.of, /^ok .*connected to the hand-off service 127/m);
  assert.doesNotMatch(good.of, /AF_VSOCK/);
  assert.match(look({ listen: `hybrid:${t.path('vm')}:5002`, dial: `hybrid:${t.path('vm')}:5003` }).of, /vm_5002 can be created\n.*cannot connect to a monitor at .*vm: No such file/);
  bad({ listen: `unix:${t.path('none')}/s` }, /^FAIL {2}transport guest: the folder .*none does not exist\n {6}\S/m);
  writeFileSync(t.path('file'), '');
  bad({ listen: `unix:${t.path('file')}` }, /exists and is not a socket/);
  const other = createServer();
  await new Promise((resolve) => other.listen(socket, resolve));
  bad({ listen: `unix:${socket}` }, /\/s is in use by another program/);
  other.close();
});

test('a file or a program at the socket\'s path is reported with a remedy', async (t) => {
  writeFileSync(t.path('file'), '');
  const other = createServer();
  await new Promise((resolve) => other.listen(t.path('s'), resolve));
  t.defer(() => other.close());
  for (const [name, says] of [['file', /the path exists and is not a socket; remove it/], ['s', /another program is already listening there/]]) {
    const transports = { guest: { plugin: 'transport-vsock', listen: `unix:${t.path(name)}` } };
    const { code, stderr } = runProgram(t, ['serve', '--config', '{config}'], { profile: { mcpServers: {}, transports } });
    assert.equal(code, 1);
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /--listen/);
  }
});

test('doctor accepts a socket of a running gateway', async (t) => {
  const { gateway } = await start(t, { up: fake('--tool', 'a') });
  const { stdout, status } = spawnSync(program, ['doctor', '--config', gateway.config], { env: gateway.env(), cwd: gateway.dir, encoding: 'utf8' });
  assert.match(stdout, /^ok {4}transport guest: a running gateway listens on .*guest\.sock$/m);
  assert.equal(status, 0, stdout);
});

test('if the endpoint is killed, its guests are disconnected, and the next connection waits and is served', async (t) => {
  const { gateway, socket } = await start(t, { up: fake('--tool', 'a') });
  const before = new Guest(t, socket);
  await before.request('tools/list');
  const endpoint = (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint');
  process.kill(endpoint.pid, 'SIGKILL');
  await end(before.socket);
  const after = new Guest(t, socket);
  assert.ok((await after.request('tools/list', undefined, { ms: 20_000 })).result);
});

test('after ten million random bytes, the gateway still responds and has not grown', async (t) => {
  // Incomplete connections remain open until they time out.
  const { gateway, socket } = await start(t, { up: fake('--tool', 'a') }, { max_connections_per_peer: 1_000 });
  const guest = new Guest(t, socket);
  await guest.request('tools/list');
  const pid = (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint').pid;
  const kilobytes = () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  await python('fuzz', `unix:${socket}`, '--bytes', '1000000');
  await sleep(100);
  const before = kilobytes();
  await python('fuzz', `unix:${socket}`, '--bytes', '10000000', '--seed', '2');
  assert.ok((await guest.request('tools/list')).result);
  const after = (await statusOf(gateway)).compartments.find((one) => one.name === 'endpoint');
  assert.equal(after.pid, pid, 'the same process');
  // Sanitizers keep freed memory.
  if (!sanitized) assert.ok(kilobytes() < before + 16_000, `${before} kB before, ${kilobytes()} kB after`);
}, { timeout: 120_000 });

await run();

// Tests the relay of a guest over a Unix socket: rows B04 to B11 with an endpoint that is
// implemented only from the specification of the frames, further cases, and `doctor`.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, statSync, symlinkSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { assert, program, root, run, sanitized, sleep, test, until } from './lib.mjs';
import { FrameEndpoint, plain } from '../fixtures/frame_endpoint.mjs';
import { Relay, relayProgram } from './relay_process.mjs';

const framePeer = join(root, 'tests/interop/frame_peer.py');

async function world(t, onFrame) {
  const endpoint = await new FrameEndpoint(t.path('endpoint'), onFrame).start();
  t.defer(() => endpoint.stop());
  return { endpoint, relay: new Relay(t, ['--unix', endpoint.path]) };
}
const requests = (endpoint) => endpoint.received.filter((frame) => frame.flags === 0);
const methods = (frames) => frames.map((frame) => JSON.parse(frame.payload).method);
const isDuplex = (frame) => frame.payload.includes('notifications/bulkhead/duplex');
const text = (message) => JSON.stringify(message);

test('B04 the name of the parent process is cleaned and cut at a character boundary', async (t) => {
  const endpoint = await new FrameEndpoint(t.path('e')).start();
  t.defer(() => endpoint.stop());
  const nameUnder = async (parent) => {
    const shell = t.path(parent);
    symlinkSync('/bin/sh', shell);
    const relay = new Relay(t, [], [shell, '-c', `'${relayProgram}' --unix '${endpoint.path}'; exit $?`]);
    relay.request(1, 'ping');
    await relay.line();
    assert.equal(await relay.end(), 0, relay.stderr);
    return { frame: endpoint.received.at(-1).name, meta: endpoint.peer.meta };
  };
  assert.deepEqual(await nameUnder('my agent\tx'), { frame: 'my_agent_x', meta: 'CAPSEM_META:my_agent_x' });
  const long = `x${'€'.repeat(66)}`; // 199 bytes; byte 128 is inside a character
  const { frame } = await nameUnder(long);
  assert.equal(frame, `x${'€'.repeat(42)}`);
});

test('B05 a request and its response are forwarded', async (t) => {
  const { endpoint, relay } = await world(t);
  relay.send('{"jsonrpc":"2.0","id":"a","method":"tools/list"}');
  assert.equal(await relay.end(), 0, relay.stderr);
  assert.deepEqual(relay.lines.map(JSON.parse), [{ jsonrpc: '2.0', id: 'a', result: { method: 'tools/list' } }]);
  assert.equal(relay.stderr, '');
  assert.deepEqual(requests(endpoint).map((f) => [f.stream, f.payload]), [[1, '{"jsonrpc":"2.0","id":"a","method":"tools/list"}']]);
});

test('B06 after the input is half-closed, the response still arrives', async (t) => {
  let ended = false;
  const { endpoint, relay } = await world(t, (frame, peer) => frame.flags === 0 && (endpoint.asked = { frame, peer }));
  endpoint.onEnd = () => (ended = true);
  relay.request(1, 'tools/call');
  const exit = relay.end();
  await until('the endpoint sees the end', () => ended && endpoint.asked);
  await sleep(1500); // longer than the relay waits if no request is pending
  assert.deepEqual(relay.lines, []);
  plain(endpoint.asked.frame, endpoint.asked.peer);
  endpoint.peer.socket.end();
  assert.equal(await exit, 0, relay.stderr);
  assert.equal(relay.lines.length, 1);
});

test('B07 a fast response overtakes a slow one', async (t) => {
  const slow = [];
  const { relay } = await world(t, (frame, peer) => {
    if (frame.payload.includes('slow')) slow.push([frame, peer]);
    else plain(frame, peer);
  });
  relay.request(1, 'slow');
  relay.request(2, 'fast');
  assert.equal((await relay.line()).id, 2);
  for (const [frame, peer] of slow) plain(frame, peer);
  assert.equal((await relay.line()).id, 1);
});

test('B08 the endpoint responds to invalid JSON', async (t) => {
  const { relay } = await world(t);
  relay.send('{oops');
  relay.request(2, 'ping');
  const first = await relay.line();
  assert.equal(first.error.code, -32700);
  assert.ok(first.id === null || first.id === undefined);
  assert.equal((await relay.line()).id, 2);
});

test('B09 notifications are forwarded and cause no line of output', async (t) => {
  const { endpoint, relay } = await world(t);
  relay.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  relay.request(1, 'a');
  relay.send({ jsonrpc: '2.0', method: '$/progress', params: {} });
  relay.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  relay.request(2, 'b');
  assert.equal(await relay.end(), 0);
  assert.equal(relay.lines.length, 2);
  const notes = endpoint.received.filter((frame) => frame.flags === 1);
  assert.ok(isDuplex(notes[0]), 'the offer is the first frame');
  assert.deepEqual(methods(notes.slice(1)), ['notifications/initialized', '$/progress', 'notifications/cancelled']);
  assert.ok(notes.every((frame) => frame.stream === 0));
});

test('B10 the relay rejects a line that is too large for a frame, and the next line works', async (t) => {
  const { endpoint, relay } = await world(t);
  relay.request(1, 'tools/call', { x: 'x'.repeat(1_100_000) });
  relay.request(2, 'tools/list');
  const first = await relay.line();
  assert.equal(first.id, 1);
  assert.equal(first.error.code, -32001);
  assert.match(first.error.message, /tools\/call.*frame encode failed/);
  assert.equal((await relay.line()).id, 2);
  assert.equal(requests(endpoint).length, 1);
  relay.request(3, 'tools/call', { x: 'x'.repeat(16_000_000) }); // exceeds the queue limit for the endpoint
  const large = await relay.line();
  assert.equal(large.id, 3);
  assert.match(large.error.message, /tools\/call.*frame encode failed/);
});

test('B11 after a lost connection, every pending request fails, none is repeated, and the relay reconnects', async (t) => {
  const { endpoint, relay } = await world(t, () => {});
  relay.request(1, 'tools/call');
  relay.request('two', 'tools/list');
  relay.request(3, 'prompts/get');
  await until('three requests', () => requests(endpoint).length === 3);
  await endpoint.stop();
  const lost = [await relay.line(), await relay.line(), await relay.line()];
  assert.deepEqual(lost.map((answer) => [answer.id, answer.error.code]), [[1, -32001], ['two', -32001], [3, -32001]]);
  for (const [i, method] of ['tools/call', 'tools/list', 'prompts/get'].entries()) {
    assert.match(lost[i].error.message, new RegExp(`${method}: (connection closed|write failed)`));
  }
  await sleep(1200);
  endpoint.onFrame = plain;
  await endpoint.start();
  relay.request(4, 'ping');
  assert.equal((await relay.line(4000)).id, 4);
  assert.deepEqual(methods(requests(endpoint)), ['tools/call', 'tools/list', 'prompts/get', 'ping']);
  assert.equal(requests(endpoint).at(-1).stream, 1, 'streams begin anew');
  assert.match(relay.stderr, /was lost \(connection closed.*\), 3 requests failed; reconnecting/);
  assert.match(relay.stderr, /reconnected to unix:.* after/);
  assert.equal(relay.stderr.trim().split('\n').length, 2);
});

test('a short outage delays requests, and a long outage fails them', async (t) => {
  const { endpoint, relay } = await world(t);
  relay.request(1, 'ping');
  await relay.line();
  await endpoint.stop();
  const losses = () => relay.stderr.split('was lost').length - 1;
  await until('the loss is noticed', () => losses() === 1);
  relay.request('short', 'tools/call');
  await endpoint.start();
  assert.equal((await relay.line()).result.method, 'tools/call');
  await endpoint.stop();
  await until('the loss is noticed', () => losses() === 2);
  relay.request(2, 'tools/call');
  const answer = await relay.line(20_000);
  assert.match(answer.error.message, /tools\/call: not sent: there is no connection/);
  relay.request(3, 'tools/call');
  assert.equal((await relay.line(4000)).id, 3);
  await endpoint.start();
  await until('connected', () => relay.stderr.split('reconnected to').length === 3);
  relay.request(4, 'ping');
  assert.equal((await relay.line()).result.method, 'ping');
});

test('server-initiated requests of the endpoint get a response', async (t) => {
  const { endpoint, relay } = await world(t);
  relay.request(1, 'ping');
  await relay.line();
  endpoint.peer.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  assert.equal((await relay.line()).method, 'notifications/tools/list_changed');
  endpoint.peer.push({ jsonrpc: '2.0', id: 7, method: 'elicitation/create', params: {} });
  assert.equal((await relay.line()).id, 7);
  const answer = { jsonrpc: '2.0', id: 7, result: { action: 'accept', content: {} } };
  relay.send(answer);
  await until('the answer', () => endpoint.received.at(-1).payload === text(answer));
  assert.deepEqual([endpoint.received.at(-1).stream, endpoint.received.at(-1).flags], [0, 1]);
});

test('an empty frame completes a request without a line of output', async (t) => {
  const { relay } = await world(t, (frame, peer) => {
    if (frame.flags === 0) frame.payload.includes('quiet') ? peer.answer(frame, '') : plain(frame, peer);
  });
  relay.request(1, 'quiet');
  relay.request(2, 'ping');
  assert.equal((await relay.line()).id, 2);
  assert.equal(await relay.end(), 0, 'it does not wait for the first');
  assert.deepEqual(relay.lines, []);
});

test('a new endpoint receives the handshake again, transparently for the client', async (t) => {
  const { endpoint, relay } = await world(t);
  const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: { elicitation: {} } } };
  relay.send(initialize);
  await relay.line();
  relay.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
  await until('three frames', () => endpoint.received.length === 3);
  await endpoint.stop();
  endpoint.received = [];
  await endpoint.start();
  relay.request(1, 'ping');
  assert.equal((await relay.line()).id, 1);
  assert.ok(isDuplex(endpoint.received[0]));
  assert.equal(endpoint.received[1].payload, text(initialize));
  assert.equal(JSON.parse(endpoint.received[2].payload).method, 'notifications/initialized');
  assert.deepEqual(relay.lines, []);
});

test('a client that starts before its endpoint waits for it', async (t) => {
  const endpoint = new FrameEndpoint(t.path('late'));
  const relay = new Relay(t, ['--unix', endpoint.path]);
  relay.request(1, 'initialize');
  await until('it says so', () => relay.stderr.includes('cannot reach'));
  await endpoint.start();
  t.defer(() => endpoint.stop());
  assert.equal((await relay.line()).id, 1);
});

test('without an endpoint for 30 s, the request fails and the exit code is 1', async (t) => {
  const relay = new Relay(t, ['--unix', t.path('none')]);
  relay.request(1, 'initialize');
  assert.equal(await relay.exit, 1);
  assert.match(JSON.parse(relay.lines[0]).error.message, /initialize: not sent: cannot reach unix:.*no such socket/);
  assert.match(relay.stderr, /bulkhead-relay: cannot reach unix:/);
  assert.ok(relay.stderr.split('\n').length <= 3);
}, { timeout: 45_000 });

test('the relay performs the handshake of a hypervisor\'s hybrid socket', async (t) => {
  const endpoint = await new FrameEndpoint(t.path('inner')).start();
  t.defer(() => endpoint.stop());
  let asked;
  const front = net.createServer((socket) => {
    socket.once('data', (data) => {
      asked = data.toString();
      socket.write('OK 1073741824\n');
      const inner = net.connect(endpoint.path);
      socket.pipe(inner).pipe(socket);
      socket.on('error', () => {});
    });
  });
  await new Promise((resolve) => front.listen(t.path('outer'), resolve));
  t.defer(() => front.close());
  const relay = new Relay(t, ['--hybrid', t.path('outer'), '--port', '5007', '--name', 'someone else', '--meta-prefix=BULKHEAD_META']);
  relay.request(1, 'ping');
  assert.equal((await relay.line()).id, 1);
  assert.equal(asked, 'CONNECT 5007\n');
  assert.equal(endpoint.peer.meta, 'BULKHEAD_META:someone_else');
});

test('a thousand concurrent requests are sent in order', async (t) => {
  const { endpoint, relay } = await world(t);
  for (let i = 1; i <= 1000; ++i) relay.request(i, 'ping', { pad: 'p'.repeat(i) });
  await until('a thousand answers', () => relay.lines.length === 1000);
  assert.deepEqual(new Set(relay.lines.map((line) => JSON.parse(line).id)).size, 1000);
  assert.deepEqual(requests(endpoint).map((frame) => frame.stream), Array.from({ length: 1000 }, (_, i) => i + 1));
});

// The endpoint is an independent implementation of the frames. If the start of the next frame is
// known, only the invalid frame is rejected. Otherwise the connection is closed.
test('B02 rejected frames and ten million random bytes from an independent endpoint', async (t) => {
  const peer = spawn('python3', [framePeer, 'serve', `unix:${t.path('peer')}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  let heard = '';
  for (const output of [peer.stdout, peer.stderr]) output.on('data', (data) => (heard += data));
  t.defer(() => peer.kill());
  await until('it listens', () => heard === 'listening\n');
  const relay = new Relay(t, ['--unix', t.path('peer')]);
  const answerTo = async (id, method, params) => {
    relay.request(id, method, params);
    const start = `{"jsonrpc":"2.0","id":${text(id)},`;
    const line = await until(`an answer to ${method}`, () => relay.lines.find((one) => one.replaceAll(' ', '').startsWith(start)));
    return JSON.parse(line);
  };
  const connectionLost = new Set([9, 10]); // the total length is invalid
  const nobodys = 4; // stream 0: belongs to no request
  for (let n = 0; n < 11; ++n) {
    const { error, result } = await answerTo(n, 'refused', { n });
    if (n === nobodys) assert.equal(result.what, 'stream 0 without flag');
    else assert.match(error.message, connectionLost.has(n) ? /refused: connection closed/ : /invalid response frame/, `refusal ${n}`);
    assert.equal((await answerTo(`after_${n}`, 'ping')).result.method, 'ping');
  }
  assert.equal(relay.lines.length, 22, 'one line for each request');
  relay.lines.length = 0;
  const sent = () => heard.split('\n').slice(1).reduce((sum, line) => sum + Number(line), 0);
  for (let i = 0; sent() < 10_000_000; ++i) {
    assert.match((await answerTo(`noise_${i}`, 'noise')).error.message, /noise: (connection closed|write failed)/);
    relay.lines.length = 0;
  }
  assert.equal((await answerTo('last', 'ping')).result.method, 'ping');
  assert.ok(sanitized || relay.resident() <= 8192, `${relay.resident()} KiB resident`);
  assert.equal(await relay.end(), 0, relay.stderr);
  assert.match(heard, /^listening\n(\d+\n)+$/, 'it had nothing to complain of');
}, { timeout: 120_000 });

// Waits until measure() has returned the same value for a while. The time this takes is not
// checked.
async function standstill(what, measure) {
  let before = -1;
  let same = 0;
  await until(`${what} stands still`, async () => {
    await sleep(50);
    const now = measure();
    same = now === before && now > 0 ? same + 1 : 0;
    before = now;
    return same >= 5;
  }, 30_000);
  return before;
}

test('if a client stops reading, the endpoint\'s socket fills up and nothing is lost', async (t) => {
  const size = 900_000;
  const { endpoint, relay } = await world(t, (frame, peer) => {
    if (frame.flags === 1) return;
    const { id } = JSON.parse(frame.payload);
    peer.answer(frame, { jsonrpc: '2.0', id, result: { text: `${id}`.repeat(size).slice(0, size) } });
  });
  relay.unread(true);
  for (let id = 1; id <= 40; ++id) relay.request(id, 'tools/call');
  await until('all were asked', () => requests(endpoint).length === 40);
  await until('it writes to its client', () => relay.written() > 100_000);
  const waits = await standstill('the endpoint', () => endpoint.peer.socket.writableLength);
  assert.ok(waits > 30 * size, `${waits} bytes wait at the endpoint`);
  assert.equal(relay.child.exitCode, null);
  // The client's input is forwarded even while the client reads no output.
  relay.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 40 } });
  await until('the notification', () => endpoint.received.at(-1).payload.includes('cancelled'));
  relay.memoryWithin(6144);
  relay.unread(false);
  await until('all answers', () => relay.lines.length === 40, 30_000);
  for (const [i, line] of relay.lines.entries()) {
    const { id, result } = JSON.parse(line);
    assert.equal(id, i + 1);
    assert.ok(result.text === `${id}`.repeat(size).slice(0, size));
  }
  relay.memoryWithin(6144);
  assert.equal(await relay.end(), 0, relay.stderr);
  assert.equal(relay.stderr, '');
}, { timeout: 90_000 });

test('a blocked relay still exits on a signal and with its client', async (t) => {
  for (const way of ['SIGTERM', 'client']) {
    const endpoint = await new FrameEndpoint(t.path(way)).start();
    t.defer(() => endpoint.stop());
    const relay = new Relay(t, ['--unix', endpoint.path]);
    relay.unread(true);
    relay.request(0, 'ping');
    await until('asked', () => requests(endpoint).length === 1);
    for (let i = 0; i < 10; ++i) endpoint.peer.push({ jsonrpc: '2.0', method: 'x', params: 'p'.repeat(900_000) });
    await until('it writes to its client', () => relay.written() > 100_000);
    if (way === 'SIGTERM') relay.child.kill('SIGTERM');
    else for (const end of [relay.child.stdin, relay.child.stdout]) end.destroy();
    await new Promise((resolve) => relay.child.on('exit', resolve));
    assert.equal(relay.child.exitCode, 0, relay.stderr);
    relay.child.stdout.destroy();
  }
}, { timeout: 60_000 });

test('a client that reads late, after closing the relay\'s input, still gets all output', async (t) => {
  const { endpoint, relay } = await world(t, (frame, peer) => {
    if (frame.flags === 0) peer.answer(frame, { jsonrpc: '2.0', id: JSON.parse(frame.payload).id, result: 'r'.repeat(900_000) });
  });
  endpoint.onEnd = (peer) => peer.socket.end();
  relay.unread(true);
  for (let id = 1; id <= 3; ++id) relay.request(id, 'tools/call');
  const exit = relay.end();
  await until('all were asked', () => requests(endpoint).length === 3);
  await sleep(2500); // longer than the timeout for the last write without a reader
  assert.equal(relay.child.exitCode, null, 'it waits for its client');
  relay.unread(false);
  assert.equal(await exit, 0, relay.stderr);
  assert.deepEqual(relay.lines.map((line) => JSON.parse(line).id), [1, 2, 3]);
});

test('if an endpoint exits while the client does not read, received responses are printed and other requests fail', async (t) => {
  const { endpoint, relay } = await world(t, (frame, peer) => {
    if (frame.flags === 0) peer.answer(frame, { jsonrpc: '2.0', id: JSON.parse(frame.payload).id, result: 'r'.repeat(900_000) });
  });
  relay.unread(true);
  for (let id = 1; id <= 10; ++id) relay.request(id, 'tools/call');
  await until('all were asked', () => requests(endpoint).length === 10);
  await until('it writes to its client', () => relay.written() > 100_000);
  await endpoint.stop();
  endpoint.onFrame = plain;
  await endpoint.start();
  relay.request(11, 'ping');
  relay.unread(false);
  await until('an answer to each', () => relay.lines.length === 11, 20_000);
  const answers = relay.lines.map(JSON.parse);
  assert.deepEqual(answers.map(({ id }) => id).sort((a, b) => a - b), Array.from({ length: 11 }, (_, i) => i + 1));
  const failed = answers.filter(({ error }) => error);
  assert.ok(failed.length > 0 && failed.every(({ error }) => error.code === -32001));
  assert.equal(answers[0].id, 1, 'it came before the end');
  assert.ok(answers.filter(({ id, result }) => id <= 10 && result).every(({ result }) => result.length === 900_000));
  relay.request(12, 'ping');
  await until('the relay continues', () => relay.lines.length === 12);
}, { timeout: 60_000 });

test('an endpoint that does not read blocks the client, and nothing is rejected or lost', async (t) => {
  // Each case sends 45 MB. The first has more requests than the in-flight limit.
  for (const [count, size] of [[9000, 5000], [50, 900_000]]) {
    let stalled = true;
    const endpoint = await new FrameEndpoint(t.path(`${count}`), (frame, peer) => {
      if (stalled) peer.socket.pause();
      plain(frame, peer);
    }).start();
    t.defer(() => endpoint.stop());
    const relay = new Relay(t, ['--unix', endpoint.path]);
    for (let id = 1; id <= count; ++id) relay.request(id, 'ping', { pad: 'p'.repeat(size) });
    const waits = await standstill('the client', () => relay.child.stdin.writableLength);
    assert.ok(waits > 30_000_000, `${waits} bytes wait at the client`);
    stalled = false;
    endpoint.peer.socket.resume();
    await until('all answers', () => relay.lines.length === count, 60_000);
    assert.ok(relay.lines.every((line, i) => line.startsWith(`{"jsonrpc":"2.0","id":${i + 1},"result"`)));
    relay.memoryWithin(8192);
    assert.equal(await relay.end(), 0, relay.stderr);
  }
}, { timeout: 120_000 });

test('of ten thousand small pending requests, those beyond 4096 wait in the client', async (t) => {
  const asked = [];
  const { endpoint, relay } = await world(t, (frame, peer) => {
    if (frame.flags === 0) asked.push([frame, peer]);
  });
  for (let id = 1; id <= 10_000; ++id) relay.request(id, 'ping');
  await until('4096 requests', () => asked.length >= 4096, 30_000);
  await standstill('the endpoint', () => asked.length);
  assert.equal(asked.length, 4096);
  assert.deepEqual(relay.lines, []);
  endpoint.onFrame = plain;
  for (const [frame, peer] of asked) plain(frame, peer);
  await until('all answers', () => relay.lines.length === 10_000, 30_000);
  assert.ok(relay.lines.every((line) => JSON.parse(line).result.method === 'ping'));
  assert.equal(await relay.end(), 0, relay.stderr);
}, { timeout: 60_000 });

test('doctor passes a correct endpoint and explains faults', async (t) => {
  const endpoint = await new FrameEndpoint(t.path('e'), (frame, peer) => {
    if (frame.flags === 1 || !frame.payload.startsWith('{"')) return plain(frame, peer);
    const { id, method } = JSON.parse(frame.payload);
    const tool = { name: 'say', description: 'Repeats its argument', inputSchema: { type: 'object' } };
    const results = {
      initialize: { serverInfo: { name: 'fake' }, protocolVersion: '2025-06-18' },
      'tools/list': { tools: [tool] },
      'tools/call': { isError: true, content: [] },
    };
    peer.answer(frame, { jsonrpc: '2.0', id, result: results[method] ?? {} });
  }).start();
  const doctor = (path, command = [relayProgram]) => {
    const relay = new Relay(t, [], [...command, 'doctor', '--unix', path]);
    return relay.exit.then((code) => ({ code, out: relay.lines.join('\n') }));
  };
  const good = await doctor(endpoint.path);
  assert.equal(good.code, 0, good.out);
  assert.equal(good.out.match(/^ok /gm).length, 8, good.out);
  assert.equal((await doctor(endpoint.path, [program, 'relay'])).out, good.out);
  await endpoint.stop();
  const bad = await doctor(endpoint.path);
  assert.equal(bad.code, 1);
  assert.match(bad.out, /FAIL {2}no connection to unix:.*no such socket[^]*Check that the gateway runs/);
});

// Each fault is reported once. Later checks report only other faults.
test('doctor distinguishes the faults of an endpoint', async (t) => {
  const tool = { name: 'say', description: 'Repeats its argument', inputSchema: { type: 'object' } };
  const results = { initialize: { serverInfo: { name: 'fake' }, protocolVersion: '2025-06-18' }, 'tools/list': { tools: [tool] }, 'tools/call': { isError: true, content: [] } };
  const good = (frame, peer) => {
    if (frame.flags === 1 || !frame.payload.startsWith('{"')) return plain(frame, peer);
    const { id, method } = JSON.parse(frame.payload);
    peer.answer(frame, { jsonrpc: '2.0', id, result: results[method] ?? {} });
  };
  const methodOf = (frame) => (frame.payload.startsWith('{"') ? JSON.parse(frame.payload).method : '');
  const faults = {
    'initialize was rejected: .*-32600': (frame, peer) =>
      methodOf(frame) === 'initialize' ? peer.answer(frame, { jsonrpc: '2.0', id: 1, error: { code: -32600, message: 'no' } }) : good(frame, peer),
    'tools/list was rejected: .*-32603': (frame, peer) =>
      methodOf(frame) === 'tools/list' ? peer.answer(frame, { jsonrpc: '2.0', id: 3, error: { code: -32603, message: 'no' } }) : good(frame, peer),
    'a call to an unknown tool was not rejected': (frame, peer) =>
      methodOf(frame) === 'tools/call' ? peer.answer(frame, { jsonrpc: '2.0', id: 7, result: { content: [] } }) : good(frame, peer),
    'the response to invalid JSON was .*-32600': (frame, peer) =>
      frame.payload.startsWith('{oops') ? peer.answer(frame, { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no' } }) : good(frame, peer),
  };
  for (const [what, how] of Object.entries(faults)) {
    const endpoint = await new FrameEndpoint(t.path(`f${Object.keys(faults).indexOf(what)}`), how).start();
    const { code, out } = await doctorOf(t, ['--unix', endpoint.path]);
    assert.equal(code, 1, out);
    assert.match(out, new RegExp(`^FAIL {2}${what}`, 'm'), out);
    assert.equal(out.match(/^FAIL/gm).length, 1, out);
    await endpoint.stop();
  }
});

// Creates the socket of a virtual machine monitor. `answer` handles the handshake.
async function monitor(t, name, answer) {
  const front = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => answer(socket, data.toString()));
  });
  await new Promise((resolve) => front.listen(t.path(name), resolve));
  t.defer(() => front.close());
  return t.path(name);
}
const doctorOf = async (t, args, command = [relayProgram]) => {
  const relay = new Relay(t, [], [...command, 'doctor', ...args]);
  const code = await relay.exit;
  return { code, out: relay.lines.join('\n') };
};

test('doctor performs the handshake of a hybrid socket and reports which side did not respond', async (t) => {
  const endpoint = await new FrameEndpoint(t.path('inner')).start();
  t.defer(() => endpoint.stop());
  const silent = await monitor(t, 'closes', (socket) => socket.end());
  const other = await monitor(t, 'other', (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n'));
  const asked = [];
  const good = await monitor(t, 'good', (socket, data) => {
    asked.push(data);
    const inner = net.connect(endpoint.path);
    inner.on('error', () => {});
    socket.write('OK 1073741824\n');
    socket.pipe(inner).pipe(socket);
  });
  for (const [path, says] of [[silent, /CONNECT 5007 was rejected: no process is listening on that port/], [other, /the response to CONNECT 5007 was "HTTP[^"]*" instead of OK/]]) {
    const { code, out } = await doctorOf(t, ['--hybrid', path, '--port', '5007']);
    assert.equal(code, 1, out);
    assert.match(out, /^FAIL {2}no connection to hybrid:/);
    assert.match(out, says);
    assert.match(out, /no process in the guest responds/);
    assert.doesNotMatch(out, /^ok|initialize/m);
  }
  const { out } = await doctorOf(t, ['--hybrid', good, '--port', '5007']);
  assert.match(out, /^ok {4}connection to hybrid:/);
  assert.ok(asked.length >= 2 && asked.every((line) => line === 'CONNECT 5007\n'), text(asked));
});

test('doctor distinguishes a lost connection from a rejection, and reports who may connect', async (t) => {
  const closes = await monitor(t, 'closes', (socket) => socket.destroy());
  const lost = await doctorOf(t, ['--unix', closes]);
  assert.equal(lost.code, 1);
  assert.match(lost.out, /FAIL {2}initialize received no response from the endpoint: .*connection closed/);
  assert.match(lost.out, /comes from the relay[^]*allow_uids/);
  assert.doesNotMatch(lost.out, /policy rejects/);
  const endpoint = await new FrameEndpoint(t.path('refuses'), (frame, peer) => {
    if (frame.flags === 0) peer.answer(frame, { jsonrpc: '2.0', id: JSON.parse(frame.payload).id, error: { code: -32600, message: 'no' } });
  }).start();
  t.defer(() => endpoint.stop());
  assert.match((await doctorOf(t, ['--unix', endpoint.path])).out, /FAIL {2}initialize was rejected: .*-32600.*\n.*policy rejects/);
  // The socket belongs to another user. Root may connect to any socket, so the test switches to
  // another user.
  const program = t.path('relay');
  copyFileSync(relayProgram, program);
  chmodSync(program, 0o755);
  chmodSync(t.dir, 0o755);
  chmodSync(endpoint.path, 0);
  const as = process.getuid() === 0 ? ['setpriv', '--reuid=65533', '--regid=65533', '--clear-groups'] : [];
  const { out } = await doctorOf(t, ['--unix', endpoint.path], [...as, program]);
  const user = process.getuid() === 0 ? 65533 : process.getuid();
  assert.match(out, new RegExp(`FAIL {2}no connection to unix:.*Permission denied\\n.*You are user ${user}\\..*allow_uids`));
});

test('help and usage errors are the same for bulkhead-relay and bulkhead relay', async (t) => {
  const ask = (command, ...args) => spawnSync(command, args, { encoding: 'utf8' });
  assert.match(ask(relayProgram, '--help').stdout, /--hybrid PATH/);
  for (const args of [['--what'], ['--unix'], ['--port', 'x'], ['--port', '99999999999'], ['--meta-prefix', 'a b', '--unix', '/x'], ['--unix', 'a', '--hybrid', 'b']]) {
    const { status, stderr, stdout } = ask(relayProgram, ...args);
    assert.equal(status, 2, args.join(' '));
    assert.ok(stderr.startsWith('bulkhead-relay: ') && stdout === '');
  }
  assert.match(ask(program, 'relay', '--help').stdout, /Usage: bulkhead relay/);
  const endpoint = await new FrameEndpoint(t.path('e')).start();
  t.defer(() => endpoint.stop());
  const relay = new Relay(t, [], [program, 'relay', '--unix', endpoint.path]);
  relay.request(1, 'ping');
  assert.equal(await relay.end(), 0, relay.stderr);
  assert.equal(relay.lines.length, 1);
});

test('the program file and its memory use are small', async (t) => {
  if (sanitized) t.skip('sanitizers are large');
  const { relay } = await world(t);
  for (let i = 1; i <= 100; ++i) relay.request(i, 'ping', { pad: 'p'.repeat(20_000) });
  await until('the answers', () => relay.lines.length === 100);
  for (const size of [1_000_000, 1_100_000]) relay.request(size, 'ping', { pad: 'p'.repeat(size) });
  await until('the last answers', () => relay.lines.length === 102);
  const resident = relay.resident();
  assert.ok(statSync(relayProgram).size <= 1_500_000, `${statSync(relayProgram).size} bytes`);
  assert.ok(resident <= 4096, `${resident} KiB resident`);
  // Rejected lines must not leak memory.
  for (const size of [15_000_000, 17_000_000, 17_000_000]) relay.request(size, 'ping', { pad: 'p'.repeat(size) });
  await until('the rejections', () => relay.lines.length === 105, 20_000);
  await until('their memory is released', () => relay.resident() <= 4096);
});

await run();

// Tests that all transport plugins behave in the same way (row H05). The same checks run with each
// transport.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Gateway, assert, fake, member, program, run, test } from './lib.mjs';
import { relayProgram } from './relay_process.mjs';
import { Frames, Http, programLines, socketLines } from './wires.mjs';

const TOOL = '{"name":"odd","x":{"b":1e400,"a":12345678901234567890},"inputSchema":{"type":"object"},"description":"d\\u00e9"}';
const RESULT = '{"content":[],"z":1e400,"isError":false,"_meta":{"k":-0.0},"s":"\\u0041\\/"}';
const TOOL_ERROR = '{"content":[{"type":"text","text":"no"}],"isError":true,"n":12345678901234567890}';
const ERROR = '{"code":-32042,"message":"say \\"please\\"","data":{"n":1e400}}';
const ARGUMENTS = '{"path" : "/tmp/x", "n":[1.10, 1E5,"\\u0041"]}';

const call = (name, args = '{}') => `{"name":"up__${name}","arguments":${args}}`;
const codeOf = (text) => JSON.parse(text).error?.code;
const anonymous = (text) => [undefined, 'null'].includes(member(text, 'id'));

// Each check has a separate session after the handshake, and a server with the tool `held`, which
// responds when the test releases it.
const checks = {
  async initialize({ hello, wire }) {
    assert.equal(hello.result.protocolVersion, '2025-06-18');
    for (const kind of ['tools', 'resources', 'prompts']) assert.ok(hello.result.capabilities[kind], kind);
    assert.ok(hello.result.serverInfo.name && hello.result.serverInfo.version);
    assert.deepEqual((await wire.ask('1', 'ping')).result, {});
  },
  async 'ids come back as they went'({ wire }) {
    const ids = ['0', '"0"', '-5', '"a\\"b"', '"\\u0041"', '9007199254740993'];
    for (const id of ids) wire.request(id, 'ping');
    for (const id of ids) assert.equal(member(await wire.answer(id), 'result'), '{}');
  },
  async 'tools/list'({ wire }) {
    const list = await wire.ask('1', 'tools/list', {});
    const names = list.result.tools.map((tool) => tool.name).sort();
    assert.deepEqual(names, ['big', 'failing', 'held', 'no', 'odd', 'raw', 'say'].map((name) => `up__${name}`));
    assert.ok((await wire.answer('1')).includes(TOOL.replace('"odd"', '"up__odd"')), 'a definition is unchanged but for its name');
  },
  async 'tools/call: arguments and result keep their bytes'({ wire }) {
    wire.request('1', 'tools/call', call('say', ARGUMENTS));
    assert.equal(member(member(await wire.answer('1'), 'result'), 'echo'), ARGUMENTS);
    wire.request('2', 'tools/call', call('raw'));
    assert.equal(member(await wire.answer('2'), 'result'), RESULT);
  },
  async 'a large result is whole'({ wire }) {
    const { result } = await wire.ask('1', 'tools/call', call('big'));
    assert.equal(result.content[0].text, 'x'.repeat(400_000));
  },
  async 'errors of a tool and of its server'({ wire }) {
    wire.request('1', 'tools/call', call('no'));
    assert.equal(member(await wire.answer('1'), 'result'), TOOL_ERROR);
    wire.request('2', 'tools/call', call('failing'));
    assert.equal(member(await wire.answer('2'), 'error'), ERROR);
  },
  async 'an unknown tool is -32601, a name without a server and no name -32602'({ wire }) {
    for (const name of ['up__nosuch', 'nosuch__say']) {
      const { error } = await wire.ask(`"${name}"`, 'tools/call', { name, arguments: {} });
      assert.equal(error.code, -32601);
      assert.match(error.message, new RegExp(`Tool not found: ${name}$`));
    }
    assert.equal((await wire.ask('1', 'tools/call', { name: 'nosuch' })).error.code, -32602);
    assert.equal((await wire.ask('2', 'tools/call', {})).error.code, -32602);
  },
  async 'an unknown method is -32601'({ wire }) {
    assert.equal((await wire.ask('1', 'no/such/method', {})).error.code, -32601);
  },
  async 'what is not JSON is -32700, once, and the next is served'({ wire }) {
    wire.send('{oops');
    const bad = await wire.until('a refusal', () => wire.messages.find(anonymous));
    assert.equal(codeOf(bad), -32700);
    assert.deepEqual((await wire.ask('1', 'ping')).result, {});
    assert.equal(wire.messages.filter(anonymous).length, 1);
  },
  async 'another jsonrpc is -32600'({ wire }) {
    wire.send('{"jsonrpc":"1.0","id":1,"method":"ping"}');
    const bad = await wire.until('a refusal', () => wire.messages.find((text) => codeOf(text) !== undefined));
    assert.equal(codeOf(bad), -32600);
    assert.deepEqual((await wire.ask('2', 'ping')).result, {});
  },
  async 'notifications get no answer'({ wire }) {
    const before = wire.messages.length;
    for (const method of ['notifications/initialized', '$/progress', 'notifications/no/such', 'no/such/method']) wire.notify(method, {});
    await wire.ask('1', 'ping');
    assert.equal(wire.messages.length, before + 1, wire.messages.slice(before).join('\n'));
  },
  async 'a cancelled call has no answer, and its server is notified'({ wire, server }) {
    wire.request('"c"', 'tools/call', call('held', '{"mark":"to be cancelled"}'));
    const sent = await wire.until('the call arrives', () => server.received('to be cancelled')[0]);
    wire.notify('notifications/cancelled', { requestId: 'c', reason: 'enough of it' });
    const told = await wire.until('the cancellation arrives', () => server.received('enough of it')[0]);
    assert.equal(member(member(told, 'params'), 'requestId'), member(sent, 'id'));
    server.release();
    await wire.until('the server answers anyway', () => server.answered('to be cancelled')[0]);
    assert.ok((await wire.ask('2', 'tools/call', call('say'))).result, 'what the server says later has come');
    assert.deepEqual(wire.answers('"c"'), []);
  },
  async 'resources/list and read'({ wire }) {
    const { result } = await wire.ask('1', 'resources/list', {});
    assert.deepEqual(result.resources.map((one) => one.uri), ['bulkhead://up/file:///a/b.txt']);
    const read = await wire.ask('2', 'resources/read', { uri: result.resources[0].uri });
    assert.equal(read.result.contents[0].text, 'text of the resource');
    assert.equal((await wire.ask('3', 'resources/read', {})).error.code, -32602);
  },
  async 'prompts/list and get'({ wire }) {
    const { result } = await wire.ask('1', 'prompts/list', {});
    assert.deepEqual(result.prompts.map((one) => one.name), ['up__greet']);
    const got = await wire.ask('2', 'prompts/get', { name: 'up__greet' });
    assert.equal(got.result.messages[0].content.text, 'greet');
  },
  async 'a slow call does not delay others'({ wire, server }) {
    wire.request('"slow"', 'tools/call', call('held'));
    const quick = Array.from({ length: 100 }, (_, i) => `"quick ${i}"`);
    for (const id of quick) wire.request(id, 'tools/call', call('say', `{"me":${id}}`));
    for (const id of quick) assert.equal(member(member(await wire.answer(id), 'result'), 'echo'), `{"me":${id}}`);
    assert.deepEqual(wire.answers('"slow"'), [], 'it is still held');
    server.release();
    assert.ok(JSON.parse(await wire.answer('"slow"')).result);
  },
  async 'a message that is too large is refused, the next one is served'({ wire }) {
    wire.request('1', 'tools/call', call('say', `{"pad":"${'x'.repeat(600_000)}"}`));
    const bad = await wire.until('a refusal', () => wire.messages.find((text) => codeOf(text) !== undefined));
    assert.equal(codeOf(bad), -32600);
    assert.ok(anonymous(bad) || member(bad, 'id') === '1', bad);
    assert.ok((await wire.ask('2', 'tools/call', call('say'))).result);
  },
  async 'what is under way at the end of the input is answered'({ wire, server }) {
    const over = wire.last('{"jsonrpc":"2.0","id":"last","method":"tools/call","params":{"name":"up__held","arguments":{"mark":"the last one"}}}');
    await wire.until('the call arrives', () => server.received('the last one')[0]);
    assert.deepEqual(wire.answers('"last"'), []);
    server.release();
    assert.ok(JSON.parse(await wire.answer('"last"')).result);
    await over;
  },
};

// The server behind the gateway, observed through its log.
class Upstream {
  constructor(t) {
    this.log = t.path('log');
    this.gate = t.path('gate');
    this.definition = fake(
      '--tool', 'say', '--tool', 'raw', '--tool', 'no', '--tool', 'failing', '--tool', 'held', '--tool', 'big', '--tool-json', TOOL,
      '--result', `raw=${RESULT}`, '--result', `no=${TOOL_ERROR}`, '--error', `failing=${ERROR}`, '--size', 'big=400000',
      '--hold', `held=${this.gate}`, '--resource', 'file:///a/b.txt', '--prompt', 'greet', '--log', this.log,
    );
  }
  #lines(mark, text) {
    const lines = existsSync(this.log) ? readFileSync(this.log, 'utf8').split('\n') : [];
    return lines.filter((line) => line.startsWith(mark) && line.includes(text)).map((line) => line.slice(2));
  }
  received(text) {
    return this.#lines('<', text);
  }
  answered(text) {
    return this.#lines('>', text);
  }
  release() {
    writeFileSync(this.gate, '');
  }
  hold() {
    rmSync(this.gate, { force: true });
  }
}

const limits = { message_bytes: 500_000 };

// Starts a gateway for HTTP and guests. `where` is the address for guests.
async function served(t, upstream, where) {
  const socket = t.path('guest.sock');
  const gateway = await t.gateway({
    limits,
    mcpServers: { up: upstream.definition },
    transports: { guests: { plugin: 'transport-vsock', ...(where ?? { listen: `unix:${socket}` }) }, http: { plugin: 'transport-http' } },
  });
  return { socket, url: gateway.url };
}

// Starts a gateway for each transport. Each check then opens a connection.
const ways = {
  'lines on stdio': (t, upstream) => {
    const gateway = new Gateway(t.dir, { limits, mcpServers: { up: upstream.definition } });
    return () => programLines(t, ...gateway.stdioCommand());
  },
  'Streamable HTTP': async (t, upstream) => {
    const { url } = await served(t, upstream);
    return () => new Http(t, url);
  },
  'frames over a Unix socket': async (t, upstream) => {
    const { socket } = await served(t, upstream);
    return () => new Frames(t, socket);
  },
  'the older lines over a Unix socket': async (t, upstream) => {
    const { socket } = await served(t, upstream);
    return () => socketLines(t, socket);
  },
  'the relay': async (t, upstream) => {
    const { socket } = await served(t, upstream);
    return () => programLines(t, relayProgram, ['--unix', socket]);
  },
  'the relay as a command': async (t, upstream) => {
    const { socket } = await served(t, upstream);
    return () => programLines(t, program, ['relay', '--unix', socket]);
  },
};

// This test only runs in the guest of tests/guest. On other machines, the connection could reach an
// unrelated service.
const port = process.env.BULKHEAD_GUEST_PORT;
if (port) {
  ways['frames over AF_VSOCK'] = async (t, upstream) => {
    await served(t, upstream, { listen: `vsock:${port}`, allow_cids: [1] });
    return () => programLines(t, relayProgram, ['--cid', '1', '--port', port]);
  };
}

for (const [way, start] of Object.entries(ways)) {
  test(`H05 ${way}`, async (t) => {
    const upstream = new Upstream(t);
    const open = await start(t, upstream);
    const failed = [];
    for (const [name, check] of Object.entries(checks)) {
      const wire = open();
      try {
        const hello = await wire.initialize();
        await check({ wire, hello, server: upstream });
        assert.ifError(wire.failure);
      } catch (error) {
        failed.push(`${name}: ${error.stack}`);
      }
      upstream.hold();
    }
    assert.equal(failed.length, 0, failed.join('\n'));
    console.log(`    ${way}: ${Object.keys(checks).join('; ')}`);
  }, { timeout: 240_000 });
}

await run();

// Tests that the bytes of arguments and results are forwarded unchanged, with random JSON over all
// pairs of transports and protocol generations. FIDELITY_SEED=N repeats a run, and FIDELITY_COUNT=N
// sets the number of cases.
import { fileURLToPath } from 'node:url';
import { assert, fake, member, node, run, test } from './lib.mjs';
import { entries } from '../fixtures/raw_json.mjs';
import { echoResult, startRaw } from '../fixtures/raw_stateless.mjs';
import { PREFIX, meta } from './stateless_client.mjs';

const seed = Number(process.env.FIDELITY_SEED ?? Math.floor(Math.random() * 2 ** 31));
const count = Number(process.env.FIDELITY_COUNT ?? 150);
console.log(`seed ${seed}`);

// Returns a pseudo-random number generator (mulberry32).
function random(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// Writes random JSON with elements that libraries tend to change.
class Writer {
  constructor(next) {
    this.next = next;
  }
  below(n) {
    return Math.floor(this.next() * n);
  }
  pick(items) {
    return items[this.below(items.length)];
  }
  space() {
    return this.below(4) ? '' : this.pick([' ', '  ', '\t']);
  }
  digits(n) {
    return Array.from({ length: n }, () => this.below(10)).join('');
  }
  number() {
    return this.pick([
      () => '-0.0', () => '-0', () => '1e400', () => '-1E+400', () => '1e-999', () => '0.10', () => '1.0', () => '1E5', () => '9007199254740993',
      () => `${1 + this.below(9)}${this.digits(this.below(60))}`,
      () => `-${1 + this.below(9)}${this.digits(this.below(25))}.${this.digits(1 + this.below(30))}`,
      () => `${this.below(10)}.${this.digits(3)}e${this.pick(['', '+', '-'])}${this.digits(1 + this.below(3))}`,
    ])();
  }
  string() {
    let text = '';
    for (let n = this.below(12); n > 0; --n) {
      text += this.pick(['a', 'Z', '0', ' ', 'é', '😀', '\u2028', '\u007f', '\\n', '\\"', '\\\\', '\\/', '/', '\\u0000', '\\u001f', '\\ud83d\\ude00',
        '\\uD83D\\uDE00', '\\u00e9', '\\u00E9', '\\ufeff', '\\b\\f\\r\\t', '{', '}', '[', ']', ',', ':', "'", '\\u2028']);
    }
    return `"${text}"`;
  }
  value(depth) {
    const kinds = [() => this.number(), () => this.number(), () => this.string(), () => this.string(), () => this.pick(['null', 'true', 'false'])];
    if (depth > 0) kinds.push(() => this.object(depth - 1), () => this.array(depth - 1), () => this.object(depth - 1));
    return this.pick(kinds)();
  }
  list(n, item) {
    return Array.from({ length: n }, () => `${this.space()}${item()}${this.space()}`).join(',');
  }
  array(depth) {
    return `[${this.list(this.below(5), () => this.value(depth))}${this.space()}]`;
  }
  // Keys are sometimes repeated, in the same or different case.
  object(depth) {
    const member_ = () => `${this.pick(['"k"', '"K"', '"name"', '"id"', '"__proto__"', '""', this.string()])}${this.space()}:${this.space()}${this.value(depth)}`;
    return `{${this.list(this.below(6), member_)}}`;
  }
}

async function check(client, tool, text) {
  const answer = await client.request('tools/call', `{"name":"${tool}","arguments":${text}}`);
  assert.equal(member(answer.resultText, 'echo'), text);
}

async function all(client, tools, offset) {
  const writer = new Writer(random(seed + offset));
  for (let i = 0; i < count; ++i) {
    const texts = tools.map(() => writer.object(4));
    await Promise.all(tools.map((tool, at) => check(client, tool, texts[at])));
  }
}

async function servers(t) {
  const web = await t.fakeHttp();
  return { mcpServers: { child: fake('--tool', 'echo'), web: { url: web.url } } };
}
const TOOLS = ['child__echo', 'web__echo', 'web__echo_sse'];

test('bytes are unchanged over HTTP', async (t) => {
  const gateway = await t.gateway(await servers(t));
  await all(await t.http(gateway), TOOLS, 1);
});

test('bytes are unchanged over stdio', async (t) => {
  await all(await t.stdio(await servers(t)), TOOLS, 2);
});

// ---- clients and servers of 2026-07-28 ----------------------------------------------------------

// The top-level members that the gateway may add or remove if client and server differ in their
// generation, and the members of _meta that describe the hop.
const OF_RESULT = ['"resultType"', '"ttlMs"', '"cacheScope"'];
const without = (object, names) => entries(object).filter(([name]) => !names.includes(name));
const ownMeta = (object) => entries(object).filter(([name]) => !name.startsWith(`"${PREFIX}`));

async function statelessServers(t) {
  const raw = await startRaw();
  t.defer(() => raw.stop());
  const script = fileURLToPath(new URL('../fixtures/raw_stateless.mjs', import.meta.url));
  return { mcpServers: { pipe: { command: node, args: [script, 'stdio'], sandbox: 'off' }, raw: { url: raw.url } } };
}
const STATELESS_TOOLS = ['pipe__echo', 'raw__echo'];

// Both kinds of clients over both transports. Their function resolves with the text of the result.
async function callers(t, profile) {
  const gateway = await t.gateway(profile);
  const clients = { http: await t.http(gateway), stdio: await t.stdio(profile, { args: ['--own'] }) };
  const headers = (name) => ({ headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name } });
  const sender = (client, modern) => async (name, args, extra) => {
    const members = modern ? `${JSON.stringify(meta()).slice(1, -1)}, ` : '';
    const params = `{"name":"${name}" ,"_meta":{${members}"com.example/b" : ${extra}}, "arguments":${args}}`;
    return (await client.request('tools/call', params, modern ? headers(name) : {})).resultText;
  };
  const modern = { http: await t.http(gateway, { initialize: false }), stdio: await t.stdio(profile, { initialize: false, args: ['--own'] }) };
  return ['http', 'stdio'].flatMap((transport) => [
    { transport, generation: 'with sessions', send: sender(clients[transport], false) },
    { transport, generation: '2026-07-28', send: sender(modern[transport], true) },
  ]);
}

// The server must receive the arguments and the client's own members of _meta unchanged.
function checkParams(received, args, extra) {
  assert.deepEqual(entries(received).map(([name]) => name).sort(), ['"_meta"', '"arguments"', '"name"']);
  assert.equal(member(received, 'name'), '"echo"');
  assert.equal(member(received, 'arguments'), args);
  assert.deepEqual(ownMeta(member(received, '_meta')), [['"com.example/b"', extra]]);
}

test('bytes are unchanged between clients of both generations and servers of 2026-07-28', async (t) => {
  const all = await callers(t, await statelessServers(t));
  const writer = new Writer(random(seed + 3));
  for (let i = 0; i < count / 3; ++i) {
    const cases = all.flatMap((caller) => STATELESS_TOOLS.map((tool) => ({ ...caller, tool, args: writer.object(3), extra: writer.value(2) })));
    await Promise.all(cases.map(async ({ transport, generation, send, tool, args, extra }) => {
      const got = await send(tool, args, extra);
      const what = `${generation} over ${transport}, ${tool}`;
      const received = member(got, 'received');
      checkParams(received, args, extra);
      const sent = echoResult(received);
      if (generation === '2026-07-28') return assert.equal(got, sent, what);
      const rest = (text, names) => without(text, names).filter(([name]) => name !== '"_meta"');
      assert.deepEqual(rest(got, []), rest(sent, OF_RESULT), what);
      assert.deepEqual(entries(member(got, '_meta')), ownMeta(member(sent, '_meta')), what);
    }));
  }
});

test('bytes are unchanged between clients of both generations and servers with sessions', async (t) => {
  const all = await callers(t, await servers(t));
  const writer = new Writer(random(seed + 4));
  for (let i = 0; i < count / 3; ++i) {
    const args = TOOLS.map(() => writer.object(3)), extra = writer.value(2);
    await Promise.all(TOOLS.map(async (tool, at) => {
      const texts = await Promise.all(all.map(({ send }) => send(tool, args[at], extra)));
      all.forEach(({ generation }, n) => {
        assert.equal(member(texts[n], 'echo'), args[at]);
        if (generation !== '2026-07-28') return assert.equal(texts[n], texts[0], tool);
        // The members that the revision requires are inserted in front of the server's.
        const added = ['"resultType"', '"_meta"'];
        const rest = texts[0].slice(1);
        assert.ok(texts[n].endsWith(rest), `${texts[n]}\n${texts[0]}`);
        const front = entries(`${texts[n].slice(0, -rest.length).replace(/,$/, '')}}`);
        assert.deepEqual(front.map(([name]) => name), added);
        assert.equal(front[0][1], '"complete"');
        assert.deepEqual(Object.keys(JSON.parse(front[1][1])), [`${PREFIX}serverInfo`]);
      });
    }));
  }
});

test('large arguments and results are unchanged', async (t) => {
  const profile = await servers(t);
  const text = `{"s":"${'é\\ud83d\\ude00x'.repeat(200_000)}","n":[${'1e400,'.repeat(50_000)}0]}`;
  for (const client of [await t.http(await t.gateway(profile)), await t.stdio(profile)]) {
    for (const tool of TOOLS) await check(client, tool, text);
  }
});

// A line break between tokens is valid in an HTTP body, but on stdio it terminates the message, and
// in an event stream the line. Only such white space may change.
test('messages over several lines keep their framing', async (t) => {
  const profile = await servers(t);
  const gateway = await t.gateway(profile);
  const client = await t.http(gateway);
  for (const tool of [...TOOLS, 'web__pretty']) {
    const body = `{\r\n  "jsonrpc": "2.0",\n\n  "id": 900,\n  "method": "tools/call",\n  "params": {\n\t"name": "${tool}",\n\t"arguments": {\n\t\t"n": [1e400,\r\n -0.0],\n "s": "a\\nb"}\n}\n}\n`;
    const answer = await client.send(body, 900);
    assert.deepEqual(answer.result.echo, { n: [Infinity, -0], s: 'a\nb' }, tool);
    assert.match(member(answer.resultText, 'echo'), /1e400,\s*-0\.0/);
  }
  const stdio = await t.stdio(profile);
  assert.deepEqual((await stdio.tool('web__pretty', { a: [1] })).echo, { a: [1] });
  const streaming = await client.request('tools/call', { name: 'web__pretty', arguments: { a: 1 }, _meta: { progressToken: 1 } });
  assert.deepEqual(streaming.result.echo, { a: 1 });
});

test('ids of every kind are returned unchanged', async (t) => {
  const profile = await servers(t);
  for (const client of [await t.http(await t.gateway(profile)), await t.stdio(profile)]) {
    for (const id of ['a string', '', '\u00e9"\\', 0, -1, 9007199254740991]) {
      const answer = await client.request('tools/call', { name: 'child__echo', arguments: {} }, { id });
      assert.equal(member(answer.raw, 'id'), JSON.stringify(id));
    }
  }
});

await run();

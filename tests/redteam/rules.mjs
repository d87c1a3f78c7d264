// Attempts to bypass rules. The tests search for blocked data where it would cause harm: in the
// messages that servers have received, as any JSON parser might interpret them.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { assert, fake, program, run, show, test } from '../e2e/lib.mjs';

const quoted = (text) => JSON.stringify(String(text));
const RULES = `
[security.rules.mcp.no-boom]
on = "mcp.request"
if = '''mcp.request.arguments_text.contains("BOOM")'''
decision = "block"
[security.rules.mcp.no-tool]
on = "mcp.request"
if = '''mcp.request.tool_name == "forbidden"'''
decision = "block"
[security.rules.mcp.no-file]
on = "mcp.request"
if = '''mcp.request.uri == "file:///etc/shadow"'''
decision = "block"
[security.rules.mcp.no-token]
on = "mcp.response"
if = '''mcp.response.text.contains("TOPSECRET")'''
decision = "block"
`;

function profile(log, more = []) {
  const { command, args } = fake('--tool', 'open', '--tool', 'forbidden', '--tool', 'leak', '--resource', 'file:///etc/shadow',
    '--resource', 'file:///open', '--log', log, ...more);
  return `[mcpServers.s]\ncommand = ${quoted(command)}\nargs = [${args.map(quoted).join(', ')}]\n${RULES}`;
}

// Yields different JSON strings for the same or nearly the same text.
function spellings(text) {
  const hex = (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const all = [...text];
  return [
    quoted(text),
    `"${all.map(hex).join('')}"`,
    `"${all.map((c) => hex(c).toUpperCase().replace('\\U', '\\u')).join('')}"`,
    ...all.map((_, i) => `"${all.map((c, k) => (k === i ? hex(c) : c)).join('')}"`),
    quoted(text.toUpperCase()),
    quoted(`${text} `),
    quoted(` ${text}`),
    quoted(`${text}\u0000`),
    quoted(`\ufeff${text}`),
    quoted(`s__${text}`),
    quoted(text.normalize('NFKD')),
    quoted(all.join('\u200b')),
  ];
}

// Yields messages with blocked data, each in a form that some parser might misinterpret.
function* attempts(id) {
  const call = (params, envelope = '') => `{"jsonrpc":"2.0","id":${id.next()},"method":"tools/call"${envelope},"params":${params}}`;
  for (const name of spellings('s__forbidden')) yield call(`{"name":${name},"arguments":{}}`);
  const boom = '{"cmd":"BOOM"}';
  for (const text of spellings('BOOM').slice(0, 7)) {
    yield call(`{"name":"s__open","arguments":{"cmd":${text}}}`);
    yield call(`{"name":"s__open","arguments":{${text}:1}}`);
    yield call(`{"name":"s__open","arguments":{"a":[[{"b":${text}}]]}}`);
  }
  // Duplicate members, in any order and encoding.
  const twice = [['"name":"s__open"', '"name":"s__forbidden"'], ['"arguments":{}', `"arguments":${boom}`]];
  for (const [good, bad] of twice) {
    const rest = good.includes('name') ? '"arguments":{}' : '"name":"s__open"';
    for (const key of ['$&', '"\\u0061rguments"', '"\\u006eame"', '"Name"', '"Arguments"', '"ARGUMENTS"']) {
      const other = key === '$&' ? bad : bad.replace(/^"[a-z]+"/, key);
      yield call(`{${rest},${good},${other}}`);
      yield call(`{${rest},${other},${good}}`);
      yield call(`{${other},${rest},${good}}`);
    }
  }
  yield call(`{"name":"s__open","arguments":{"cmd":"x","cmd":"BOOM"}}`);
  yield call(`{"name":"s__open","arguments":{"cmd":"BOOM","cmd":"x"}}`);
  yield call(`{"name":"s__open","arguments":{"cmd":"BOOM","\\u0063md":"x"}}`);
  yield call(`{"name":"s__open","arguments":{"deep":{"cmd":"x","cmd":"BOOM"}}}`);
  // Members next to params, which a parser may ignore or use.
  for (const key of ['arguments', 'Params', 'PARAMS', 'parameters', 'name', 'tool', 'args', '_meta', 'context', 'x']) {
    yield call('{"name":"s__open","arguments":{}}', `,${quoted(key)}:{"name":"forbidden","arguments":${boom},"cmd":"BOOM"}`);
  }
  yield call('{"name":"s__open","arguments":{}}', `,"params":{"name":"s__forbidden","arguments":${boom}}`);
  yield call('{"name":"s__open","arguments":{}}', ',"method":"resources/read"');
  // Large messages, which are evaluated on another thread.
  const pad = 'x'.repeat(200_000);
  yield call(`{"name":"s__open","arguments":{"pad":"${pad}","cmd":"BOOM"}}`);
  yield call(`{"name":"s__open","arguments":{"cmd":"BOOM","pad":"${pad}"}}`);
  yield call(`{"name":"s__open","arguments":{"cmd":"x","pad":"${pad}","cmd":"BOOM"}}`);
  yield call(`{"name":"s__open","arguments":{"pad":[${'0,'.repeat(70_000)}"BOOM"]}}`);
  yield call(`{"name":"s__forbidden","arguments":{"pad":"${pad}"}}`);
  // JSON that only some parsers accept.
  for (const text of ['{"cmd":"BOOM",}', "{'cmd':'BOOM'}", '{cmd:"BOOM"}', '{"cmd":"BOOM"}//', '{"cmd":"BOOM"} {}', '{"n":NaN,"cmd":"BOOM"}',
    '{"n":01,"cmd":"BOOM"}', '{"s":"\t","cmd":"BOOM"}', '{"s":"\\x41","cmd":"BOOM"}', '{"s":"\\ud800","cmd":"BOOM"}', `${'['.repeat(200)}"BOOM"${']'.repeat(200)}`]) {
    yield call(`{"name":"s__open","arguments":${text}}`);
  }
  yield call(`{"name":"s__open","arguments":"{\\"cmd\\":\\"BOOM\\"}"}`);
  yield call(`{"name":"s__open","arguments":["BOOM"]}`);
  // Resources, with each method and in each form of a URI.
  for (const method of ['resources/read', 'resources/subscribe']) {
    for (const uri of ['file:///etc/shadow', 's+file:///etc/shadow', 'bulkhead://s/file:///etc/shadow', 'FILE:///etc/shadow']) {
      for (const text of spellings(uri).slice(0, 3)) {
        yield `{"jsonrpc":"2.0","id":${id.next()},"method":${quoted(method)},"params":{"uri":${text}}}`;
        yield `{"jsonrpc":"2.0","id":${id.next()},"method":${quoted(method)},"params":{"uri":"file:///open","uri":${text}}}`;
      }
    }
  }
  // The same data in a batch (if the revision supports batches) and in a notification.
  yield `[{"jsonrpc":"2.0","id":${id.next()},"method":"tools/call","params":{"name":"s__forbidden","arguments":{}}}]`;
  yield `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"s__forbidden","arguments":{}}}`;
  yield `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"s__forbidden","arguments":{}}}`;
}

// Returns the messages that the server has received, as interpreted by a parser that uses the first
// of two duplicate members and by a parser that uses the last.
function received(log) {
  if (!existsSync(log)) return [];
  return readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('< ')).map((line) => line.slice(2));
}
function harm(line) {
  const text = line.replace(/\\u([0-9a-fA-F]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));
  if (!/"method":"(tools\/call|resources\/)/.test(text)) return null;
  if (/BOOM/.test(text)) return 'the forbidden argument';
  if (/"forbidden"/.test(text)) return 'the forbidden tool';
  if (/file:\/\/\/etc\/shadow/.test(text)) return 'the forbidden file';
  return null;
}

function counter() {
  let value = 1000;
  return { next: () => ++value };
}
async function attack(t, send, log, check) {
  let sent = 0;
  for (const message of attempts(counter())) {
    await send(message);
    ++sent;
  }
  assert.ok(sent > 100, `only ${sent} attempts`);
  await check();
  const harmful = received(log).map((line) => [harm(line), line]).filter(([what]) => what);
  assert.deepEqual(harmful.map(([what, line]) => `${what}: ${line.slice(0, 300)}`), []);
  assert.ok(received(log).some((line) => line.includes('"after"')), 'the server got what is allowed');
}

for (const [mode, args] of Object.entries({ compartments: [], 'one process': ['--single-process'] })) {
  for (const revision of ['2025-03-26', '2025-11-25']) {
    test(`no blocked message reaches a server over HTTP (${mode}, ${revision})`, async (t) => {
      const log = t.path('log');
      const gateway = await t.gateway(profile(log), { args });
      const client = await t.http(gateway, { revision });
      const send = (body) => client.exchange('POST', { body, headers: client.headers() });
      await attack(t, send, log, () => client.tool('s__open', { after: true }));
    }, { timeout: 120_000 });
  }
}

test('no blocked message reaches a server over stdio', async (t) => {
  const log = t.path('log');
  const client = await t.stdio(profile(log));
  const send = async (message) => client.child.stdin.write(`${message.replaceAll('\n', ' ')}\n`);
  await attack(t, send, log, () => client.tool('s__open', { after: true }));
}, { timeout: 120_000 });

test('no blocked message reaches a server after a policy reload', async (t) => {
  const log = t.path('log');
  const whole = profile(log);
  const gateway = await t.gateway(whole.slice(0, whole.indexOf('[security')));
  const client = await t.http(gateway);
  assert.deepEqual((await client.tool('s__forbidden', {})).isError ?? false, false);
  writeFileSync(gateway.config, whole);
  execFileSync(program, ['reload'], { env: gateway.env(), cwd: gateway.dir });
  const before = received(log).length;
  const send = (body) => client.exchange('POST', { body, headers: client.headers() });
  for (const message of attempts(counter())) await send(message);
  await client.tool('s__open', { after: true });
  const harmful = received(log).slice(before).map((line) => [harm(line), line]).filter(([what]) => what);
  assert.deepEqual(harmful, []);
}, { timeout: 120_000 });

test('no spelling of a blocked result reaches the client', async (t) => {
  const secret = 'TOPSECRET';
  const hex = [...secret].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const bodies = {
    plain: `{"content":[{"type":"text","text":"${secret}"}]}`,
    escaped: `{"content":[{"type":"text","text":"${hex}"}]}`,
    structured: `{"content":[],"structuredContent":{"a":{"b":["${hex}"]}}}`,
    twice: `{"content":[{"type":"text","text":"x","text":"${secret}"}]}`,
    twiceTurned: `{"content":[{"type":"text","text":"${secret}","text":"x"}]}`,
    meta: `{"content":[],"_meta":{"k":"${secret}"}}`,
  };
  const log = t.path('log');
  const options = Object.entries(bodies).flatMap(([name, body]) => ['--tool', name, '--result', `${name}=${body}`]);
  const gateway = await t.gateway(profile(log, options));
  const client = await t.http(gateway);
  for (const name of Object.keys(bodies)) {
    const said = await client.send(client.message('tools/call', { name: `s__${name}`, arguments: {} }, 1), 1).then((a) => a.raw, (e) => show(e));
    assert.ok(!said.includes(secret) && !said.includes(hex), `${name}: ${said.slice(0, 200)}`);
    assert.match(said, /blocked by policy|duplicate members/, `${name}: ${said.slice(0, 200)}`);
  }
  // A large message, in which the tool returns its arguments.
  const pad = 'x'.repeat(200_000);
  for (const args of [`{"pad":"${pad}","k":"${secret}"}`, `{"k":"${hex}","pad":"${pad}"}`]) {
    const said = await client.tool('s__open', args).then(JSON.stringify, show);
    assert.ok(!said.includes(secret) && !said.includes(hex), said.slice(0, 200));
    assert.match(said, /blocked by policy/);
  }
}, { timeout: 60_000 });

await run();

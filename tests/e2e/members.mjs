// Tests members that MCP does not define in the envelope, in params and in _meta. Members that
// rules and users cannot see must not be forwarded.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { frame, Guest } from './frames.mjs';
import { Gateway, assert, fake, member, path, run, runProgram, test, until } from './lib.mjs';
import { Records } from './records.mjs';
import { statusOf } from './status.mjs';

const secret = 'sk-hidden-0123456789';
const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};
const lines = (log, mark) => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith(mark)).map((line) => line.slice(2)) : []);
const got = (log, method) => lines(log, '< ').filter((line) => member(line, 'method') === JSON.stringify(method));
const dropped = async (gateway) => (await statusOf(gateway)).counters.dropped_members;
const keys = (text) => Object.keys(JSON.parse(text)).sort();
// Sends a request with additional members next to params. Its ID is the client's next ID.
function send(client, method, params, beside = '', options = {}) {
  const id = client.nextId++;
  const body = client.message(method, params, id).replace(/}$/, `${beside}}`);
  return client.send(body, id, options);
}
const beside = `,"secret":"${secret}","result_":{"text":"${secret}"},"\\u0065xtra":["${secret}"]`;

both('members beside params reach no server, for any method', async (t, args) => {
  const log = t.path('log');
  const server = fake('--tool', 'a', '--resource', 'file:///r', '--prompt', 'p', '--log', log);
  const gateway = await t.gateway({ mcpServers: { up: server } }, { args });
  const client = await t.http(gateway);
  const [{ uri }] = await client.all('resources/list', 'resources');
  assert.equal(await dropped(gateway), 0);
  const requests = [
    ['tools/call', { name: 'up__a', arguments: { n: 1 }, _meta: { k: 1 } }],
    ['resources/read', { uri }],
    ['resources/subscribe', { uri }],
    ['resources/unsubscribe', { uri }],
    ['prompts/get', { name: 'up__p' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'up__p' }, argument: { name: 'x', value: 'y' } }],
  ];
  for (const [method, params] of requests) {
    const { raw } = await send(client, method, params, beside);
    assert.ok(member(raw, 'result'), raw);
    const arrived = got(log, method);
    assert.equal(arrived.length, 1, method);
    assert.deepEqual(keys(arrived[0]), ['id', 'jsonrpc', 'method', 'params']);
  }
  assert.ok(!readFileSync(log, 'utf8').includes(secret));
  assert.equal(await dropped(gateway), 3 * requests.length);
  // Members in params are forwarded byte for byte.
  await send(client, 'tools/call', '{ "name":"up__a", "arguments":{"n" : 1e400} }', beside);
  assert.equal(member(member(got(log, 'tools/call')[1], 'params'), 'arguments'), '{"n" : 1e400}');
});

both('members beside params are also dropped from batches, notifications and client responses', async (t, args) => {
  const log = t.path('log');
  const ask = '{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}';
  const server = fake('--tool', 'a', '--tool', 'ask', '--ask', `ask=${ask}`, '--tool', 'slow', '--delay', 'slow=60000', '--log', log);
  const gateway = await t.gateway({ mcpServers: { up: server } }, { args });

  const old = await t.http(gateway, { revision: '2025-03-26' });
  const call = `{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"up__a"}${beside}}`;
  const answer = await old.exchange('POST', { body: `[${call}]`, headers: old.headers() });
  assert.ok(answer.body.includes('fake/a'), answer.body);
  assert.deepEqual(keys(got(log, 'tools/call')[0]), ['id', 'jsonrpc', 'method', 'params']);

  const client = await t.http(gateway, { capabilities: { elicitation: {} } });
  client.reply = (text) => client.post(text.replace(/}$/, `${beside},"params":{"secret":"${secret}"}}`));
  client.options.onAsk = () => '{"action":"accept","content":{}}';
  await client.tool('up__ask');
  const [said] = lines(log, '< ').filter((line) => member(line, 'id')?.startsWith('"ask-'));
  assert.deepEqual(keys(said), ['id', 'jsonrpc', 'result']);

  const cancelled = new AbortController();
  const waits = client.request('tools/call', { name: 'up__slow' }, { id: 'slow', signal: cancelled.signal }).catch(() => {});
  await until('the call runs', () => got(log, 'tools/call').some((line) => line.includes('"slow"')));
  await client.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow","reason":"late","cmd":"${secret}"}${beside}}`);
  await until('the server is notified', () => got(log, 'notifications/cancelled').length === 1);
  assert.deepEqual(keys(got(log, 'notifications/cancelled')[0]), ['jsonrpc', 'method', 'params']);
  assert.deepEqual(keys(member(got(log, 'notifications/cancelled')[0], 'params')), ['reason', 'requestId']);
  cancelled.abort();
  await waits;
  assert.ok(!readFileSync(log, 'utf8').includes(secret));
  assert.equal(await dropped(gateway), 3 + 4 + 3);
});

both('members that servers add beside results, errors, requests and notifications reach no client', async (t, args) => {
  const more = `,"secret":"${secret}","params":{"text":"${secret}"}`;
  const ask = `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}},"secret":"${secret}"}`;
  const note = `{"jsonrpc":"2.0","method":"notifications/custom","params":{"n":1},"secret":"${secret}"}`;
  const server = fake('--tool', 'a', '--result', `a={"content":[]}${more}`, '--tool', 'bad', '--error', `bad={"code":-32042,"message":"no"}${more}`,
    '--tool', 'ask', '--ask', `ask=${ask}`, '--tool', 'note', '--notify', `note=${note}`);
  const mask = { on: 'mcp.response', if: 'true', decision: 'rewrite', rewrite_target: 'response.text =~ "sk-[a-z0-9-]+"', rewrite_value: '***' };
  const gateway = await t.gateway({ mcpServers: { up: server }, security: { rules: { mcp: { mask } } } }, { args });
  const client = await t.http(gateway, { capabilities: { elicitation: {} } });
  client.options.onAsk = () => '{"action":"decline"}';
  const seen = [];
  const { raw } = await client.request('tools/call', { name: 'up__a' }, { onEvent: ({ data }) => seen.push(data) });
  assert.deepEqual(keys(raw), ['id', 'jsonrpc', 'result']);
  const body = client.message('tools/call', { name: 'up__bad' }, 'bad');
  const failed = (await client.exchange('POST', { body, headers: client.headers() })).body;
  const error = failed.startsWith('{') ? failed : /data: (\{.*)/.exec(failed)[1];
  assert.deepEqual(keys(error), ['error', 'id', 'jsonrpc']);
  await client.request('tools/call', { name: 'up__ask' }, { onEvent: ({ data }) => seen.push(data) });
  assert.deepEqual(keys(client.asks[0].raw), ['id', 'jsonrpc', 'method', 'params']);
  await client.request('tools/call', { name: 'up__note' }, { onEvent: ({ data }) => seen.push(data) });
  const { raw: noted } = await client.note('notifications/custom');
  assert.deepEqual(keys(noted), ['jsonrpc', 'method', 'params']);
  assert.ok(![raw, error, ...seen].join('\n').includes(secret));
  assert.equal(await dropped(gateway), 2 + 2 + 1 + 1);
});

// Clients of each kind. call(name, id, extra) makes a call with these additional members in its
// envelope, and resolves with all messages received for it, the answer first.
const guestsAt = (socket) => ({ transports: { http: { plugin: 'transport-http', listen: '127.0.0.1:0' }, guests: { plugin: 'transport-vsock', listen: `unix:${socket}` } } });
const rpc = (client) => async (name, id, extra) => {
  const raw = [];
  const params = { name, arguments: { n: 1 } };
  const body = client.message('tools/call', params, id).replace(/}$/, `${extra}}`);
  const answer = await client.send(body, id, { onEvent: ({ data }) => raw.push(data) }).catch((error) => error);
  return [answer.raw, ...raw];
};
const kinds = {
  http: async (t, profile, args) => {
    const gateway = await t.gateway(profile, { args });
    const client = await t.http(gateway, { capabilities: { elicitation: {} } });
    return { client, call: rpc(client), gateway };
  },
  stdio: async (t, profile, args) => {
    const gateway = new Gateway(t.dir, profile, { args });
    const [command, words, place] = gateway.stdioCommand();
    const client = await t.spawn(command, words, { ...place, capabilities: { elicitation: {} } });
    return { client, call: rpc(client), gateway: { env: () => gateway.env(), pid: client.child.pid } };
  },
  frames: async (t, profile, args) => {
    mkdirSync(t.path('sockets')); // servers cannot write to the folder of a socket
    const socket = t.path('sockets/guest.sock');
    const gateway = await t.gateway({ ...profile, ...guestsAt(socket) }, { args, listen: null });
    const guest = new Guest(t, socket);
    const call = async (name, id, extra) => {
      const stream = ++guest.stream;
      guest.socket.write(frame(stream, `{"jsonrpc":"2.0","id":"${id}","method":"tools/call","params":{"name":"${name}","arguments":{"n":1}}${extra}}`));
      return [(await until('an answer', () => guest.frames.find((one) => one.stream === stream))).payload];
    };
    return { call, gateway };
  },
};
for (const [kind, begin] of Object.entries(kinds)) {
  both(`members beside params and results pass neither way: ${kind} clients and each type of server`, async (t, args) => {
    const log = t.path('log');
    const more = `,"secret":"${secret}","params":{"text":"${secret}"}`;
    const beyond = `,"secret":"${secret}","extra":{"text":"${secret}"}`;
    const web = await t.fakeHttp({ beside: beyond });
    const old = await t.fakeHttp({ beside: beyond, streamable: false });
    const up = fake('--tool', 'echo', '--result', `echo={"content":[]}${more}`, '--tool', 'bad', '--error', `bad={"code":-32042,"message":"no"}${more}`, '--log', log);
    const { client, call, gateway } = await begin(t, { mcpServers: { up, web: { url: web.url }, old: { type: 'sse', url: old.sseUrl } } }, args);
    await until('all servers are ready', async () => (await statusOf(gateway)).servers.every(({ state }) => state === 'ready'));
    const received = {
      up: () => got(log, 'tools/call'),
      web: () => web.messages('tools/call').map(({ raw }) => raw),
      old: () => old.messages('tools/call').map(({ raw }) => raw),
    };
    let before = await dropped(gateway);
    const drops = async (count, what) => {
      const now = await dropped(gateway);
      assert.equal(now - before, count, what);
      before = now;
    };
    const calls = [['up__echo', 'result'], ['up__bad', 'error'], ['web__echo', 'result'], ['web__echo_sse', 'result'], ['old__echo', 'result']];
    for (const [i, [name, outcome]] of calls.entries()) {
      const answers = await call(name, `call-${i}`, beside);
      assert.deepEqual(keys(answers[0]), [outcome, 'id', 'jsonrpc'].sort(), name);
      assert.ok(!answers.join('\n').includes(secret), name);
      const arrived = received[name.split('__')[0]]().at(-1);
      assert.equal(path(arrived, 'params', 'name'), JSON.stringify(name.split('__')[1]), name);
      assert.deepEqual(keys(arrived), ['id', 'jsonrpc', 'method', 'params'], name);
      assert.ok(!arrived.includes(secret), name);
      await drops(3 + 2, name);
    }
    if (kind === 'frames') return; // a guest without capabilities is asked nothing
    // Requests and notifications of an HTTP server.
    client.options.onAsk = () => '{"action":"decline"}';
    const { raw: asked } = await client.request('tools/call', { name: 'web__ask', arguments: { params: { message: '?', requestedSchema: { type: 'object', properties: {} } } } });
    assert.deepEqual(keys(asked), ['id', 'jsonrpc', 'result']);
    assert.deepEqual(keys(client.asks[0].raw), ['id', 'jsonrpc', 'method', 'params']);
    assert.ok(!client.asks[0].raw.includes(secret));
    await client.request('tools/call', { name: 'web__progress', arguments: {}, _meta: { progressToken: 'p' } });
    const { raw: noted } = await client.note('notifications/progress');
    assert.deepEqual(keys(noted), ['jsonrpc', 'method', 'params']);
    assert.ok(!noted.includes(secret));
    await drops(2 + 3 * 2 + 2, 'the request, three notifications and an answer');
  });
}

both('a progress token is a string or an integer, else -32602', async (t, args) => {
  const log = t.path('log');
  const ask = `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}},"_meta":{"progressToken":{"x":1}}}}`;
  const server = fake('--tool', 'a', '--resource', 'file:///r', '--prompt', 'p', '--tool', 'ask', '--ask', `ask=${ask}`, '--log', log);
  const gateway = await t.gateway({ mcpServers: { up: server } }, { args });
  const client = await t.http(gateway, { capabilities: { elicitation: {} } });
  const [{ uri }] = await client.all('resources/list', 'resources');
  const requests = {
    'tools/call': '"name":"up__a"', 'resources/read': `"uri":"${uri}"`, 'resources/subscribe': `"uri":"${uri}"`, 'resources/unsubscribe': `"uri":"${uri}"`,
    'prompts/get': '"name":"up__p"', 'completion/complete': '"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"x","value":"y"}',
    'tools/list': '"cursor":"c"', ping: '"x":1',
  };
  for (const [method, params] of Object.entries(requests)) {
    for (const token of [`{"cmd":"${secret}"}`, `["${secret}"]`, 'null', 'true', '1.5', '1e2', `"${'x'.repeat(257)}"`]) {
      const failed = client.request(method, `{${params},"_meta":{"progressToken":${token}}}`);
      await assert.rejects(failed, { code: -32602, message: /progressToken must be a string or an integer of at most 256 bytes/, status: 200 }, `${method} ${token}`);
    }
    assert.equal(got(log, method).filter((line) => line.includes('progressToken')).length, 0, method);
  }
  for (const token of ['"t"', '7', '-7', `"${'x'.repeat(256)}"`]) {
    assert.ok((await client.call('tools/call', `{"name":"up__a","_meta":{"progressToken":${token}}}`)).content);
  }
  await client.post(client.message('notifications/initialized', '{"_meta":{"progressToken":{}}}'));
  // The server receives the same error, and no client receives its request.
  assert.equal((await client.tool('up__ask')).asked.error.code, -32602);
  assert.equal(client.asks.length, 0);
});

both('invalid traces are dropped from _meta', async (t, args) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { up: fake('--tool', 'a', '--log', log) } }, { args });
  const client = await t.http(gateway);
  const metaOf = async (meta) => {
    await client.call('tools/call', `{"name":"up__a","arguments":{},"_meta":${meta}}`);
    return member(member(got(log, 'tools/call').at(-1), 'params'), '_meta');
  };
  const good = '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1, b=2","baggage":"user=A%20B;p=1","k":1e400}';
  assert.equal(await metaOf(good), good);
  assert.equal(await dropped(gateway), 0);
  const bad = `{"k":1e400,"traceparent":{"cmd":"${secret}"},"tracestate":"run ${secret}","baggage":["${secret}"]}`;
  assert.equal(await metaOf(bad), '{"k":1e400}');
  assert.equal(await metaOf('{"baggage":"no pair"}'), '{}');
  assert.equal(await dropped(gateway), 4);
  assert.ok(!readFileSync(log, 'utf8').includes(secret));
});

// ---- members of params -----------------------------------------------------------------------

const everyMethod = (log) => fake('--tool', 'a', '--tool', 'b', '--resource', 'file:///r', '--prompt', 'p', '--log', log);
// Returns requests that are forwarded to a server, with these additional members in params.
const requestsWith = (uri, more) => ({
  'tools/call': `{"name":"up__a","arguments":{"n":1}${more}}`,
  'resources/read': `{"uri":"${uri}"${more}}`,
  'resources/subscribe': `{"uri":"${uri}"${more}}`,
  'resources/unsubscribe': `{"uri":"${uri}"${more}}`,
  'prompts/get': `{"name":"up__p"${more}}`,
  'completion/complete': `{"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"x","value":"y"}${more}}`,
});
const uriOf = async (client) => (await client.all('resources/list', 'resources'))[0].uri;
const rules = (mcp) => ({ security: { rules: { mcp } } });
function service(socket, method, where, body) {
  return new Promise((done, failed) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const req = request({ socketPath: socket, method, path: where, headers: { 'Content-Length': Buffer.byteLength(text) } }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done({ status: res.statusCode, ...JSON.parse(data) }));
    });
    req.on('error', failed);
    req.end(text);
  });
}
both('unknown members of params are forwarded unless a rule decides otherwise', async (t, args) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { up: everyMethod(log) } }, { args });
  const client = await t.http(gateway);
  for (const [method, params] of Object.entries(requestsWith(await uriOf(client), ',"later" : [1e400]'))) {
    await client.request(method, params);
    // No rule evaluates an unsubscribe request, so it carries only the URI.
    assert.equal(path(got(log, method)[0], 'params', 'later'), method === 'resources/unsubscribe' ? undefined : '[1e400]', method);
  }
  assert.equal(await dropped(gateway), 0);
});

both('rules see unknown members, task and other members of ref as mcp.request.extra', async (t, args) => {
  const log = t.path('log');
  const blocked = { on: 'mcp.request', decision: 'block', reason: 'no extras',
    if: 'has(mcp.request.extra.cmd) || has(mcp.request.extra.task) || has(mcp.request.extra.ref)' };
  const gateway = await t.gateway({ mcpServers: { up: everyMethod(log) }, ...rules({ blocked }) }, { args });
  const client = await t.http(gateway);
  const uri = await uriOf(client);
  for (const [method, params] of Object.entries(requestsWith(uri, `,"cmd":"${secret}"`))) {
    if (method === 'resources/unsubscribe') continue; // always allowed; see docs/policy.md
    await assert.rejects(client.request(method, params), { code: -32600, message: /blocked by policy \(.*blocked\): no extras/ }, method);
    assert.equal(got(log, method).length, 0, method);
  }
  for (const [method, params] of Object.entries(requestsWith(uri, ',"\\u0063md":1'))) {
    if (method !== 'resources/unsubscribe') await assert.rejects(client.request(method, params), { code: -32600 }, method);
  }
  await assert.rejects(client.request('tools/call', '{"name":"up__a","task":{"ttl":1}}'), { code: -32600 });
  const ref = '{"type":"ref/prompt","name":"up__p","uri":"file:///etc/passwd"}';
  await assert.rejects(client.request('completion/complete', `{"ref":${ref},"argument":{"name":"x","value":"y"}}`), { code: -32600 });
  await assert.rejects(client.request('tools/call', '{"name":"up__a","x":{"k":1,"k":2}}'), { message: /duplicate members/ });
  for (const [method, params] of Object.entries(requestsWith(uri, ''))) await client.request(method, params);
  await client.request('tools/call', '{"name":"up__a","other":1}');
});

both('rules see the completed argument', async (t, args) => {
  const log = t.path('log');
  const etc = { on: 'mcp.request', decision: 'block', if: "mcp.completion.argument != {} && mcp.completion.argument.value.startsWith('/etc/')" };
  const host = { on: 'mcp.request', decision: 'block', if: "has(mcp.completion.context.arguments) && mcp.completion.context.arguments.host == 'db'" };
  const gateway = await t.gateway({ mcpServers: { up: everyMethod(log) }, ...rules({ etc, host }) }, { args });
  const client = await t.http(gateway);
  const complete = (value, context = '') =>
    client.request('completion/complete', `{"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"path","value":${value}}${context}}`);
  await assert.rejects(complete('"/etc/pa"'), { message: /blocked by policy \(.*etc\)/ });
  await assert.rejects(complete('"\\u002fetc/pa"'), { message: /blocked by policy \(.*etc\)/ });
  await assert.rejects(complete('"/home"', ',"context":{"arguments":{"host":"db"}}'), { message: /blocked by policy \(.*host\)/ });
  await assert.rejects(complete('"a","value":"/etc/"'), { message: /duplicate members/ });
  assert.equal(got(log, 'completion/complete').length, 0);
  assert.deepEqual((await complete('"/home"', ',"context":{"arguments":{"host":"web"}}')).result.completion.values, ['/home']);
  assert.ok((await client.tool('up__a')).content);
});

both('unknown_params drops or rejects, and a reload changes it', async (t, args) => {
  const log = t.path('log');
  const profile = (unknown_params) => ({ mcpServers: { up: everyMethod(log) }, gateway: { unknown_params } });
  const gateway = await t.gateway(profile('drop'), { args });
  const client = await t.http(gateway);
  const uri = await uriOf(client);
  const requests = Object.entries(requestsWith(uri, `,"cmd" : "${secret}","level":"info"`));
  for (const [method, params] of requests) {
    await client.request(method, params);
    const [arrived] = got(log, method);
    assert.deepEqual(keys(member(arrived, 'params')), keys(requestsWith(uri, '')[method]), method);
  }
  assert.equal(await dropped(gateway), 2 * requests.length);
  // The server does not declare tasks, so it does not receive the member, which counts as known.
  await client.request('tools/call', '{"name":"up__b","task":{"ttl":1},"arguments":{"n" : 1e400}}');
  const params = member(got(log, 'tools/call')[1], 'params');
  assert.deepEqual(keys(params), ['arguments', 'name']);
  assert.equal(member(params, 'arguments'), '{"n" : 1e400}');
  assert.equal(await dropped(gateway), 2 * requests.length);
  assert.ok(!readFileSync(log, 'utf8').includes(secret));

  writeFileSync(gateway.config, JSON.stringify(profile('refuse')));
  const { socket } = await statusOf(gateway);
  const reloaded = await service(socket, 'POST', '/reload-config');
  assert.equal(reloaded.status, 200);
  assert.deepEqual(reloaded.settings, ['gateway.unknown_params']);
  for (const [method, params] of requests) {
    const before = got(log, method).length;
    await assert.rejects(client.request(method, params), { code: -32602, message: `-32602 ${method} does not accept these params: "cmd", "level" (gateway.unknown_params = "refuse")` });
    assert.equal(got(log, method).length, before, method);
  }
  for (const [method, params] of Object.entries(requestsWith(uri, ',"_meta":{"x":1}'))) await client.request(method, params);
  await client.request('tools/call', '{"name":"up__b","task":{"ttl":1}}');
  assert.ok((await client.request('tools/list', '{"later":1}')).result.tools, 'the gateway itself answers this');
});

test('an invalid value of unknown_params is rejected', (t) => {
  const done = runProgram(t, ['serve', '--config', '{config}', '--listen', '127.0.0.1:0'], { profile: { mcpServers: {}, gateway: { unknown_params: 'ignore' } } });
  assert.equal(done.code, 1);
  assert.match(done.stderr, /gateway\.unknown_params: .*forward.*drop.*refuse/);
});

both('an approval covers and shows the other members of params', async (t, args) => {
  const log = t.path('log');
  const ask = { on: 'mcp.request', decision: 'ask', if: 'true' };
  const gateway = await t.gateway({ mcpServers: { up: everyMethod(log) }, approval: { api: true }, ...rules({ ask }) }, { args });
  const client = await t.http(gateway);
  const { socket } = await statusOf(gateway);
  const start = (more) => client.request('tools/call', `{"name":"up__a","arguments":{"n":1}${more}}`);
  const question = () => until('a question waits', async () => (await service(socket, 'GET', '/confirm/pending')).pending[0]);
  const allowed = async (more) => {
    const call = start(more);
    const asked = await question();
    await service(socket, 'POST', `/confirm/${asked.id}`, { decision: 'allow', scope: 'session' });
    await call;
    return asked;
  };
  const plain = await allowed('');
  assert.equal(plain.extra, '');
  await start('');
  const extra = await allowed(',"task":{"ttl":1},"token":"hunter2","cmd":"rm"');
  assert.deepEqual(JSON.parse(extra.extra), { task: { ttl: 1 }, token: '***', cmd: 'rm' });
  await start(',"task":{"ttl":1},"token":"hunter2","cmd":"rm"');
  const digests = [plain.digest, extra.digest];
  for (const more of [',"task":{"ttl":2}', ',"task":{"ttl":1},"token":"hunter2","cmd":"rm -rf"', ',"x":1', ',"y":1']) {
    digests.push((await allowed(more)).digest);
  }
  assert.equal(new Set(digests).size, digests.length);
});

both('unknown members are recorded, except for rejected calls; replay evaluates them', async (t, args) => {
  const blocked = (cmd) => ({ on: 'mcp.request', decision: 'block', if: `has(mcp.request.extra.${cmd}) || has(mcp.completion.argument.value)` });
  const profile = (cmd) => ({
    mcpServers: { up: everyMethod(t.path('log')) }, telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } }, ...rules({ blocked: blocked(cmd) }),
  });
  const gateway = await t.gateway(profile('cmd'), { args });
  const client = await t.http(gateway);
  await client.request('tools/call', '{"name":"up__a","arguments":{},"later":{"k":1}}');
  const cmd = `{"name":"up__b","arguments":{},"cmd":"${secret}"}`;
  await assert.rejects(client.request('tools/call', cmd), { code: -32600 });
  const completes = `{"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"x","value":"${secret}"}}`;
  await assert.rejects(client.request('completion/complete', completes), { code: -32600 });
  const records = new Records(gateway);
  const rows = () => records.rows("SELECT request_preview FROM mcp_calls WHERE method IN ('tools/call', 'completion/complete') ORDER BY id");
  await until('all are recorded', async () => (await rows()).length === 3);
  const redacted = '{"arguments":{"redacted_by_policy":true}}';
  assert.deepEqual(await rows(), [['{"name":"up__a","arguments":{},"later":{"k":1}}'], [redacted], [redacted]]);
  writeFileSync(gateway.config, JSON.stringify(profile('later')));
  const { stdout } = await records.command('policy', 'replay', '--since', '1h', '--json');
  assert.deepEqual(JSON.parse(stdout).changed.map(({ then, now }) => [then, now]), [['allow', 'block']], stdout);
});

// ---- URIs --------------------------------------------------------------------------------------

both('rules compare the normalized URI, and the server receives the original URI', async (t, args) => {
  const log = t.path('log');
  const etc = { on: 'mcp.request', decision: 'block', if: "mcp.request.uri_normalized.startsWith('file:///etc/')" };
  const server = fake('--resource', 'file:///srv/a', '--template', 'file:///{path}', '--log', log);
  const gateway = await t.gateway({ mcpServers: { up: server }, naming: { prefix: 'never' }, ...rules({ etc }) }, { args });
  const client = await t.http(gateway);
  await uriOf(client);
  const read = (uri) => client.call('resources/read', { uri });
  for (const uri of ['file:///etc/passwd', 'FILE:///etc/passwd', 'file:///srv/../etc/passwd', 'file:///%65tc/passwd', 'file:///x/%2e%2E/etc/a', 'file:///./etc/', 'file:/etc/passwd', 'file:\\\\\\etc\\passwd', 'file:///e\ttc/passwd', ' file:///etc/passwd', 'file:////etc/passwd', 'file://localhost/etc/passwd', 'file://user@/etc/passwd']) {
    for (const method of ['resources/read', 'resources/subscribe']) {
      await assert.rejects(client.call(method, { uri }), { code: -32600, message: /blocked by policy \(.*etc\)/ }, `${method} ${uri}`);
    }
  }
  assert.equal(got(log, 'resources/read').length, 0);
  await read('file:///srv/%61');
  assert.equal(path(got(log, 'resources/read')[0], 'params', 'uri'), '"file:///srv/%61"');
});

both('budgets count all params of a request', async (t, args) => {
  const log = t.path('log');
  const budget = (server, over) => ({ on: 'mcp.request', decision: 'block', if: `mcp.request.server_name == '${server}'`, over });
  const server = fake('--tool', 'a', '--resource', 'https://one.example/r', '--template', 'https://{+rest}', '--log', log);
  const profile = { mcpServers: { hosts: server, bytes: server }, ...rules({ hosts: budget('hosts', { destinations: 1 }), bytes: budget('bytes', { bytes: 2000 }) }) };
  const gateway = await t.gateway(profile, { args });
  const far = 'https://far.example/';
  const filler = 'x'.repeat(1900);
  const attacks = (text) => [{ _meta: { note: text } }, { later: text }, { arguments: { [text]: 1 } }];
  for (const [name, text] of [['hosts', far], ['bytes', filler]]) {
    for (const attack of attacks(text)) {
      const client = await t.http(gateway);
      const call = (params) => client.call('tools/call', { name: `${name}__a`, arguments: { url: 'https://one.example/', more: name === 'bytes' ? 'x'.repeat(200) : '' }, ...params });
      await call({});
      await assert.rejects(call(attack), { code: -32600, message: /blocked by policy/ }, JSON.stringify(attack).slice(0, 80));
    }
  }
  assert.ok(!readFileSync(log, 'utf8').includes(far));
});

test('policy check warns about rules that compare a raw uri', (t) => {
  const rule = (condition) => ({ on: 'mcp.request', decision: 'block', if: condition });
  const raw = rule("mcp.request.uri.startsWith('file:///etc/')");
  const both = rule("mcp.request.uri == 'a:b' || mcp.request.uri_normalized == 'a:b'");
  const done = runProgram(t, ['policy', 'check', '{config}'], { profile: { mcpServers: {}, ...rules({ raw, both, tool: rule("mcp.request.tool_name == 'x'") }) } });
  assert.equal(done.code, 0, done.stderr);
  const warnings = done.stdout.split('\n').filter((line) => line.startsWith('warning: '));
  assert.equal(warnings.length, 1, done.stdout);
  assert.match(warnings[0], /gateway\.json:\d+: rule security\.rules\.mcp\.raw compares mcp\.request\.uri, .*mcp\.request\.uri_normalized/);
});

await run();

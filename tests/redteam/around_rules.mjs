// Attempts to bypass rules with members that are not evaluated, with requests whose evaluation is
// delayed, and with calls that differ from approved calls.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { assert, fake, program, run, show, sleep, test, until } from '../e2e/lib.mjs';
import { statusOf } from '../e2e/status.mjs';

const quoted = (text) => JSON.stringify(String(text));
const server = (...options) => {
  const { command, args } = fake(...options);
  return `[mcpServers.s]\ncommand = ${quoted(command)}\nargs = [${args.map(quoted).join(', ')}]\n`;
};
const rule = (name, on, condition, more = 'decision = "block"') => `[security.rules.mcp.${name}]\non = "${on}"\nif = '''${condition}'''\n${more}\n`;
const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args, ''), { timeout: 60_000 });
};
// The same, and with the policy in its own compartment.
const ownPolicy = '[policies.default]\nplugin = "policy-rules"\ncompartment = "own"\n';
const everywhere = (name, fn) => {
  both(name, fn);
  test(`${name} (own policy compartment)`, async (t) => {
    const names = async (gateway) => (await statusOf(gateway)).compartments.map((one) => one.name);
    const start = t.gateway.bind(t);
    t.gateway = async (...all) => {
      const gateway = await start(...all);
      assert.ok((await names(gateway)).includes('policy.default'), 'the policy has its own compartment');
      return gateway;
    };
    await fn(t, [], ownPolicy);
  }, { timeout: 60_000 });
};
const large = 'x'.repeat(200_000); // too large to be evaluated immediately

let lastId = 1000;
const message = (method, params, envelope = '') => `{"jsonrpc":"2.0","id":${++lastId},"method":${quoted(method)}${envelope},"params":${params}}`;
const post = (client, body) => client.exchange('POST', { body, headers: client.headers() });
// Returns the messages that the server has received, except the handshake and lists.
function received(log) {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('< '));
  return lines.filter((line) => !/"method":"(initialize|server\/discover|notifications\/initialized|[a-z]+\/([a-z]+\/)?list)"/.test(line));
}
const ready = (client) => until('the server is there', async () => (await client.toolNames()).length > 0);
function reload(gateway) {
  return new Promise((done) => {
    const child = spawn(program, ['reload'], { env: gateway.env(), cwd: gateway.dir });
    let out = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (out += data));
    child.on('close', (code) => done({ code, out }));
  });
}

const SECRET = 'TOPSECRET';
const noSecret = rule('no-secret', 'mcp.response', `mcp.response.text.contains("${SECRET}")`);
const leaks = (text) => text.replace(/\\u([0-9a-fA-F]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16))).includes(SECRET);

// mcp.response.text contains all texts of an error, but not the names of its members.
everywhere('no member of an error carries a blocked text', async (t, args, policy) => {
  const errors = {
    code: `{"code":"${SECRET}","message":"x"}`,
    code_object: `{"code":{"a":"${SECRET}"},"message":"x"}`,
    code_list: `{"code":["${SECRET}"],"message":"x"}`,
    code_alone: `{"code":"${SECRET}"}`,
    message: `{"code":1,"message":"${SECRET}"}`,
    message_name: `{"code":1,"m\\u0065ssage":"${SECRET}"}`,
    message_object: `{"code":1,"message":{"a":"${SECRET}"}}`,
    data_name: `{"code":1,"message":"x","d\\u0061ta":{"a":"${SECRET}"}}`,
    data_list: `{"code":1,"message":"x","data":["${SECRET}"]}`,
    other: `{"code":1,"message":"x","other":"${SECRET}"}`,
    no_name: `{"code":1,"message":"x","":"${SECRET}"}`,
    twice: `{"code":1,"message":"x","data":{"a":"x","a":"${SECRET}"}}`,
  };
  const gateway = await t.gateway(policy + server(...Object.entries(errors).flatMap(([name, error]) => ['--tool', name, '--error', `${name}=${error}`])) + noSecret, { args });
  const client = await t.http(gateway);
  await ready(client);
  const leaked = [];
  for (const name of Object.keys(errors)) {
    const { body } = await post(client, message('tools/call', `{"name":"s__${name}","arguments":{}}`));
    assert.match(body, /"error"/, name);
    if (leaks(body)) leaked.push(`${name}: ${body}`);
  }
  assert.deepEqual(leaked, []);
});

// MCP defines `arguments` only for tools and prompts. A client must not be able to satisfy a condition on
// arguments with a member of this name in another request.
everywhere('a member arguments in other requests is not what rules call arguments', async (t, args, policy) => {
  const log = t.path('log');
  const condition = '!(has(mcp.request.arguments.path) && mcp.request.arguments.path.startsWith("/safe/"))';
  const gateway = await t.gateway(policy + server('--tool', 'a', '--resource', 'file:///r', '--prompt', 'p', '--log', log) + rule('safe', 'mcp.request', condition), { args });
  const client = await t.http(gateway);
  await ready(client);
  const [{ uri }] = (await client.call('resources/list')).resources;
  const safe = '"arguments":{"path":"/safe/x"}';
  const refused = {
    'resources/read': `{"uri":"${uri}",${safe}}`,
    'resources/subscribe': `{"uri":"${uri}",${safe}}`,
    'completion/complete': `{"ref":{"type":"ref/prompt","name":"s__p"},"argument":{"name":"x","value":"y"},${safe}}`,
  };
  for (const [method, params] of Object.entries(refused)) {
    await assert.rejects(client.request(method, params), /safe/, method);
  }
  assert.deepEqual(received(log), []);
  await client.request('tools/call', `{"name":"s__a",${safe}}`);
  await client.request('prompts/get', `{"name":"s__p",${safe}}`);
  assert.equal(received(log).length, 2);
});

both('the error of a failed server contains no credentials of the profile', async (t, args) => {
  const credential = 'Zq7kkLm9pwXyZ00';
  const dying = (name, text) => {
    const { command, args: options } = fake('--tool', 'a', '--stderr', text, '--die', 'a');
    return `[mcpServers.${name}]\ncommand = ${quoted(command)}\nargs = [${options.map(quoted).join(', ')}]\nenv = { API_TOKEN = "${credential}" }\n`;
  };
  const refusing = createServer((req, res) => {
    let body = '';
    req.on('data', (data) => (body += data));
    req.on('end', () => {
      const id = /"id":([^,}]+)/.exec(body)?.[1];
      res.writeHead(id === undefined ? 405 : 200, { 'content-type': 'application/json' });
      res.end(id === undefined ? '' : `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"${SECRET} for ${req.headers.authorization}"}}`);
    });
  });
  await new Promise((done) => refusing.listen(0, '127.0.0.1', done));
  t.defer(() => {
    refusing.closeAllConnections();
    refusing.close();
  });
  const url = `http://127.0.0.1:${refusing.address().port}/mcp`;
  const gateway = await t.gateway(`${dying('s', `it was ${SECRET}`)}${dying('c', `with ${credential}`)}[mcpServers.r]\nurl = "${url}"\nheaders = { Authorization = "Bearer ${credential}" }\n${noSecret}`, { args });
  const client = await t.http(gateway);
  await until('both are there', async () => (await client.toolNames()).length === 2);
  const said = {};
  for (const name of ['s', 'c', 'r']) said[name] = (await post(client, message('tools/call', `{"name":"${name}__a","arguments":{}}`))).body;
  assert.ok(Object.values(said).every((body) => body.includes('"error"')), show(said));
  assert.deepEqual(Object.values(said).filter((body) => body.includes(credential)), []);
});

everywhere('a large result that a rule blocks never reaches the client, whatever happens during its evaluation', async (t, args, policy) => {
  const gateway = await t.gateway(policy + server('--tool', 'a') + noSecret, { args });
  const client = await t.http(gateway);
  await ready(client);
  const many = '0,'.repeat(70_000);
  for (const text of [
    `{"a":"${SECRET}","pad":"${large}"}`,
    `{"pad":"${large}","a":"TOP\\u0053ECRET"}`,
    `{"pad":"${large}","a":"x","a":"${SECRET}"}`,
    `{"pad":"${large}","in":{"a":"${SECRET}","a":"x"}}`,
    `{"pad":[${many}"${SECRET}"]}`,
  ]) {
    const { body } = await post(client, message('tools/call', `{"name":"s__a","arguments":${text}}`));
    assert.match(body, /blocked by policy|duplicate members/);
    assert.ok(!leaks(body), body.slice(0, 200));
  }
  const slow = `{"name":"s__a","arguments":{"a":"${SECRET}","pad":[${'0,'.repeat(300_000)}0]}}`;
  for (let i = 0; i < 8; ++i) {
    const other = await t.http(gateway);
    const answer = post(other, message('tools/call', slow)).catch((error) => ({ body: String(error) }));
    await sleep(5 * i);
    if (i % 2 === 0) await other.exchange('DELETE', { headers: other.headers() });
    else await post(other, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${lastId}}}`);
    assert.ok(!leaks((await answer).body), `after ${5 * i} ms`);
  }
  const batches = await t.http(gateway, { revision: '2025-03-26' });
  const { body } = await post(batches, `[${message('tools/call', slow)},${message('tools/call', `{"name":"s__a","arguments":{"a":"${SECRET}"}}`)}]`);
  assert.equal(JSON.parse(body).length, 2);
  assert.ok(!leaks(body));
  assert.equal((await client.tool('s__a', { after: 1 })).echo.after, 1);
});

everywhere('rules of a reload apply to large calls that are still being evaluated', async (t, args, policy) => {
  const log = t.path('log');
  const base = policy + server('--tool', 'a', '--log', log) + rule('reads', 'mcp.request', 'mcp.request.arguments_text.contains("never")');
  const gateway = await t.gateway(base, { args });
  const client = await t.http(gateway);
  await ready(client);
  writeFileSync(gateway.config, base + rule('none', 'mcp.request', 'mcp.request.tool_name == "a"'));
  const text = `{"pad":[${'0,'.repeat(1_500_000)}0]}`;
  const calls = Array.from({ length: 12 }, () => post(client, message('tools/call', `{"name":"s__a","arguments":${text}}`)));
  await sleep(20);
  const done = await reload(gateway);
  const before = received(log).length;
  assert.equal(done.code, 0, show(done));
  const answers = await Promise.all(calls);
  assert.ok(answers.some(({ body }) => body.includes('security.rules.mcp.none')) || before === 12, 'some were judged by it');
  // One or two calls may already have been sent to the server.
  assert.ok(received(log).length <= before + 2, `${received(log).length - before} calls ran after the reload`);
});

const BOOM = /BOOM/;
for (const revision of ['2025-03-26', '2025-11-25']) {
  test(`no member in or beside _meta reaches a server without evaluation (${revision})`, async (t) => {
    const log = t.path('log');
    const rules = rule('meta', 'mcp.request', 'has(mcp.request.meta.user) && mcp.request.meta.user == "BOOM"') + rule('extra', 'mcp.request', 'has(mcp.request.extra.evil)');
    const gateway = await t.gateway(server('--tool', 'a', '--prompt', 'p', '--resource', 'file:///open', '--log', log) + rules);
    const client = await t.http(gateway, { revision });
    await ready(client);
    const metas = [
      '{"user":"BOOM"}', '{"user":"x","user":"BOOM"}', '{"user":"BOOM","user":"x"}', '{"user":"x","\\u0075ser":"BOOM"}',
      `{"pad":"${large}","user":"BOOM"}`, `{"pad":"${large}","user":"x","user":"BOOM"}`, '{"traceparent":"bad","user":"BOOM"}',
      '{"progressToken":{"a":"BOOM"}}', '{"progressToken":[1,"BOOM"]}', '{"progressToken":null,"a":"BOOM"}', '{"progressToken":1.5,"a":"BOOM"}',
      '{"progressToken":true,"a":"BOOM"}', '{"progressToken":"a","progressToken":"BOOM"}', '{"progressToken":"a","progress\\u0054oken":"BOOM"}',
      '{"progressToken":"a","ProgressToken":"BOOM"}', `{"progressToken":"${'BOOM'.repeat(70)}"}`, '{"tracestate":"BOOM"}', '{"baggage":{"a":"BOOM"}}',
    ];
    const targets = {
      'tools/call': '"name":"s__a","arguments":{}',
      'prompts/get': '"name":"s__p"',
      'resources/read': '"uri":"file:///open"',
      'resources/subscribe': '"uri":"file:///open"',
      'completion/complete': '"ref":{"type":"ref/prompt","name":"s__p"},"argument":{"name":"a","value":"b"}',
    };
    for (const [method, params] of Object.entries(targets)) {
      const all = metas.map((meta) => `{${params},"_meta":${meta}}`);
      all.push(`{"_meta":{"user":"BOOM"},${params},"_meta":{}}`, `{${params},"_META":{"user":"BOOM"}}`, `{${params},"evil":"BOOM"}`, `{${params},"\\u0065vil":"BOOM"}`, `{${params},"_meta":["BOOM"]}`);
      for (const each of all) {
        await post(client, message(method, each, ',"beside":"BOOM"'));
        if (revision === '2025-03-26') await post(client, `[${message(method, each, ',"beside":"BOOM"')}]`);
      }
    }
    for (const method of ['notifications/cancelled', 'notifications/progress', 'notifications/other', 'tasks/get', 'logging/setLevel', 'roots/list']) {
      for (const params of ['{"requestId":1,"evil":"BOOM"}', '{"progressToken":1,"progress":1,"evil":"BOOM"}', '["BOOM"]']) {
        await post(client, `{"jsonrpc":"2.0","method":"${method}","params":${params}}`);
        await post(client, message(method, params));
      }
    }
    await client.tool('s__a', { after: true });
    assert.deepEqual(received(log).filter((line) => BOOM.test(line)).map((line) => line.slice(0, 300)), []);
    assert.ok(received(log).some((line) => line.includes('"after"')));
  }, { timeout: 60_000 });
}

test('client responses and notifications are evaluated completely', async (t) => {
  const log = t.path('log');
  const question = JSON.stringify({ method: 'elicitation/create', params: { message: 'name?', requestedSchema: { type: 'object', properties: {} } } });
  const note = `{"jsonrpc":"2.0","method":"notifications/${'q'.repeat(300)}${SECRET}","params":{}}`;
  const rules = rule('in', 'mcp.input_response', 'mcp.input.text.contains("BOOM")') + rule('note', 'mcp.notification', `mcp.request.method.contains("${SECRET}")`);
  const gateway = await t.gateway(server('--tool', 'a', '--tool', 'n', '--notify', `n=${note}`, '--ask', `a=${question}`, '--log', log) + rules);
  const accept = (content) => `{"action":"accept","content":${content}}`;
  const judged = [accept('{"a":"BOOM"}'), accept('{"a":"x","a":"BOOM"}'), accept(`{"p":"${large}","a":"BOOM"}`), accept(`{"p":"${large}","a":"x","a":"BOOM"}`), '{"action":"accept","_meta":{"a":"BOOM"}}'];
  const beside = [',"x":"BOOM"', ',"method":"BOOM"', ',"error":{"code":1,"message":"BOOM"}', ',"params":{"a":"BOOM"}', ',"Result":{"a":"BOOM"}'];
  for (const said of [...judged, ...beside.map((more) => accept('{}') + more)]) {
    const client = await t.http(gateway, { capabilities: { elicitation: {} }, onAsk: () => said });
    await Promise.race([client.tool('s__a', {}).catch(() => {}), sleep(300)]);
  }
  assert.deepEqual(received(log).filter((line) => BOOM.test(line)).map((line) => line.slice(0, 300)), []);
  const client = await t.http(gateway);
  await client.tool('s__n', {});
  assert.deepEqual(client.notes.map((one) => one.raw).filter(leaks), []);
}, { timeout: 60_000 });

function ask(socket, method, path, body) {
  return new Promise((done, failed) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const req = request({ socketPath: socket, method, path, headers: { 'Content-Length': Buffer.byteLength(text) } }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done(JSON.parse(data)));
    });
    req.on('error', failed);
    req.end(text);
  });
}
const pending = async (socket) => (await ask(socket, 'GET', '/confirm/pending')).pending;

everywhere('a call that differs in any part from an approved call requires approval', async (t, args, policy) => {
  const log = t.path('log');
  const gateway = await t.gateway(`${policy}${server('--tool', 'a', '--log', log)}[approval]\napi = true\n${rule('asks', 'mcp.request', 'true', 'decision = "ask"')}`, { args });
  const client = await t.http(gateway);
  const { socket } = await statusOf(gateway);
  await ready(client);
  const call = (text) => post(client, message('tools/call', text));
  const base = '"name":"s__a","arguments":{"x":1}';
  const approved = `{${base},"_meta":{"k":"v"},"extra":1}`;
  const first = call(approved);
  const [question] = await until('it is asked about', async () => (await pending(socket)).length && pending(socket));
  await ask(socket, 'POST', `/confirm/${question.id}`, { decision: 'allow', scope: 'session' });
  assert.match((await first).body, /"result"/);
  assert.match((await call(approved)).body, /"result"/);
  assert.match((await call(`{${base},"_meta":{"progressToken":7,"k":"v"},"extra":1}`)).body, /"result"/);
  const before = received(log).length;
  for (const other of [
    `{${base},"_meta":{"k":"v"},"extra":2}`, `{${base},"_meta":{"k":"v"},"extra":1,"more":2}`, `{${base},"_meta":{"k":"w"},"extra":1}`,
    `{${base},"_meta":{"k":"v","Baggage":"a=b"},"extra":1}`, `{${base},"_meta":{"k":"v","k":"w"},"extra":1}`,
    ...['"task":{"ttl":1}', '"uri":"file:///x"', '"cursor":"c"', '"ref":{"type":"x"}', '"level":"debug"', '"progressToken":{"a":1}'].map((more) => `{${base},"_meta":{"k":"v"},"extra":1,${more}}`),
  ]) {
    const answer = call(other);
    const [asked] = await until(`asked about: ${other}`, async () => (await pending(socket)).length && pending(socket));
    await ask(socket, 'POST', `/confirm/${asked.id}`, { decision: 'deny' });
    assert.match((await answer).body, /denied/);
  }
  assert.equal(received(log).length, before);
});

await run();

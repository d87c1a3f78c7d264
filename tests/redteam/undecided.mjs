// Attacks: requests that no rule evaluates must carry nothing but an id or a URI that the server knows,
// and what was evaluated by earlier rules must not be delivered under new ones.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { assert, fake, node, run, runProgram, show, test, until } from '../e2e/lib.mjs';
import { ANSWERS, FORM, answering, asked, call } from '../e2e/parked_client.mjs';
import { PREFIX, httpOf, lines } from '../e2e/stateless_client.mjs';

const taskServer = fileURLToPath(new URL('../fixtures/task_server.mjs', import.meta.url));
const received = (log) => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter((line) => line.startsWith('< ')) : []);
const smuggled = { evil: { cmd: 'SMUGGLED' }, arguments: { path: 'SMUGGLED' }, _meta: { user: 'SMUGGLED' } };
const outcome = (promise) => promise.then((result) => ({ result }), (error) => ({ error }));

test('resources/unsubscribe carries only the URI of a resource that the client watches', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({
    mcpServers: { s: fake('--tool', 'a', '--resource', 'file:///r', '--log', log) },
    security: { rules: { mcp: { extra: { on: 'mcp.request', if: 'mcp.request.extra != {}', decision: 'block' } } } },
  });
  const client = await t.http(gateway);
  const [{ uri }] = await until('the resource is listed', async () => {
    const { resources } = await client.call('resources/list');
    return resources.length === 1 && resources;
  });
  await client.call('resources/subscribe', { uri });
  await outcome(client.call('resources/unsubscribe', { uri, ...smuggled }));
  for (const other of [`${uri}?SMUGGLED`, uri.replace('file:///r', 'file:///SMUGGLED')]) await outcome(client.call('resources/unsubscribe', { uri: other }));
  const [request, ...more] = await until('it is received', () => {
    const all = lines(log, '<', 'resources/unsubscribe');
    return all.length > 0 && all;
  });
  assert.deepEqual([request.params, more], [{ uri: 'file:///r' }, []]);
  assert.deepEqual(received(log).filter((line) => line.includes('SMUGGLED')), []);
});

for (const revision of ['2025-11-25', '2026-07-28']) {
  test(`requests about a task carry only its id, ${revision}`, async (t) => {
    const log = t.path('log');
    const gateway = await t.gateway({ mcpServers: { a: { command: node, args: [taskServer, revision, log], sandbox: 'off' } } });
    let methods, send, taskId;
    if (revision === '2026-07-28') {
      const http = await httpOf(t, gateway);
      const more = { [`${PREFIX}clientCapabilities`]: { extensions: { [`${PREFIX}tasks`]: {} } } };
      const { _meta: { user }, ...params } = smuggled;
      send = (method) => http.send(method, { taskId, ...params }, { more: { ...more, user } });
      ({ taskId } = await until('the task is created', async () =>
        (await http.send('tools/call', { name: 'a__job', arguments: { ms: 3000 } }, { more })).answer.result));
      methods = ['tasks/get', 'tasks/cancel'];
    } else {
      const client = await t.http(gateway);
      await until('the tools are listed', async () => (await client.toolNames()).length > 0);
      ({ task: { taskId } } = await client.call('tools/call', { name: 'a__job', arguments: { ms: 300 }, task: { ttl: 60000 } }));
      send = (method) => outcome(client.call(method, { taskId, ...smuggled }));
      methods = ['tasks/get', 'tasks/result', 'tasks/cancel'];
    }
    for (const method of methods) await send(method);
    for (const method of methods) {
      const [{ params }] = await until(`${method} is received`, () => {
        const all = lines(log, '<', method);
        return all.length > 0 && all;
      });
      const { _meta, ...rest } = params;
      assert.deepEqual(Object.keys(rest), ['taskId'], method);
      assert.deepEqual(Object.keys(_meta ?? {}).filter((key) => !key.startsWith(PREFIX) && key !== 'progressToken'), [], method);
    }
    assert.deepEqual(received(log).filter((line) => line.includes('SMUGGLED')), []);
  });
}

const asksThenTells = `
import { createInterface } from 'node:readline';
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
let call;
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } } });
  else if (method === 'tools/list') send({ id, result: { tools: [{ name: 'ask', inputSchema: { type: 'object' } }] } });
  else if (method === 'tools/call') { call = id; send({ id: 'q', method: 'elicitation/create', params: ${JSON.stringify(FORM)} }); }
  else if (id === 'q') send({ id: call, result: { content: [{ type: 'text', text: 'TOPSECRET' }] } });
}`;
for (const [name, rule] of Object.entries({
  'of results': { on: 'mcp.response', if: 'mcp.response.text.contains("TOPSECRET")', decision: 'block' },
  'of requests': { on: 'mcp.request', if: 'mcp.request.tool_name == "ask"', decision: 'block' },
})) {
  test(`a stored result is not delivered under new rules ${name}`, async (t) => {
    const script = t.path('server.mjs');
    writeFileSync(script, asksThenTells);
    const profile = { mcpServers: { a: { command: node, args: [script] } } };
    const gateway = await t.gateway(profile);
    const http = await httpOf(t, gateway);
    const interim = await asked(http, 'a__ask');
    const answers = answering(interim, ANSWERS.elicit);
    const deliver = async () => (await call(http, 'a__ask', {}, answers)).answer;
    for (let n = 0; n < 2; ++n) assert.equal((await deliver()).result?.content[0].text, 'TOPSECRET', 'under the old rules');
    const current = JSON.parse(readFileSync(gateway.config, 'utf8')); // the harness adds limits
    writeFileSync(gateway.config, JSON.stringify({ ...current, security: { rules: { mcp: { no: rule } } } }));
    const { code, stdout } = await runProgram(t, ['reload'], { env: gateway.env() });
    assert.equal(code, 0, stdout);
    for (let n = 0; n < 2; ++n) {
      const answer = await deliver();
      assert.equal(answer.error?.code, -32602, show(answer));
      assert.ok(!JSON.stringify(answer).includes('TOPSECRET'));
    }
  });
}

test('an error that requires visits of URLs does not pass rules about inputs', async (t) => {
  const elicitations = [{ mode: 'url', elicitationId: 'e', message: 'TOPSECRET', url: 'https://evil.example/' }];
  const data = `"message":"visit","data":${JSON.stringify({ elicitations })}`;
  const spellings = { plain: `{"code":-32042,${data}}`, twice: `{"code":1,${data},"code":-32042}`, fraction: `{"code":-32042.0,${data}}`, exponent: `{"code":-3.2042e4,${data}}`, escaped: `{"c\\u006fde":-32042,${data}}` };
  const names = Object.keys(spellings);
  const gateway = await t.gateway({
    mcpServers: { a: fake(...names.flatMap((name) => ['--tool', name, '--error', `${name}=${spellings[name]}`])) },
    security: { rules: { mcp: { none: { on: 'mcp.input_request', if: 'mcp.input.text.contains("evil.example")', decision: 'block' } } } },
  });
  const old = await t.http(gateway), http = await httpOf(t, gateway);
  const answers = [];
  for (const name of names) answers.push(await outcome(old.tool(`a__${name}`)), (await http.send('tools/call', { name: `a__${name}` })).answer);
  for (const answer of answers) {
    assert.match(answer.error.message, /rules about inputs cannot evaluate/);
    assert.ok(!/evil|TOPSECRET/.test(show(answer)), show(answer));
  }
});

await run();

// Tests the endpoint as clients see it: methods, names, routing, errors and limits.
import { readFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { assert, fake, member, path, run, sleep, test, until } from './lib.mjs';

const COLON = { naming: { separator: ':' } };
const TOOLS_ONLY = {
  expose: { resources: false, prompts: false, logging: false, completions: false, list_changed: false, subscribe: false },
};
const everything = () => fake('--tool', 'say', '--resource', 'file:///a/b.txt', '--template', 'file:///{x}', '--prompt', 'greet');

test('A16 a name is split at the first separator', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { github: fake('--tool', 'my__tool', '--log', log) } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['github__my__tool']);
  await client.tool('github__my__tool', { x: 1 });
  assert.match(readFileSync(log, 'utf8'), /^< .*"name":"my__tool"/m);
});

test('B15 initialize returns the requested revision', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: everything() } });
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const client = await t.http(gateway, { revision });
    assert.equal(client.server.protocolVersion, revision);
    for (const kind of ['tools', 'resources', 'prompts']) assert.ok(client.server.capabilities[kind], kind);
    assert.ok(client.server.serverInfo.name && client.server.serverInfo.version);
  }
  const unknown = await t.http(gateway, { revision: '1999-01-01' });
  assert.equal(unknown.server.protocolVersion, '2025-11-25');
});

test('B16 all methods are supported', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: everything() } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['a__say']);
  assert.equal((await client.tool('a__say')).content[0].text, 'fake/say');
  const [resource] = await client.all('resources/list', 'resources');
  assert.equal(resource.uri, 'bulkhead://a/file:///a/b.txt');
  const read = await client.call('resources/read', { uri: resource.uri });
  assert.equal(read.contents[0].text, 'text of the resource');
  const [template] = await client.all('resources/templates/list', 'resourceTemplates');
  assert.equal(template.uriTemplate, 'bulkhead://a/file:///{x}');
  const [prompt] = await client.all('prompts/list', 'prompts');
  assert.equal(prompt.name, 'a__greet');
  const got = await client.call('prompts/get', { name: 'a__greet' });
  assert.equal(got.messages[0].content.text, 'greet');
  assert.deepEqual(await client.call('ping'), {});
  await assert.rejects(client.call('no/such/method'), { code: -32601 });
  await assert.rejects(client.call('tools/call', {}), { code: -32602 });
  await assert.rejects(client.call('resources/read', {}), { code: -32602 });
  await assert.rejects(client.call('prompts/get', {}), { code: -32602 });
  await assert.rejects(client.send('{"jsonrpc":"1.0","id":77,"method":"ping"}', 77), { code: -32600 });
  await assert.rejects(client.send('{"jsonrpc":"2.0","id":78,"method":', 78), { code: -32700 });
});

test('B18 at the in-flight limit, a rejected call still gets its error', async (t) => {
  const log = t.path('log');
  const slow = { ...fake('--tool', 'slow', '--tool', 'secret', '--delay', 'slow=200', '--log', log), max_in_flight: 4, denyTools: ['secret'] };
  const gateway = await t.gateway({ mcpServers: { up: slow } });
  const client = await t.http(gateway);
  await client.tools();
  let done = 0;
  const calls = Array.from({ length: 50 }, () => client.tool('up__slow').then(() => ++done));
  await until('calls arrive', () => readFileSync(log, 'utf8').split('"slow"').length > 4);
  await assert.rejects(client.tool('up__secret'));
  assert.ok(done < 40, `${done} of 50 calls had ended when the refusal came`);
  await Promise.all(calls);
  let now = 0;
  let most = 0;
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    if (line.startsWith('< ') && line.includes('"tools/call"')) most = Math.max(most, ++now);
    if (line.startsWith('> ') && line.includes('"content"')) --now;
  }
  assert.equal(most, 4);
});

test('B19 timeouts are set per tool, limited to the maximum, and do not affect other calls', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({
    limits: { timeout_ceiling_ms: 1500 },
    mcpServers: {
      a: { ...fake('--tool', 'slow', '--tool', 'quick', '--delay', 'slow=20000', '--log', log), tool_timeouts: { slow: 1000 } },
      b: { ...fake('--tool', 'slow', '--delay', 'slow=20000'), timeout: 60_000 },
    },
  });
  const client = await t.http(gateway);
  await client.tools();
  const timed = async (name) => {
    const started = Date.now();
    const error = await client.tool(name).then(() => assert.fail('answered'), (e) => e);
    return { error, took: Date.now() - started };
  };
  const [per_tool, clamped] = await Promise.all([timed('a__slow'), timed('b__slow'), client.tool('a__quick')]);
  assert.equal(per_tool.error.code, -32000);
  assert.match(per_tool.error.message, /\ba\b/);
  // The message has the time-out that applied. Wall time has no useful upper limit.
  assert.match(per_tool.error.message, /within 1000 ms/);
  assert.ok(per_tool.took >= 990, `${per_tool.took} ms`);
  assert.equal(clamped.error.code, -32000);
  assert.match(clamped.error.message, /within 1500 ms/);
  assert.ok(clamped.took >= 1490, `${clamped.took} ms`);
  await until('the upstream is notified', () => readFileSync(log, 'utf8').includes('"notifications/cancelled"'));
});

for (const args of [[], ['--single-process']]) {
  test(`F19 a call has the timeout of its tool, of its server, or the limit ${args.join('')}`, async (t) => {
    const log = t.path('log');
    const asleep = (...more) => fake('--tool', 'slow', '--tool', 'quick', '--delay', 'slow=60000', ...more);
    const gateway = await t.gateway({
      limits: { call_timeout_ms: 2000 },
      mcpServers: {
        by_limit: asleep('--log', log),
        by_server: { ...asleep(), timeout: 1000 },
        by_tool: { ...asleep(), timeout: 60_000, tool_timeouts: { slow: 500 } },
      },
    }, { args });
    const client = await t.http(gateway);
    await client.tools();
    const order = [];
    const started = performance.now();
    await Promise.all([['by_limit', 2000], ['by_server', 1000], ['by_tool', 500]].map(async ([server, ms]) => {
      const error = await client.tool(`${server}__slow`).then(() => assert.fail('answered'), (caught) => caught);
      assert.ok(performance.now() - started >= ms - 5, `${server}: not before its time`);
      assert.equal(error.code, -32000);
      assert.equal(error.message, `-32000 server "${server}" did not respond to tools/call "slow" within ${ms} ms`);
      order.push(server);
      assert.equal((await client.tool(`${server}__quick`)).content[0].text, 'fake/quick', 'the server keeps answering');
    }));
    assert.deepEqual(order, ['by_tool', 'by_server', 'by_limit']);
    await until('the server is notified', () => readFileSync(log, 'utf8').includes('"notifications/cancelled"'));
    assert.ok(!readFileSync(log, 'utf8').includes('! eof'), 'and keeps running');
  });
}

test('G01 initialize follows the aggregator specification', async (t) => {
  const client = await t.stdio({ ...COLON, ...TOOLS_ONLY, mcpServers: { fs: everything() } }, { revision: '2024-11-05' });
  assert.equal(client.server.protocolVersion, '2024-11-05');
  assert.deepEqual(client.server.capabilities, { tools: {} });
  assert.equal(typeof client.server.serverInfo.name, 'string');
});

test('G02 names get a prefix, and tools are otherwise unchanged', async (t) => {
  const odd = '{"name":"odd","x":{"b":1e400,"a":12345678901234567890},"title":"t","inputSchema":{"type":"object","$defs":{"z":{"$anchor":"q"}}},"description":"d\\u00e9"}';
  const servers = { fs: fake('--tool', 'read_file', '--tool-json', odd, '--extra-members'), db: fake('--tool', 'query', '--name', 'db') };
  const gateway = await t.gateway({ ...COLON, mcpServers: servers });
  const client = await t.http(gateway);
  const { resultText } = await client.request('tools/list', {});
  assert.deepEqual((await client.toolNames()).sort(), ['db:query', 'fs:odd', 'fs:read_file']);
  assert.ok(resultText.includes(odd.replace('"odd"', '"fs:odd"')), 'the definition is unchanged but for its name');
  const direct = await t.spawn(servers.fs.command, servers.fs.args);
  for (const tool of await direct.tools()) {
    const listed = (await client.tools()).find((entry) => entry.name === `fs:${tool.name}`);
    assert.deepEqual(listed, { ...tool, name: `fs:${tool.name}` });
  }
});

test('G03 a call reaches the server with its original name and bytes', async (t) => {
  const log = t.path('log');
  const result = '{"content":[],"z":1e400,"isError":false,"_meta":{"k":-0.0}}';
  const gateway = await t.gateway({ ...COLON, mcpServers: { fs: fake('--tool', 'read_file', '--result', `read_file=${result}`, '--log', log) } });
  const client = await t.http(gateway);
  const args = '{"path" : "/tmp/x", "n":[1.10, 1E5,"\\u0041"]}';
  const answer = await client.request('tools/call', `{"name":"fs:read_file","arguments":${args}}`);
  assert.equal(answer.resultText, result);
  const line = readFileSync(log, 'utf8').split('\n').find((entry) => entry.startsWith('< ') && entry.includes('tools/call'));
  assert.equal(path(line.slice(2), 'params', 'name'), '"read_file"');
  assert.equal(path(line.slice(2), 'params', 'arguments'), args);
});

test('G04 a tool name may contain the separator', async (t) => {
  const gateway = await t.gateway({ ...COLON, mcpServers: { fs: fake('--tool', 'a:b') } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['fs:a:b']);
  assert.equal((await client.tool('fs:a:b')).content[0].text, 'fake/a:b');
});

test('G05 G06 an unknown tool and a missing prefix are errors', async (t) => {
  const gateway = await t.gateway({ ...COLON, mcpServers: { fs: fake('--tool', 'a') } });
  const client = await t.http(gateway);
  await client.tools();
  await assert.rejects(client.tool('fs:nope'), { code: -32601, message: /Tool not found: fs:nope$/ });
  await assert.rejects(client.tool('other:a'), { code: -32601, message: /Tool not found: other:a$/ });
  await assert.rejects(client.tool('plain'), { code: -32602, message: /plain/ });
});

test('G07 errors of a server are relayed unchanged', async (t) => {
  const error = '{"code":-32042,"message":"say \\"please\\"","data":{"n":1e400,"big":123456789012345678901}}';
  const gateway = await t.gateway({ mcpServers: { fs: fake('--tool', 'a', '--error', error) } });
  const client = await t.http(gateway);
  const body = client.message('tools/call', { name: 'fs__a' }, 9);
  const answer = await client.exchange('POST', { body, headers: client.headers() });
  const text = answer.body.startsWith('{') ? answer.body : /data: (.*)/.exec(answer.body)[1];
  assert.equal(member(text, 'error'), error);
});

test('G08 G09 one program can be two servers, and names can contain - and _', async (t) => {
  const log = { home: t.path('home'), work: t.path('work') };
  const gateway = await t.gateway({
    ...COLON,
    mcpServers: {
      'fs-home': fake('--tool', 'a', '--log', log.home),
      'fs-work': fake('--tool', 'a', '--log', log.work),
      'my-server_v2': fake('--tool', 'b'),
    },
  });
  const client = await t.http(gateway);
  assert.deepEqual((await client.toolNames()).sort(), ['fs-home:a', 'fs-work:a', 'my-server_v2:b']);
  await client.tool('fs-work:a', { to: 'work' });
  await client.tool('my-server_v2:b');
  assert.ok(readFileSync(log.work, 'utf8').includes('"to":"work"'));
  assert.ok(!readFileSync(log.home, 'utf8').includes('tools/call'));
});

test('G10 stdout carries one message per line and nothing else', async (t) => {
  const profile = { mcpServers: { noisy: fake('--tool', 'a', '--banner', '--stderr', 'a word'), gone: { command: '/no/such/program' } } };
  const client = await t.stdio(profile, { args: ['--log-level', 'debug', '--verbose'] });
  await client.tools();
  await client.tool('noisy__a');
  await assert.rejects(client.tool('gone__a'));
  client.write('this is not JSON');
  await client.close();
  assert.ok(client.lines.length >= 4);
  for (const line of client.lines) assert.equal(JSON.parse(line).jsonrpc, '2.0', line);
  assert.ok(client.stderr.length > 0, 'logs go to standard error');
});

test('G11 a server with only tools has no resources or prompts', async (t) => {
  const gateway = await t.gateway({ ...TOOLS_ONLY, mcpServers: { fs: everything() } });
  const client = await t.http(gateway);
  assert.deepEqual(Object.keys(client.server.capabilities), ['tools', 'tasks']);
  for (const method of ['resources/list', 'prompts/list', 'completion/complete', 'logging/setLevel']) {
    await assert.rejects(client.call(method, {}), { code: -32601 }, method);
  }
});

test('G12 binary content is unchanged', async (t) => {
  const bytes = randomBytes(60_000);
  const result = JSON.stringify({ content: [{ type: 'image', data: bytes.toString('base64'), mimeType: 'image/png' }] });
  const gateway = await t.gateway({ mcpServers: { fs: fake('--tool', 'img', '--result', `img=${result}`) } });
  for (const client of [await t.http(gateway), await t.stdio({ mcpServers: { fs: fake('--tool', 'img', '--result', `img=${result}`) } })]) {
    const answer = await client.tool('fs__img');
    assert.ok(Buffer.from(answer.content[0].data, 'base64').equals(bytes));
  }
});

test('lists are paginated on both sides', async (t) => {
  const paged = fake('--tools', '25', '--page-size', '4');
  const gateway = await t.gateway({ limits: { page_items: 10 }, mcpServers: { a: paged, b: paged } });
  const client = await t.http(gateway);
  const first = await client.call('tools/list', {});
  assert.equal(first.tools.length, 10);
  const names = await client.toolNames();
  assert.equal(new Set(names).size, 50);
  await assert.rejects(client.call('tools/list', { cursor: 'no such cursor' }), { code: -32602 });
});

test('subscriptions and completions are sent to the server of the resource', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: everything() } });
  const client = await t.http(gateway);
  await client.listen();
  const [{ uri }] = await client.all('resources/list', 'resources');
  await client.call('resources/subscribe', { uri });
  assert.equal((await client.note('notifications/resources/updated')).params.uri, uri);
  await client.call('resources/unsubscribe', { uri });
  const ref = { type: 'ref/prompt', name: 'a__greet' };
  const { completion } = await client.call('completion/complete', { ref, argument: { name: 'x', value: 'va' } });
  assert.deepEqual(completion.values, ['va']);
});

test('the cancellation of a call is sent to the server, and no response follows', async (t) => {
  const log = t.path('log');
  const client = await t.stdio({ mcpServers: { a: fake('--tool', 'slow', '--delay', '2000', '--log', log) } });
  await client.tools();
  const call = client.request('tools/call', { name: 'a__slow', arguments: {} }, { id: 'c1' });
  call.catch(() => {});
  await until('the call arrives', () => readFileSync(log, 'utf8').includes('tools/call'));
  await client.notify('notifications/cancelled', { requestId: 'c1', reason: 'enough' });
  const line = await until('the cancellation arrives', () =>
    readFileSync(log, 'utf8').split('\n').find((entry) => entry.includes('notifications/cancelled')));
  const sent = readFileSync(log, 'utf8').split('\n').find((entry) => entry.includes('tools/call'));
  assert.equal(path(line.slice(2), 'params', 'requestId'), member(sent.slice(2), 'id'));
  assert.match(line, /enough/);
  await sleep(2500); // longer than the call
  assert.ok(!client.lines.some((entry) => entry.includes('"c1"')), 'an answer to a cancelled call');
});

await run();

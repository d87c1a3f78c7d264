// Tests clients of MCP 2026-07-28 over HTTP and stdio, with builtin tools and with servers of the
// revisions with sessions.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Gateway, assert, events, fake, importFromNpm, node, run, show, sleep, test, until } from './lib.mjs';
import { Guest } from './frames.mjs';
import { PREFIX, REVISION, httpOf, lines, meta } from './stateless_client.mjs';
import { Records } from './records.mjs';
import { relayProgram } from './relay_process.mjs';
import { statusOf } from './status.mjs';

const { Client, StreamableHTTPClientTransport } = await importFromNpm('@modelcontextprotocol/client');
const { StdioClientTransport } = await importFromNpm('@modelcontextprotocol/client/stdio');

const modes = [['in compartments', []], ['in one process', ['--single-process']]];

for (const [mode, args] of modes) {
  test(`discover, lists and calls have the form of the revision, ${mode}`, async (t) => {
    const log = t.path('log');
    const folder = t.path('work');
    mkdirSync(folder);
    writeFileSync(`${folder}/note.txt`, 'a note');
    const gateway = await t.gateway({
      mcpServers: {
        a: fake('--tool', 'x', '--resource', 'mem://r', '--template', 'mem://{id}', '--prompt', 'p', '--log', log,
          '--tool', 'own', '--result', 'own={"content":[],"_meta":{"k":1},"structuredContent":{"n":1.50}}'),
        b: fake('--tool', 'y', '--protocol', '2024-11-05'),
      },
      tools: { files: { plugin: 'builtin-files', path: folder } },
    }, { args });
    const http = await httpOf(t, gateway);
    const discovered = await http.result('server/discover');
    assert.deepEqual(discovered.supportedVersions, [REVISION]);
    assert.deepEqual(Object.keys(discovered.capabilities), ['tools', 'resources', 'prompts', 'logging', 'completions', 'extensions']);
    assert.equal(discovered.resultType, 'complete');
    const name = discovered._meta[`${PREFIX}serverInfo`].name;
    assert.equal(name, 'bulkhead');

    for (const [method, key, expected] of [
      ['tools/list', 'tools', ['a__x', 'a__own', 'b__y', 'files__file_read']],
      ['resources/list', 'resources', ['bulkhead://a/mem://r']],
      ['resources/templates/list', 'resourceTemplates', ['bulkhead://a/mem://{id}']],
      ['prompts/list', 'prompts', ['a__p']],
    ]) {
      const list = await http.result(method);
      const names = list[key].map((item) => item.uri ?? item.uriTemplate ?? item.name);
      for (const one of expected) assert.ok(names.includes(one), `${one} in ${names}`);
      assert.equal(list.resultType, 'complete');
      assert.equal(list.ttlMs, 0);
      assert.equal(list.cacheScope, 'private');
      assert.equal(list._meta[`${PREFIX}serverInfo`].name, name);
    }

    const called = await http.send('tools/call', { name: 'a__x', arguments: { n: 1 } }, { more: { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` } });
    assert.equal(called.status, 200);
    assert.match(called.type, /^application\/json/);
    assert.equal(called.answer.result.content[0].text, 'fake/x');
    assert.equal(called.answer.result.resultType, 'complete');
    assert.equal(called.answer.result.ttlMs, undefined);
    // The server receives a request of its own revision, without the members that are intended for
    // the gateway.
    const [got] = lines(log, '<', 'tools/call');
    assert.deepEqual(Object.keys(got.params._meta), ['traceparent']);
    assert.deepEqual(got.params.arguments, { n: 1 });
    assert.deepEqual(lines(log, '<', 'initialize')[0].params.capabilities, {});

    // The gateway does not change _meta of a server.
    const own = await http.result('tools/call', { name: 'a__own' });
    assert.deepEqual(own._meta, { k: 1 });
    assert.equal(own.resultType, 'complete');
    assert.equal((await http.result('tools/call', { name: 'b__y' })).content[0].text, 'fake/y');
    assert.match(JSON.stringify(await http.result('tools/call', { name: 'files__file_read', arguments: { path: 'note.txt' } })), /a note/);
    const read = await http.result('resources/read', { uri: 'bulkhead://a/mem://r' });
    assert.equal(read.contents[0].text, 'text of the resource');
    assert.equal(read.cacheScope, 'private');
    assert.equal((await http.result('prompts/get', { name: 'a__p' })).ttlMs, undefined);
    const completion = { ref: { type: 'ref/prompt', name: 'a__p' }, argument: { name: 'n', value: '' } };
    assert.ok((await http.send('completion/complete', completion)).answer);
    assert.equal((await statusOf(gateway)).sessions, 0);
  });

  test(`progress and log messages arrive on the stream of their request, ${mode}`, async (t) => {
    const note = (level, data) => `slow={"jsonrpc":"2.0","method":"notifications/message","params":{"level":"${level}","data":"${data}"}}`;
    const log = t.path('log');
    const gateway = await t.gateway({
      mcpServers: {
        a: fake('--tool', 'slow', '--delay', '200', '--progress', '2', '--notify', note('debug', 'low'), '--notify', note('error', 'high'),
          '--capabilities', '{"tools":{},"logging":{}}', '--log', log),
      },
    }, { args });
    const http = await httpOf(t, gateway);
    const call = (more) => http.send('tools/call', { name: 'a__slow' }, { more });
    const quiet = await call({});
    assert.deepEqual(quiet.notes, [], 'without a level or a token, there are no notifications');
    assert.match(quiet.type, /json/);

    const all = await call({ [`${PREFIX}logLevel`]: 'debug', progressToken: 'mine' });
    assert.match(all.type, /event-stream/);
    assert.equal(all.headers['x-accel-buffering'], 'no');
    const logs = (got) => got.notes.filter((one) => one.method === 'notifications/message').map((one) => one.params.data);
    assert.deepEqual(logs(all), ['low', 'high']);
    const progress = all.notes.filter((one) => one.method === 'notifications/progress');
    assert.deepEqual(progress.map((one) => one.params.progressToken), ['mine', 'mine']);
    assert.equal(all.answer.result.resultType, 'complete');

    assert.deepEqual(logs(await call({ [`${PREFIX}logLevel`]: 'error' })), ['high']);
    assert.deepEqual((await call({})).notes, [], 'a level is valid for its request only');
    assert.ok(lines(log, '<', 'logging/setLevel').some((one) => one.params.level === 'debug'));
  });

  test(`a request is cancelled by closing its stream, on a pipe by a notification, ${mode}`, async (t) => {
    const log = t.path('log');
    const profile = { mcpServers: { a: fake('--tool', 'x', '--tool', 'held', '--hold', `held=${t.path('never')}`, '--log', log) } };
    const gateway = await t.gateway(profile, { args });
    const http = await httpOf(t, gateway);
    const ended = new AbortController();
    const held = http.open('tools/call', { name: 'a__held' }, { signal: ended.signal }).catch((error) => error);
    await until('the call runs', () => lines(log, '<', 'tools/call').length === 1);
    ended.abort();
    await held;
    await until('the server is notified', () => lines(log, '<', 'notifications/cancelled').length === 1);
    assert.equal((await http.result('tools/call', { name: 'a__x' })).content[0].text, 'fake/x');

    const pipeLog = t.path('pipe-log');
    const own = { mcpServers: { a: fake('--tool', 'x', '--tool', 'held', '--hold', `held=${t.path('go')}`, '--log', pipeLog) } };
    const pipe = await t.stdio(own, { initialize: false, args: [...args, '--own'] });
    const first = pipe.call('tools/call', { name: 'a__held', _meta: meta() }, { id: 'first' });
    const second = pipe.call('tools/call', { name: 'a__held', _meta: meta() }, { id: 'second' });
    first.catch(() => {});
    await until('both calls run', () => lines(pipeLog, '<', 'tools/call').length === 2);
    await pipe.notify('notifications/cancelled', { requestId: 'first', reason: 'enough', _meta: meta() });
    const [cancelled] = await until('the server is notified', () => {
      const found = lines(pipeLog, '<', 'notifications/cancelled');
      return found.length > 0 && found;
    });
    assert.equal(cancelled.params.reason, 'enough');
    assert.equal(lines(pipeLog, '<', 'notifications/cancelled').length, 1);
    writeFileSync(t.path('go'), '');
    assert.equal((await second).content[0].text, 'fake/held');
    assert.equal((await pipe.call('tools/call', { name: 'a__x', _meta: meta() })).resultType, 'complete');
  });

  test(`clients of both generations use one endpoint and one pipe at the same time, ${mode}`, async (t) => {
    const log = t.path('log');
    const a = fake('--tool', 'x', '--tool', 'slow', '--delay', 'slow=300', '--log', log);
    const gateway = await t.gateway({ mcpServers: { a, alone: { ...fake('--tool', 'y', '--log', t.path('alone')), session: 'per-client' } } }, { args });
    const old = await t.http(gateway);
    const http = await httpOf(t, gateway);
    const both = await Promise.all([
      old.tool('a__slow', { who: 'old' }), http.result('tools/call', { name: 'a__slow', arguments: { who: 'new' } }),
      old.tool('a__slow', { who: 'old2' }), http.result('tools/call', { name: 'a__slow', arguments: { who: 'new2' } }),
    ]);
    assert.deepEqual(both.map((result) => result.resultType), [undefined, 'complete', undefined, 'complete']);
    assert.deepEqual(both.map((result) => result.echo.who), ['old', 'new', 'old2', 'new2']);
    // For requests without a session, a per-client server is started only once.
    for (let n = 0; n < 5; ++n) assert.equal((await http.result('tools/call', { name: 'alone__y' })).content[0].text, 'fake/y');
    assert.equal((await old.tool('alone__y')).content[0].text, 'fake/y');
    assert.ok(lines(t.path('alone'), '<', 'initialize').length <= 3, 'one for lists, one per kind of client');
    const stats = await statusOf(gateway);
    assert.equal(stats.sessions, 1);

    const pipe = await t.stdio({ mcpServers: { a } }, { initialize: false, args: [...args, '--own'] });
    assert.deepEqual((await pipe.call('server/discover', { _meta: meta() })).supportedVersions, [REVISION]);
    assert.equal((await pipe.call('tools/call', { name: 'a__x', _meta: meta() })).resultType, 'complete');
    await pipe.initialize();
    const [first, second] = await Promise.all([pipe.tool('a__x'), pipe.call('tools/call', { name: 'a__x', _meta: meta() })]);
    assert.equal(first.resultType, undefined);
    assert.equal(second.resultType, 'complete');
  });

  test(`policy, records and errors are those of other clients, ${mode}`, async (t) => {
    const gateway = await t.gateway({
      mcpServers: {
        a: fake('--tool', 'x', '--tool', 'no', '--tool', 'gone', '--tool', 'url', '--tool', 'bad', '--result', 'bad={"isError":true,"content":[]}',
          '--error', 'gone={"code":-32002,"message":"gone","data":{"uri":"mem://1"}}', '--error', 'url={"code":-32042,"message":"visit"}'),
      },
      security: { rules: { mcp: { no: { on: 'mcp.request', if: 'mcp.request.tool_name == "no" && client.claimed_name == "stateless-test"', decision: 'block', reason: 'not today' } } } },
      telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
    }, { args });
    const records = new Records(gateway);
    const http = await httpOf(t, gateway);
    const fails = async (name) => {
      const { status, answer } = await http.send('tools/call', { name });
      return [status, answer.error.code, answer.error.message, answer.error.data];
    };
    const [status, code, message] = await fails('a__no');
    assert.equal(status, 200);
    assert.equal(code, -32600);
    assert.match(message, /not today/);
    assert.deepEqual(await fails('a__gone'), [200, -32602, 'gone', { uri: 'mem://1' }]);
    assert.deepEqual(await fails('a__url'), [200, -32603, 'visit', undefined]);
    assert.equal((await fails('a__none'))[1], -32602);
    for (const [method, params, options, expected] of [
      ['tools/call', { name: 'a__x' }, { headers: { 'mcp-name': 'a__no' } }, [400, -32020]],
      ['tools/call', { name: 'a__x' }, { headers: { 'mcp-method': 'tools/list' } }, [400, -32020]],
      ['tools/list', {}, { headers: { 'mcp-protocol-version': '2025-11-25' } }, [400, -32020]],
      ['tools/list', {}, { more: { [`${PREFIX}protocolVersion`]: '2030-01-01' } }, [400, -32022]],
      ['tools/list', {}, { more: { [`${PREFIX}clientCapabilities`]: undefined } }, [400, -32602]],
      ['ping', {}, {}, [404, -32601]],
      ['logging/setLevel', { level: 'info' }, {}, [404, -32601]],
      ['resources/read', { uri: 'bulkhead://none/x' }, {}, [200, -32602]],
    ]) {
      const { status: got, answer } = await http.send(method, params, options);
      assert.deepEqual([got, answer.error?.code], expected, `${method} ${show(answer)}`);
    }
    const named = `=?base64?${Buffer.from('a__bad').toString('base64')}?=`;
    assert.equal((await http.result('tools/call', { name: 'a__bad' }, { headers: { 'mcp-name': named } })).isError, true);
    assert.equal((await http.result('tools/call', { name: 'a__x' })).isError, undefined);
    const rows = () => records.rows("SELECT tool_name, decision, error_message FROM mcp_calls WHERE method = 'tools/call' AND ifnull(error_message, '') NOT LIKE 'the header%' ORDER BY id");
    await until('all calls are recorded', async () => (await rows()).length >= 6);
    assert.deepEqual(await rows(), [
      ['no', 'denied', 'not today'], ['gone', 'error', 'gone'], ['url', 'error', 'visit'],
      ['a__none', 'error', 'Tool not found: a__none'], ['bad', 'allowed', null], ['x', 'allowed', null]]);
  });

  test(`records and the status have the revisions of both sides, ${mode}`, async (t) => {
    mkdirSync(t.path('work'));
    writeFileSync(t.path('work/a.txt'), 'text');
    const gateway = await t.gateway({
      mcpServers: {
        a: fake('--tool', 'x'),
        up: { command: node, args: [fileURLToPath(new URL('../fixtures/stateless_server.mjs', import.meta.url)), 'stdio'], sandbox: 'off' },
      },
      tools: { files: { plugin: 'builtin-files', path: t.path('work') } },
      telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
    }, { args });
    const records = new Records(gateway);
    const old = await t.http(gateway, { revision: '2025-03-26' });
    const http = await httpOf(t, gateway);
    for (const name of ['a__x', 'up__echo', 'files__file_read']) {
      await old.tool(name, { path: 'a.txt' });
      await http.result('tools/call', { name, arguments: { path: 'a.txt' } });
    }
    await http.result('tools/list');
    await assert.rejects(old.tool('a__none'));
    const rows = () => records.rows("SELECT method, server_name, client_revision, server_revision FROM mcp_calls WHERE method IN ('tools/call', 'tools/list') ORDER BY server_name, client_revision");
    await until('all requests are recorded', async () => (await rows()).length >= 8);
    assert.deepEqual((await rows()).filter(([, server]) => server !== '*' && server !== 'gateway'), [
      ['tools/call', 'a', '2025-03-26', '2025-11-25'], ['tools/call', 'a', REVISION, '2025-11-25'],
      ['tools/call', 'files', '2025-03-26', null], ['tools/call', 'files', REVISION, null],
      ['tools/call', 'up', '2025-03-26', REVISION], ['tools/call', 'up', REVISION, REVISION]]);
    assert.deepEqual((await rows()).filter(([, server]) => server === '*' || server === 'gateway'), [
      ['tools/list', '*', REVISION, null], ['tools/call', 'gateway', '2025-03-26', null]]);
    const lines = (await records.command('calls', '--json', '--server', 'up')).stdout.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(lines.map((one) => [one.client_revision, one.server_revision]), [['2025-03-26', REVISION], [REVISION, REVISION]]);
    const { clients } = await statusOf(gateway);
    assert.deepEqual(clients.map((one) => [one.claimed_name, one.transport, one.protocol, one.sessions, one.calls]), [
      ['bulkhead-tests', 'http', '2025-03-26', 1, 3], ['stateless-test', 'http', REVISION, 0, 3]]);
    const { stdout } = await records.execute('status');
    assert.match(stdout, /^ +http +stateless-test +2026-07-28 +0 +3$/m);

    const owned = new Gateway(t.dir, { mcpServers: { a: fake('--tool', 'x') } }, { args: [...args, '--own'] });
    const [command, words, options] = owned.stdioCommand();
    const pipe = await t.spawn(command, words, { ...options, initialize: false });
    await pipe.call('tools/call', { name: 'a__x', _meta: meta() });
    owned.child = pipe.child;
    const [one] = (await statusOf(owned)).clients;
    assert.deepEqual([one.transport, one.protocol, one.sessions, one.calls], ['stdio', REVISION, 1, 1]);
  });

  test(`subscriptions/listen merges the changes of all servers, ${mode}`, async (t) => {
    const updated = '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem://r"}}';
    const aLog = t.path('a');
    const profile = {
      mcpServers: {
        a: fake('--tool', 'x', '--tool', 'touch', '--resource', 'mem://r', '--notify', `touch=${updated}`, '--log', aLog),
        b: fake('--tool', 'grow', '--add', 'grow=y', '--prompt', 'p', '--add-prompt', 'grow=q'),
      },
      telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
    };
    const gateway = await t.gateway(profile, { args });
    const http = await httpOf(t, gateway);
    await http.result('tools/list'); // waits for the servers, whose start is a change
    const caps = (await http.result('server/discover')).capabilities;
    assert.deepEqual([caps.tools, caps.resources.subscribe, caps.prompts], [{ listChanged: true }, true, { listChanged: true }]);
    const uri = 'bulkhead://a/mem://r';
    const ended = new AbortController();
    const stream = await http.open('subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions: [uri, 'bulkhead://a/mem://none', 'bulkhead://none/x'] } }, { id: 'l', signal: ended.signal });
    assert.match(stream.headers['content-type'], /event-stream/);
    const got = [];
    (async () => {
      for await (const event of events(stream)) if (event.data) got.push(JSON.parse(event.data));
    })().catch(() => {});
    await until('it is acknowledged', () => got.length >= 1);
    assert.equal(got[0].method, 'notifications/subscriptions/acknowledged');
    assert.equal(got[0].params.notifications.toolsListChanged, true);
    assert.ok(got[0].params.notifications.resourceSubscriptions.includes(uri));
    assert.ok(!got[0].params.notifications.resourceSubscriptions.includes('bulkhead://none/x'));
    // A client of the other generation makes the changes.
    const old = await t.http(gateway);
    await old.tool('a__touch');
    await old.tool('b__grow');
    const told = (method) => got.filter((one) => one.method === method);
    await until('both changes arrive', () => told('notifications/resources/updated').length >= 1 && told('notifications/tools/list_changed').length >= 1);
    // The fixture accepts a subscription to any URI, and immediately reports an update.
    const watched = told('notifications/resources/updated').map((one) => one.params.uri);
    assert.ok(watched.includes(uri) && watched.every((one) => [uri, 'bulkhead://a/mem://none'].includes(one)), show(watched));
    // The list of a server may also have changed because the server has just started.
    assert.deepEqual([...new Set(got.slice(1).map((one) => one.method))].sort(), ['notifications/resources/updated', 'notifications/tools/list_changed']);
    for (const one of got) assert.equal(one.params._meta[`${PREFIX}subscriptionId`], 'l');
    assert.ok((await http.result('tools/list')).tools.some((tool) => tool.name === 'b__y'));
    ended.abort();
    await until('the server is unsubscribed', () => lines(aLog, '<', 'resources/unsubscribe').length >= 1);
    const records = new Records(gateway);
    const rows = () => records.rows("SELECT decision FROM mcp_calls WHERE method = 'subscriptions/listen' ORDER BY id");
    await until('its start and end are recorded', async () => (await rows()).length === 2);

    // On stdio, two subscriptions can be open at the same time, and their results are sent when the
    // gateway stops.
    const pipe = await t.stdio(profile, { initialize: false, args: [...args, '--own'] });
    await pipe.call('tools/list', { _meta: meta() }); // waits for the servers, whose start is a change
    const first = pipe.request('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: meta() }, { id: 1 });
    const second = pipe.request('subscriptions/listen', { notifications: { promptsListChanged: true }, _meta: meta() }, { id: '1' });
    await until('both are acknowledged', () => pipe.notes.length === 2);
    await pipe.call('tools/call', { name: 'b__grow', _meta: meta() });
    await until('the changes arrive', () => pipe.notes.length === 4);
    const changes = pipe.notes.slice(2).map((one) => [one.method, one.params._meta[`${PREFIX}subscriptionId`]]);
    assert.deepEqual(changes.sort(), [['notifications/prompts/list_changed', '1'], ['notifications/tools/list_changed', 1]]);
    pipe.child.stdin.end();
    assert.equal((await first).result._meta[`${PREFIX}subscriptionId`], 1);
    assert.equal((await second).result._meta[`${PREFIX}subscriptionId`], '1');
  });

  test(`subscriptions/listen has no time-out, and reports that a server is lost and has returned, ${mode}`, async (t) => {
    const gone = t.path('gone');
    const log = t.path('log');
    const gateway = await t.gateway({
      limits: { request_timeout_ms: 200, call_timeout_ms: 200, grace_ms: 50, retry_min_ms: 50, retry_max_ms: 100 },
      mcpServers: { a: fake('--tool', 'die', '--die', 'die', '--resource', 'mem://r', '--fail-while', gone, '--log', log), b: fake('--tool', 'y') },
    }, { args });
    const http = await httpOf(t, gateway);
    const listed = async () => (await http.result('tools/list')).tools.some((tool) => tool.name === 'a__die');
    assert.ok(await listed());
    const ended = new AbortController();
    const wanted = { toolsListChanged: true, resourceSubscriptions: ['bulkhead://a/mem://r'] };
    const stream = await http.open('subscriptions/listen', { notifications: wanted }, { id: 'l', signal: ended.signal });
    const got = [];
    (async () => {
      for await (const event of events(stream)) if (event.data) got.push(JSON.parse(event.data));
    })().catch(() => {});
    await until('it is acknowledged', () => got.length >= 1);
    assert.deepEqual(got[0].params.notifications, wanted);
    await sleep(700);
    const changes = () => got.filter((one) => one.method === 'notifications/tools/list_changed').length;
    writeFileSync(gone, '');
    let before = changes();
    await http.send('tools/call', { name: 'a__die' });
    await until('the loss is reported', () => changes() > before);
    assert.equal(await listed(), false);
    before = changes();
    rmSync(gone);
    await until('the return is reported', () => changes() > before);
    assert.ok(await listed());
    await until('the resource is subscribed again', () => lines(log, '<', 'resources/subscribe').length === 2);
    for (const one of got) assert.equal(one.params._meta[`${PREFIX}subscriptionId`], 'l');
    ended.abort();
  });

  test(`the SDK's client, pinned to the revision, over HTTP and stdio, ${mode}`, async (t) => {
    const profile = { mcpServers: { a: fake('--tool', 'x', '--resource', 'mem://r', '--prompt', 'p'), b: fake('--tool', 'y') } };
    const gateway = await t.gateway(profile, { args });
    // `bulkhead stdio` joins the running gateway, or runs its own servers.
    const [command, words, { env, cwd }] = gateway.stdioCommand();
    const pipe = (...more) => new StdioClientTransport({ command, args: [...words, ...more], env, cwd, stderr: 'pipe' });
    for (const transport of [new StreamableHTTPClientTransport(new URL(gateway.url)), pipe(), pipe('--own')]) {
      const client = new Client({ name: 'pinned', version: '1' }, { versionNegotiation: { mode: { pin: REVISION } } });
      t.defer(() => client.close());
      await client.connect(transport);
      assert.equal(client.getNegotiatedProtocolVersion?.() ?? REVISION, REVISION);
      assert.deepEqual((await client.listTools()).tools.map((tool) => tool.name), ['a__x', 'b__y']);
      assert.equal((await client.callTool({ name: 'b__y', arguments: {} })).content[0].text, 'fake/y');
      assert.equal((await client.readResource({ uri: 'bulkhead://a/mem://r' })).contents[0].text, 'text of the resource');
      assert.equal((await client.listPrompts()).prompts[0].name, 'a__p');
      await assert.rejects(client.callTool({ name: 'a__none' }), /Tool not found/);
    }
  });
}

test('on stdio, requests that a crash of the endpoint interrupts fail and are recorded, and later requests succeed', async (t) => {
  const log = t.path('log');
  const telemetry = { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } };
  const gateway = new Gateway(t.dir, { telemetry, mcpServers: { a: fake('--tool', 'x', '--tool', 'held', '--hold', `held=${t.path('never')}`, '--log', log) } });
  const [command, words, options] = gateway.stdioCommand();
  const pipe = await t.spawn(command, words, { ...options, initialize: false });
  const held = pipe.call('tools/call', { name: 'a__held', _meta: meta() }).catch((error) => error);
  const listening = pipe.call('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta: meta() }).catch((error) => error);
  await until('the call runs', () => lines(log, '<', 'tools/call').length === 1);
  await pipe.note('notifications/subscriptions/acknowledged');
  const { pid } = (await statusOf({ pid: pipe.child.pid, env: () => gateway.env() })).compartments.find((one) => one.name === 'endpoint');
  process.kill(pid, 'SIGKILL');
  for (const lost of [await held, await listening]) assert.equal(lost.code, -32603, show(lost));
  assert.equal((await pipe.call('tools/call', { name: 'a__x', _meta: meta() })).resultType, 'complete');
  assert.equal(lines(log, '<', 'tools/call').filter((one) => one.params.name === 'held').length, 1, 'nothing runs twice');
  const records = new Records(gateway);
  const rows = () => records.rows("SELECT method, decision FROM mcp_calls WHERE error_message LIKE '%may have run%'");
  await until('the lost requests are recorded', async () => (await rows()).length === 2);
  assert.deepEqual(await rows(), [['unknown', 'error'], ['unknown', 'error']]);
});

test('guests: frames, and the SDK\'s client through the relay', async (t) => {
  const log = t.path('log');
  const socket = t.path('guest.sock');
  const gateway = await t.gateway({
    transports: { http: { plugin: 'transport-http', listen: '127.0.0.1:0' }, guests: { plugin: 'transport-vsock', listen: `unix:${socket}` } },
    mcpServers: { a: fake('--tool', 'x', '--tool', 'held', '--hold', `held=${t.path('never')}`, '--tool', 'grow', '--add', 'grow=y', '--log', log) },
  }, { listen: null });
  const guest = new Guest(t, socket);
  const discovered = await guest.request('server/discover', { _meta: meta() });
  assert.deepEqual(discovered.result.capabilities.tools, {}, 'a guest that accepts answers only gets no notifications');
  assert.equal((await guest.request('subscriptions/listen', { notifications: {}, _meta: meta() })).error.code, -32601);
  assert.equal((await guest.request('tools/call', { name: 'a__x', _meta: meta() }, { name: 'agent' })).result.resultType, 'complete');
  assert.equal((await guest.request('tools/call', { name: 'a__x' })).result.resultType, undefined, 'both generations on one connection');
  const held = guest.request('tools/call', { name: 'a__held', _meta: meta() });
  await until('the call runs', () => lines(log, '<', 'tools/call').some((one) => one.params.name === 'held'));
  guest.notify('notifications/cancelled', { requestId: `r${guest.stream}` });
  assert.equal(await held, null, 'a cancelled request has an empty frame');
  await until('the server is notified', () => lines(log, '<', 'notifications/cancelled').length === 1);

  const client = new Client({ name: 'guest', version: '1' }, { versionNegotiation: { mode: { pin: REVISION } }, listChanged: { tools: { autoRefresh: false, onChanged: () => ++changes } } });
  let changes = 0;
  t.defer(() => client.close());
  await client.connect(new StdioClientTransport({ command: relayProgram, args: ['--unix', socket], stderr: 'pipe' }));
  assert.equal((await client.callTool({ name: 'a__x', arguments: {} })).content[0].text, 'fake/x');
  await client.callTool({ name: 'a__grow', arguments: {} });
  await until('the change arrives through the relay', () => changes === 1);
  assert.ok((await client.listTools()).tools.some((tool) => tool.name === 'a__y'));
  assert.equal((await statusOf(gateway)).sessions, 2);
});

await run();

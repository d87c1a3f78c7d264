// Tests hot reload through the service socket, SIGHUP and the connector API. Each test runs with
// compartments and with --single-process.
import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { alive, assert, build, fake, lastingPort, program, processesWith, run, runProgram, show, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';

const execute = promisify(execFile);
const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};
const lastPid = (log) => processesWith(log).at(-1);
const starts = (log) => [...readFileSync(log, 'utf8').matchAll(/^! start (\d+)$/gm)].length;

const write = (gateway, profile) => writeFileSync(gateway.config, JSON.stringify(profile));

// A plugin with a tool that takes two seconds and a tool that returns immediately.
const slowTools = join(build, 'core/plugin/testing_plugins/plugins/unfinished.so');

both('a reload that changes a tools plugin loses no call', async (t, args) => {
  const profile = (more) => ({ tools: { extra: { plugin: slowTools, ...more } } });
  const gateway = await t.gateway(profile({}), { args });
  const client = await t.http(gateway);
  await client.toolNames();
  const texts = async (calls) => (await Promise.all(calls)).map((answer) => answer.content[0].text);
  for (const refuse of [false, true]) {
    const slow = Array.from({ length: 4 }, () => client.tool('extra__slow'));
    slow.forEach((call) => call.catch(() => {}));
    await until('they run', async () => (await statusOf(gateway)).in_flight === 4);
    write(gateway, profile({ refuse }));
    const reloaded = ask(gateway, 'POST', '/reload-config');
    const more = Array.from({ length: 10 }, () => client.tool('extra__thread'));
    assert.deepEqual(await texts(slow), Array(4).fill('done'));
    assert.deepEqual(await texts(more), Array(10).fill('done'));
    const answer = await reloaded;
    assert.equal(answer.success, true, show(answer));
    assert.deepEqual(await texts([client.tool('extra__thread')]), ['done']);
  }
});

test('a call waits while the compartment of a tools plugin is restarted', async (t) => {
  const gateway = await t.gateway({ tools: { extra: { plugin: slowTools } } });
  const client = await t.http(gateway);
  await client.toolNames();
  for (let round = 0; round < 3; ++round) {
    const slow = client.tool('extra__slow').then(() => assert.fail('an answer'), (error) => error);
    const { pid } = await until('it runs', async () => (await statusOf(gateway)).in_flight === 1 &&
      (await statusOf(gateway)).compartments.find((one) => one.name === 'extra' && one.state === 'running'));
    process.kill(pid, 'SIGKILL');
    assert.equal((await slow).code, -32603, 'it may have run, and is not repeated');
    const answers = await Promise.all(Array.from({ length: 10 }, () => client.tool('extra__thread')));
    assert.deepEqual(answers.map((answer) => answer.content[0].text), Array(10).fill('done'));
  }
});

both('A29 after POST /reload-config, an open client sees the new tool, and other servers keep their processes', async (t, args) => {
  const [log, gone] = [t.path('log'), t.path('gone')];
  const servers = { one: fake('--tool', 'a', '--log', log), two: fake('--tool', 'b', '--log', gone) };
  const gateway = await t.gateway({ mcpServers: servers }, { args });
  const client = await t.http(gateway);
  await client.listen();
  assert.deepEqual((await client.toolNames()).sort(), ['one__a', 'two__b']);
  const [pid, old] = [lastPid(log), lastPid(gone)];
  write(gateway, { mcpServers: { one: servers.one, three: fake('--tool', 'c') } });
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.equal(answer.status, 200);
  for (const [name, value] of Object.entries({ success: true, reloaded: 1, failed_session_count: 0, failed_session_ids: [], failures: [], message: null })) {
    assert.deepEqual(answer[name], value, name);
  }
  assert.deepEqual([answer.added, answer.removed, answer.unchanged], [['three'], ['two'], 1]);
  await client.note('notifications/tools/list_changed');
  assert.deepEqual((await client.toolNames()).sort(), ['one__a', 'three__c']);
  assert.equal((await client.tool('three__c')).content[0].text, 'fake/c');
  assert.equal(lastPid(log), pid);
  assert.ok(alive(pid) && starts(log) === 1);
  await until('the removed server has ended', () => !alive(old));
});

both('A29 an invalid profile changes nothing and is reported in full', async (t, args) => {
  const gateway = await t.gateway({ mcpServers: { one: fake('--tool', 'a') } }, { args });
  const client = await t.http(gateway);
  await client.tools();
  write(gateway, { mcpServers: { x: { comand: 'y' } }, limits: { sessions: 'many' } });
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.equal(answer.status, 500);
  assert.equal(answer.success, false);
  assert.equal(answer.reloaded, 0);
  assert.equal(answer.failed_session_count, 1);
  assert.match(answer.message, /nothing was changed/);
  const lines = answer.failures.map((failure) => failure.message).join('\n');
  assert.match(lines, /comand/);
  assert.match(lines, /limits\.sessions/);
  assert.deepEqual(await client.toolNames(), ['one__a']);
  await assert.rejects(execute(program, ['reload'], { env: gateway.env() }), (error) => error.code === 1 && /comand/.test(error.stdout));
});

both('a reload with wrong rules reports every error', async (t, args) => {
  const servers = { one: fake('--tool', 'a') };
  const gateway = await t.gateway({ mcpServers: servers }, { args });
  const rules = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`r${i}`, { on: 'mcp.request', if: i % 2 ? 'mcp.request.tool_name ==' : 'nothing.known == 1', decision: 'block' }]));
  const names = Object.keys(rules);
  // Also a second time, and with a single error.
  for (const some of [names, names, names.slice(3, 4)]) {
    write(gateway, { mcpServers: servers, security: { rules: { mcp: Object.fromEntries(some.map((name) => [name, rules[name]])) } } });
    const answer = await ask(gateway, 'POST', '/reload-config');
    assert.deepEqual([answer.success, answer.message], [false, 'nothing was changed']);
    const named = answer.failures.map(({ message }) => /^policies\.default: \S*gateway\.json:\d+: security\.rules\.mcp\.(r\d)\.if: \d+:\d+: /.exec(message)?.[1]);
    assert.deepEqual(named.sort(), some, JSON.stringify(answer.failures));
    const { code, stdout } = await execute(program, ['reload'], { env: gateway.env() }).catch((error) => error);
    assert.equal(code, 1);
    const lines = stdout.split('\n').filter((line) => line.startsWith('  policies.default: '));
    assert.deepEqual(lines.map((line) => /mcp\.(r\d)\.if/.exec(line)[1]).sort(), some, stdout);
    assert.doesNotMatch(stdout, /see the log/);
  }
});

both('SIGHUP and bulkhead reload are equivalent; changes that need a restart are reported', async (t, args) => {
  const servers = { one: fake('--tool', 'a') };
  const gateway = await t.gateway({ mcpServers: servers }, { args });
  const client = await t.http(gateway);
  await client.listen();
  await client.tools();
  write(gateway, { mcpServers: { ...servers, two: fake('--tool', 'b') } });
  process.kill(gateway.pid, 'SIGHUP');
  await client.note('notifications/tools/list_changed');
  await until('both are listed', async () => (await client.toolNames()).length === 2);
  write(gateway, { mcpServers: servers, limits: { sessions: 7 } });
  const { code, stdout } = await execute(program, ['reload'], { env: gateway.env() }).catch((error) => error);
  assert.equal(code, 4, stdout);
  assert.match(stdout, /removed: two/);
  assert.match(stdout, /limits\.sessions: needs a restart/);
  assert.deepEqual(await client.toolNames(), ['one__a']);
});

both('A12 an in-flight call of a removed server completes', async (t, args) => {
  const log = t.path('log');
  const slow = fake('--tool', 'a', '--delay', 'a=1500', '--log', log);
  const stuck = fake('--tool', 'b', '--hang', 'tools/call');
  const gateway = await t.gateway({ limits: { drain_ms: 6000 }, mcpServers: { slow, stuck } }, { args });
  const client = await t.http(gateway);
  await client.tools();
  const calls = [client.tool('slow__a'), client.tool('stuck__b').catch((error) => error)];
  await until('the call has arrived', () => readFileSync(log, 'utf8').includes('tools/call'));
  write(gateway, { limits: { drain_ms: 6000 }, mcpServers: { other: fake('--tool', 'c') } });
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.equal(answer.status, 200);
  assert.equal((await calls[0]).content[0].text, 'fake/a');
  assert.match((await calls[1]).message, /stuck.*removed or changed/);
  await until('its process has ended', () => !alive(lastPid(log)));
});

// Fault: while a server is replaced, its tools are missing or calls to it fail.
both('pain-18 a changed server is replaced without an outage', async (t, args) => {
  const [log, fresh] = [t.path('log'), t.path('fresh')];
  const definition = (...more) => fake('--tool', 'a', '--init-delay', 400, ...more);
  const gateway = await t.gateway({ mcpServers: { one: definition('--log', log) } }, { args });
  const client = await t.http(gateway);
  await client.listen();
  await client.tools();
  const old = lastPid(log);
  write(gateway, { mcpServers: { one: definition('--log', fresh) } });
  let [asked, failed] = [0, 0];
  let over = false;
  const traffic = (async () => {
    while (!over) {
      asked += 1;
      await client.tool('one__a').catch(() => (failed += 1));
      if ((await client.toolNames()).length !== 1) failed += 1;
    }
  })();
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.deepEqual(answer.changed, ['one']);
  over = true;
  await traffic;
  assert.ok(asked > 0);
  assert.equal(failed, 0);
  assert.equal(starts(log), 1);
  assert.equal(starts(fresh), 1);
  await until('the old process has ended', () => !alive(old));
});

// Fault: after a reload, calls use the directory of another instance or have no response. All
// instances of a plugin share a compartment, and the profile determines their order.
both('two instances of a plugin keep their directories, regardless of their order', async (t, args) => {
  const use = (name) => {
    mkdirSync(t.path(name), { recursive: true });
    writeFileSync(join(t.path(name), 'who.txt'), `this is ${name}`);
    return { plugin: 'builtin-files', path: t.path(name) };
  };
  const [notes, archive, third] = ['notes', 'archive', 'third'].map(use);
  const gateway = await t.gateway({ limits: { call_timeout_ms: 5000 }, tools: { notes } }, { args });
  const client = await t.http(gateway);
  const wrong = [];
  // Each response must come from the instance's own directory. Calls may fail until the new process
  // is ready.
  const check = async (name) => {
    const result = await client.tool(`${name}__file_read`, { path: 'who.txt' }).catch((error) => error);
    if (result instanceof Error) {
      if (/did not respond to/.test(result.message)) wrong.push(`${name}: ${result.message}`);
      return false;
    }
    if (!show(result).includes(`this is ${name}`)) wrong.push(`${name}: ${show(result)}`);
    return true;
  };
  await until('notes is ready', () => check('notes'));
  for (const tools of [{ archive, notes }, { notes, archive }, { third, archive, notes }, { notes }, { archive, notes }, { archive }]) {
    write(gateway, { limits: { call_timeout_ms: 5000 }, tools });
    const [answer] = await Promise.all([ask(gateway, 'POST', '/reload-config'), ...Object.keys(tools).map(check)]);
    assert.equal(answer.status, 200, show(answer));
    for (const name of Object.keys(tools)) await until(`${name} answers`, () => check(name));
    assert.deepEqual(wrong, []);
  }
});

// Fault: a changed secret or option takes effect only after the server was removed and added again,
// or the catalogue is not updated.
both('pain-20 tool lists follow the profile, without unnecessary new connections', async (t, args) => {
  const log = t.path('log');
  const server = fake('--tool', 'a', '--tool', 'b', '--log', log);
  const gateway = await t.gateway({ mcpServers: { one: server } }, { args });
  const client = await t.http(gateway);
  await client.listen();
  assert.equal((await client.toolNames()).length, 2);
  write(gateway, { mcpServers: { one: { ...server, denyTools: ['b'] } } });
  await ask(gateway, 'POST', '/reload-config');
  await client.note('notifications/tools/list_changed');
  assert.deepEqual(await client.toolNames(), ['one__a']);
  await assert.rejects(client.tool('one__b'), /Tool not found/);
  write(gateway, { mcpServers: { one: server } });
  await ask(gateway, 'POST', '/reload-config');
  await until('both are listed', async () => (await client.toolNames()).length === 2);
  assert.equal(starts(log), 1);
});

both('A30 connectors are added, listed, rejected and removed in the user layer only', async (t, args) => {
  const gateway = await t.gateway({ mcpServers: { mine: fake('--tool', 'a') } }, { args });
  const client = await t.http(gateway);
  await client.listen();
  await client.tools();
  const before = readFileSync(gateway.config, 'utf8');
  const secret = 'canary-4711';
  const added = { id: 'extra', ...fake('--tool', 'x'), env: { TOKEN: secret } };
  const created = await ask(gateway, 'POST', '/mcp/connectors', added);
  assert.equal(created.status, 200, show(created));
  assert.deepEqual([created.id, created.source, created.direct, created.editable], ['extra', 'user', true, true]);
  assert.ok(!JSON.stringify(created).includes(secret));
  await client.note('notifications/tools/list_changed');
  await until('it is there', async () => (await client.toolNames()).includes('extra__x'));

  const list = await ask(gateway, 'GET', '/mcp/connectors');
  assert.ok(list.mode && list.profile_id);
  assert.deepEqual(list.servers.map((item) => item.id), ['extra', 'mine']);
  for (const item of list.servers) {
    for (const key of ['id', 'source', 'source_profile', 'direct', 'editable', 'server']) assert.ok(key in item, key);
  }
  const mine = list.servers.find((item) => item.id === 'mine');
  assert.deepEqual([mine.source, mine.editable, mine.server.command], ['profile', false, fake().command]);
  assert.ok(!JSON.stringify(list).includes(secret));

  assert.equal((await ask(gateway, 'POST', '/mcp/connectors', added)).status, 409);
  assert.equal((await ask(gateway, 'POST', '/mcp/connectors', { id: 'mine', command: 'x' })).status, 409);
  for (const bad of [{ command: 'x' }, { id: 'Upper', command: 'x' }, { id: 'a__b', command: 'x' }, { id: 'b', comand: 'x' }, { id: 'b', command: '${env:NOT_SET_HERE}', url: 'http://x' }, []]) {
    assert.equal((await ask(gateway, 'POST', '/mcp/connectors', bad)).status, 400, JSON.stringify(bad));
  }
  assert.equal((await ask(gateway, 'DELETE', '/mcp/connectors/mine')).status, 409);
  assert.equal((await ask(gateway, 'DELETE', '/mcp/connectors/unknown')).status, 404);
  assert.equal((await ask(gateway, 'POST', '/mcp/connectors/extra/call', {})).status, 404);
  assert.equal((await ask(gateway, 'POST', '/tools/call', {})).status, 404);
  const file = join(gateway.dir, 'config', 'bulkhead', 'connectors.json');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const removed = await ask(gateway, 'DELETE', '/mcp/connectors/extra');
  assert.deepEqual([removed.status, removed.server_id, removed.removed], [200, 'extra', true]);
  await until('it has gone', async () => !(await client.toolNames()).includes('extra__x'));
  assert.ok(!readFileSync(file, 'utf8').includes('extra'));
  assert.equal(readFileSync(gateway.config, 'utf8'), before);
});

both('concurrent changes are made one after another', async (t, args) => {
  const gateway = await t.gateway({ mcpServers: {} }, { args });
  const ids = ['a', 'b', 'c', 'd', 'e'];
  const answers = await Promise.all(ids.map((id) => ask(gateway, 'POST', '/mcp/connectors', { id, ...fake('--tool', 'x') })));
  assert.deepEqual(answers.map((answer) => answer.status), [200, 200, 200, 200, 200]);
  const list = await ask(gateway, 'GET', '/mcp/connectors');
  assert.deepEqual(list.servers.map((item) => item.id), ids);
});

both('metrics are served over TCP if configured, and nothing else at this address', async (t, args) => {
  const port = await lastingPort();
  const profile = { mcpServers: { one: fake('--tool', 'x') }, gateway: { metrics_listen: `127.0.0.1:${port}` } };
  const gateway = await t.gateway(profile, { args });
  assert.match(gateway.stderr(), new RegExp(`Metrics +http://127.0.0.1:${port}/metrics`));
  const at = (path, init) => fetch(`http://127.0.0.1:${port}${path}`, init);
  const answer = await at('/metrics');
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  await until('the server is ready', async () => /^bulkhead_server_ready\{server="one"\} 1$/m.test(await (await at('/metrics')).text()));
  for (const path of ['/status', '/', '/confirm/pending']) assert.equal((await at(path)).status, 404, path);
  assert.equal((await at('/metrics', { method: 'POST' })).status, 405);
  // Simulates a web page whose host name temporarily resolves to 127.0.0.1.
  const asked = (Host) => new Promise((done) => request({ port, host: '127.0.0.1', path: '/metrics', headers: { Host } }, (res) => { res.resume(); done(res.statusCode); }).end());
  assert.equal(await asked('evil.example:9464'), 403);
  assert.equal(await asked(`localhost:${port}`), 200);
  // Idle connections must not block others.
  const silent = await Promise.all(Array.from({ length: 5 }, () => new Promise((done) => { const socket = connect(port, '127.0.0.1', () => done(socket)); })));
  assert.equal((await at('/metrics')).status, 200);
  for (const socket of silent) socket.destroy();
  const second = runProgram(t, ['serve', '--config', gateway.config, '--listen', '127.0.0.1:0', ...args]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, new RegExp(`metrics_listen: .*127\\.0\\.0\\.1:${port}`));
});

both('the service socket rejects processes that the gateway has started', async (t, args) => {
  const out = t.path('out');
  const gateway = await t.gateway({ mcpServers: {} }, { args });
  const { socket } = await statusOf(gateway);
  assert.equal(statSync(socket).mode & 0o777, 0o600);
  // A server that sends a request to the service socket. A sandbox would hide the socket, so the
  // server has none, and the check of the socket itself must reject the request.
  const script = `curl -s --max-time 3 --unix-socket '${socket}' http://x/status > '${out}' 2>&1; echo "code $?" >> '${out}'; exec sleep 100`;
  await ask(gateway, 'POST', '/mcp/connectors', { id: 'evil', command: '/bin/sh', args: ['-c', script], sandbox: 'off' });
  await until('it has tried', () => existsSync(out) && /code \d+/.test(readFileSync(out, 'utf8')));
  assert.ok(!/code 0/.test(readFileSync(out, 'utf8')), readFileSync(out, 'utf8'));
  assert.ok(!readFileSync(out, 'utf8').includes('"pid"'));
});

run();

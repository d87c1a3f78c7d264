// Tests that each compartment has a separate process with limited contents, and that a crash has
// limited effects.
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import {
  chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync,
  renameSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { Gateway, Skip, alive, assert, build, descendants, fake, node, program, run, show, sleep, test, until } from './lib.mjs';
import { Records } from './records.mjs';
import { statusOf } from './status.mjs';

const compartment = async (gateway, name) =>
  (await statusOf(gateway)).compartments.find((one) => one.name === name);
const running = (gateway, name) =>
  until(`${name} runs`, async () => {
    const one = await compartment(gateway, name);
    return one?.state === 'running' && one;
  });
// Kills the process of a compartment and waits for its replacement.
async function crash(gateway, name) {
  const { pid } = await running(gateway, name);
  process.kill(pid, 'SIGKILL');
  return until(`${name} is running again`, async () => {
    const one = await compartment(gateway, name);
    return one?.state === 'running' && one.pid !== pid && one;
  });
}
// Sends a request to the service socket.
const get = (socketPath, path) =>
  new Promise((done, failed) => {
    request({ socketPath, path }, (res) => {
      let text = '';
      res.on('data', (chunk) => (text += chunk));
      res.on('end', () => done(JSON.parse(text)));
    })
      .on('error', failed)
      .end();
  });
const descriptors = (pid) =>
  readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return '';
    }
  });
const parentOf = (pid) => Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
const mayLook = process.getuid() === 0;

// Returns the inodes of the Unix sockets in /proc/net/unix whose path has this prefix.
const unixInodes = (prefix) =>
  readFileSync('/proc/net/unix', 'utf8').split('\n').map((line) => line.trim().split(/\s+/))
    .filter((words) => words[7]?.startsWith(prefix)).map((words) => words[6]);

test('A01 each compartment is a child of the supervisor and holds only what it needs', async (t) => {
  const http = await t.fakeHttp();
  const workspace = t.path('workspace');
  const guests = t.path('guests.sock');
  mkdirSync(workspace);
  writeFileSync(join(workspace, 'note.txt'), 'kept');
  const gateway = await t.gateway({
    mcpServers: { web: { type: 'http', url: http.url }, local: fake('--tool', 'a') },
    tools: { files: { plugin: 'builtin-files', path: workspace } },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
    transports: { http: { plugin: 'transport-http' }, guest: { plugin: 'transport-vsock', listen: `unix:${guests}` } },
  });
  const client = await t.http(gateway);
  assert.ok((await client.toolNames()).length >= 2);
  const records = new Records(gateway);
  // Each compartment has done some work, so files that it opens at first use are open.
  assert.equal((await client.tool('local__a')).content[0].text, 'fake/a');
  await client.tool('web__echo', { x: 1 });
  assert.match(show(await client.tool('files__file_read', { path: 'note.txt' })), /kept/);
  await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 3);
  const { compartments, socket } = await statusOf(gateway);
  const names = compartments.map((one) => one.name).sort();
  assert.deepEqual(names, ['aggregator', 'control', 'endpoint', 'files', 'launcher', 'telemetry.records']);
  for (const one of compartments) {
    assert.equal(one.state, 'running');
    assert.equal(parentOf(one.pid), gateway.pid);
    assert.ok(one.in_force.length > 0, `${one.name} is confined`);
    assert.ok(one.descriptors > 3 && one.memory_bytes > 1e6, `${one.name}: ${one.descriptors} descriptors`);
    const status = readFileSync(`/proc/${one.pid}/status`, 'utf8');
    assert.match(status, /^NoNewPrivs:\s+1$/m);
  }
  const pluginsOf = (name) => compartments.find((one) => one.name === name).plugins;
  assert.deepEqual(pluginsOf('aggregator'), ['connector-http', 'http-client'], 'H01');
  assert.deepEqual(pluginsOf('launcher'), ['connector-stdio']);
  assert.ok(pluginsOf('endpoint').includes('transport-http'));
  if (!mayLook) return t.skip('descriptors: only root may look into the processes');
  const open = Object.fromEntries(compartments.map((one) => [one.name, descriptors(one.pid)]));
  const holders = (which) => names.filter((name) => open[name].some(which));
  const within = (folder) => (target) => target === folder || target.startsWith(`${folder}/`);
  const sockets = (path) => {
    const inodes = unixInodes(path);
    assert.ok(inodes.length > 0, `${path} is listened on`);
    return (target) => inodes.some((inode) => target === `socket:[${inode}]`);
  };
  assert.deepEqual(holders(within(records.folder)), ['telemetry.records'], 'the session database');
  assert.deepEqual(holders(within(workspace)), ['files'], 'the workspace');
  assert.deepEqual(holders(sockets(socket)), ['control'], 'the service socket');
  assert.deepEqual(holders(sockets(guests)), ['endpoint'], 'the socket of guests');
  assert.deepEqual(holders((target) => /state|\.sock|\.db|gateway-\d+\//.test(target) && !within(records.folder)(target) && !within(workspace)(target)), [], 'nothing else of the state folder');
  for (const target of open.control) assert.match(target, /^(socket|pipe|anon_inode):|^\/dev\/null$/, 'no file');
  const users = compartments.map((one) => Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${one.pid}/status`, 'utf8'))[1]));
  const named = users.filter((uid) => uid !== 0);
  assert.equal(new Set(named).size, named.length, `a user for each role that has one: ${users}`);
});

// The aggregator runs the same program with a plugin.
test('A31 without the aggregator\'s plugin, its servers fail with the plugin\'s path, lists are empty and calls fail', async (t) => {
  const http = await t.fakeHttp();
  const missing = t.path('nowhere/connector-http.so');
  const gateway = await t.gateway({ connectors: { http: missing }, mcpServers: { web: { type: 'http', url: http.url } } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), []);
  await assert.rejects(client.tool('web__echo'), (error) => error.code !== undefined);
  await until('the terminal says so', () => gateway.stderr().includes(missing));
  const [server] = (await statusOf(gateway)).servers;
  assert.equal(server.state, 'failed');
  assert.ok(server.reason.includes(missing), server.reason);
});

test('A31 a missing plugin prevents the start and is reported with its path, unless it is optional', async (t) => {
  const plugin = t.path('nowhere/builtin-http.so');
  const gateway = new Gateway(t.dir, { tools: { web: { plugin } } });
  await assert.rejects(gateway.serve(), (error) => error.message.includes('"code":1') && error.message.includes(plugin));
  const without = await t.gateway({ tools: { web: { plugin, required: false } } });
  const client = await t.http(without);
  assert.deepEqual(await client.toolNames(), []);
  await assert.rejects(client.tool('web__fetch_http', { url: 'http://127.0.0.1/' }), (error) => error.code !== undefined);
  await until('the terminal says so', () => without.stderr().includes(plugin));
});

test('A31 the program\'s file may be removed while the gateway runs', async (t) => {
  const http = await t.fakeHttp();
  const copy = t.path('bin/bulkhead');
  mkdirSync(dirname(copy), { recursive: true });
  copyFileSync(program, copy);
  symlinkSync(join(build, 'lib'), t.path('lib'));
  const gateway = await t.gateway({ mcpServers: { web: { type: 'http', url: http.url } } }, { wrap: ['sh', '-c', 'shift; exec "$0" "$@"', copy] });
  const client = await t.http(gateway);
  await client.tool('web__echo', { x: 1 });
  renameSync(copy, `${copy}-old`);
  await crash(gateway, 'aggregator');
  await until('it answers', () => client.tool('web__echo', { x: 2 }));
});

// A stdio server whose tool tries to open the file at `path` and returns the result.
const prober = `
const { openSync } = require('node:fs');
const attempt = (path, how) => { try { openSync(path, how); return how + ' opened'; } catch (error) { return error.code; } };
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const result = method === 'initialize'
    ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'probe', version: '1' } }
    : method === 'tools/list' ? { tools: [{ name: 'open', inputSchema: { type: 'object' } }] }
      : { content: [{ type: 'text', text: ['r', 'r+', 'a'].map((how) => attempt(params.arguments.path, how)).join(' ') }] };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
});`;

// Compartments that may map the libraries of a plugin: only those that run the plugin.
const holdersOf = { sqlite3: ['telemetry.records'], gumbo: ['web'] };

test('A02 the session database: only its writer maps the library, and no server can open the files', async (t) => {
  const http = await t.fakeHttp();
  const workspace = t.path('workspace');
  mkdirSync(workspace);
  writeFileSync(join(workspace, 'note.txt'), 'kept');
  const gateway = await t.gateway({
    mcpServers: { remote: { type: 'http', url: http.url }, probe: { command: node, args: ['-e', prober] } },
    tools: { files: { plugin: 'builtin-files', path: workspace }, web: { plugin: 'builtin-http', allow_private: true, default: 'allow' } },
    telemetry: { records: { plugin: 'telemetry-sqlite', flush_ms: 20 } },
  });
  const client = await t.http(gateway);
  const records = new Records(gateway);
  // Each compartment has done some work, so libraries that it loads at first use are loaded.
  await client.tool('remote__echo', { x: 1 });
  await client.tool('files__file_read', { path: 'note.txt' });
  assert.match(show(await client.tool('web__fetch_http', { url: http.url })), /content/);
  const file = await until('a file of the database', () => records.files()[0]);
  const probed = await client.tool('probe__open', { path: file });
  assert.match(probed.content[0].text, /^(E[A-Z]+ ?){3}$/, 'no way of opening it');
  await records.until("SELECT count(*) FROM mcp_calls WHERE method = 'tools/call'", (n) => n === 4);
  // The commands can read the database.
  assert.match((await records.command('calls')).stdout, / probe +tools\/call +open +allowed /);
  if (!mayLook) return t.skip('maps: only root may look into the processes');
  const { compartments } = await statusOf(gateway);
  const owners = new Map(compartments.map((one) => [one.pid, one.name]));
  const all = [gateway.pid, ...descendants(gateway.pid)];
  for (const { pid, name } of compartments) assert.ok(all.includes(pid), name);
  const maps = all.map((pid) => [owners.get(pid) ?? (pid === gateway.pid ? 'supervisor' : `a server, ${pid}`), readFileSync(`/proc/${pid}/maps`, 'utf8')]);
  for (const [name, text] of maps) assert.match(text, / r-xp /, `${name}: its maps are read`);
  const holders = (library) => maps.filter(([, text]) => text.includes(`/lib${library}`)).map(([name]) => name).sort();
  for (const [library, names] of Object.entries(holdersOf)) assert.deepEqual(holders(library), names, library);
});

test('A03 the endpoint has no credentials and no network access', async (t) => {
  const http = await t.fakeHttp();
  const gateway = await t.gateway(
    { mcpServers: { web: { type: 'http', url: http.url, headers: { 'X-Canary': 'CANARY-${env:CANARY_VALUE}' } } } },
    { env: { CANARY_VALUE: '4711-header' } },
  );
  const client = await t.http(gateway);
  await client.toolNames();
  assert.ok(http.requests.some((request) => request.headers['x-canary'] === 'CANARY-4711-header'), 'the server got it');
  const endpoint = await compartment(gateway, 'endpoint');
  assert.ok(endpoint.in_force.some((part) => /network/.test(part)), 'an empty network');
  if (!mayLook) return t.skip('only root may look into the processes');
  for (const file of ['environ', 'cmdline']) {
    assert.doesNotMatch(readFileSync(`/proc/${endpoint.pid}/${file}`, 'latin1'), /4711-header/);
  }
});

test('A23 if the aggregator is killed, in-flight calls fail immediately and the next call works', async (t) => {
  const http = await t.fakeHttp();
  const gateway = await t.gateway({ mcpServers: { web: { type: 'http', url: http.url } } });
  const client = await t.http(gateway);
  await client.toolNames();
  const calls = Array.from({ length: 10 }, () => client.tool('web__hang').then(() => 'answered', (error) => error));
  await until('they are in flight', async () => (await statusOf(gateway)).in_flight === 10);
  await crash(gateway, 'aggregator');
  for (const outcome of await Promise.all(calls)) {
    assert.equal(outcome.code, -32603);
    assert.match(outcome.message, /web/);
  }
  await until('calls work again', async () => (await client.tool('web__echo', { text: 'x' })) !== undefined);
});

test('if the control compartment is killed, requests wait for its replacement and MCP clients are not affected', async (t) => {
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a', '--delay', 600) } });
  const client = await t.http(gateway);
  await client.toolNames();
  const before = await statusOf(gateway);
  const { pid } = await running(gateway, 'control');
  const call = client.tool('local__a');
  process.kill(pid, 'SIGSTOP');
  const answers = [1, 2, 3].map(() => get(before.socket, '/status'));
  await sleep(50);
  process.kill(pid, 'SIGKILL');
  for (const answer of await Promise.all(answers)) assert.equal(answer.pid, gateway.pid);
  assert.ok(await call);
  const after = (await statusOf(gateway)).compartments;
  for (const one of after) {
    const was = before.compartments.find(({ name }) => name === one.name);
    if (one.name === 'control') assert.ok(one.pid !== pid && one.restarts === was.restarts + 1);
    else assert.equal(one.pid, was.pid, one.name);
  }
});

test('pain-1 a restarted endpoint resumes its sessions', async (t) => {
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a') } });
  const client = await t.http(gateway);
  await client.tool('local__a');
  const after = await crash(gateway, 'endpoint');
  assert.equal(after.restarts, 1);
  assert.equal((await client.tool('local__a')).content[0].text, 'fake/a');  // the same session ID
});

// Fault: throughput collapses under load, or the processor remains busy afterwards.
test('pain-12 all calls under load complete, and the gateway is idle afterwards', async (t) => {
  const web = await t.fakeHttp();
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a'), web: { url: web.url } } });
  const clients = await Promise.all(Array.from({ length: 64 }, () => t.http(gateway)));
  const [name] = (await clients[0].toolNames()).filter((one) => one.startsWith('web__'));
  const answers = await Promise.all(clients.flatMap((client) =>
    Array.from({ length: 32 }, (_, i) => client.tool(i % 2 ? 'local__a' : name))));
  assert.equal(answers.filter((one) => one.content.length > 0).length, 64 * 32);
  const tree = [gateway.pid, ...descendants(gateway.pid)];
  // Returns the processor time of each process (user and system, in clock ticks) and how often it
  // was scheduled.
  const used = () => tree.map((pid) => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /, '').split(' ');
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const turns = [...status.matchAll(/voluntary_ctxt_switches:\s+(\d+)/g)].reduce((sum, one) => sum + Number(one[1]), 0);
    return { ticks: Number(stat[11]) + Number(stat[12]), turns };
  }).reduce((sum, one) => ({ ticks: sum.ticks + one.ticks, turns: sum.turns + one.turns }));
  // Outstanding work finishes shortly after the load, later on a slow machine.
  await until('a second without a call is idle', async () => {
    const before = used();
    await sleep(1000);
    const after = used();
    const [ticks, turns] = [after.ticks - before.ticks, after.turns - before.turns];
    if (ticks > 10 || turns > 10 * tree.length) throw new Error(`${ticks} ticks, ${turns} turns of ${tree.length} processes`);
    return true;
  }, 15_000);
});

test('the files compartment runs as the owner of its directory', async (t) => {
  if (process.getuid() !== 0) throw new Skip('only root can become another user');
  const uid = 60998;
  const above = mkdtempSync('/tmp/bulkhead-owner-');
  t.defer(() => rmSync(above, { recursive: true }));
  chmodSync(above, 0o755);
  const folder = `${above}/w`;
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(`${folder}/a.txt`, 'hello');
  for (const path of [folder, `${folder}/a.txt`]) chownSync(path, uid, uid);
  const gateway = await t.gateway({ tools: { files: { plugin: 'builtin-files', path: folder } } });
  const client = await t.http(gateway);
  assert.match(JSON.stringify(await client.tool('files__file_read', { path: 'a.txt' })), /hello/);
  const { pid } = await compartment(gateway, 'files');
  assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), new RegExp(`^Uid:\\s+${uid}\\s`, 'm'));
});

test('a session that its client has closed is not resumed', async (t) => {
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a') } });
  const client = await t.http(gateway);
  const sessionId = client.session;
  const headers = { 'mcp-session-id': sessionId, 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });
  assert.equal((await fetch(gateway.url, { method: 'POST', headers, body })).status, 200);
  assert.ok((await fetch(gateway.url, { method: 'DELETE', headers })).ok);
  assert.equal((await fetch(gateway.url, { method: 'POST', headers, body })).status, 404);
  const forged = sessionId.slice(0, 40) + (sessionId[40] === 'A' ? 'B' : 'A') + sessionId.slice(41);
  await crash(gateway, 'endpoint');
  assert.equal((await fetch(gateway.url, { method: 'POST', headers: { ...headers, 'mcp-session-id': forged }, body })).status, 404);
});

test('the builtin tools fetch pages: a tool and a service with the same name share a compartment', async (t) => {
  const web = createServer((_, answer) => answer.end('hello from afar')).listen(0, '127.0.0.1');
  t.defer(() => web.close());
  await once(web, 'listening');
  const gateway = await t.gateway({ tools: { http: { plugin: 'builtin-http', allow_private: true } } });
  const client = await t.http(gateway);
  const result = await client.tool('http__fetch_http', { url: `http://127.0.0.1:${web.address().port}/` });
  assert.match(JSON.stringify(result), /hello from afar/);
});

test('if the launcher is killed, its servers exit, and both are restarted', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a', '--log', log) } });
  const client = await t.http(gateway);
  await client.tool('local__a');
  const before = descendants((await running(gateway, 'launcher')).pid);
  assert.ok(before.length > 0);
  await crash(gateway, 'launcher');
  await until('the old server has ended', () => !before.some(alive));
  await until('calls work again', async () => (await client.tool('local__a')).content[0].text === 'fake/a');
});

test('if the supervisor is killed, all processes exit', async (t) => {
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a') } });
  const client = await t.http(gateway);
  await client.tool('local__a');
  const below = descendants(gateway.pid);
  assert.ok(below.length >= 3);
  gateway.mayExit = true;
  process.kill(gateway.pid, 'SIGKILL');
  await gateway.exited;
  await until('nothing is left', () => !below.some(alive));
});

test('an unresponsive compartment delays a reload only up to its deadline', async (t) => {
  const gateway = await t.gateway({ mcpServers: { one: fake('--tool', 'a') } });
  const client = await t.http(gateway);
  await client.tool('one__a');
  const endpoint = await running(gateway, 'endpoint');
  process.kill(endpoint.pid, 'SIGSTOP');
  assert.equal((await compartment(gateway, 'endpoint')).pid, endpoint.pid);
  process.kill(endpoint.pid, 'SIGCONT');
  const launcher = await running(gateway, 'launcher');
  process.kill(launcher.pid, 'SIGSTOP');
  writeFileSync(gateway.config, JSON.stringify({ mcpServers: { two: fake('--tool', 'b') } }));
  process.kill(gateway.pid, 'SIGHUP');
  await until('it was killed', () => !alive(launcher.pid), 30_000);
  await until('the reload is over', async () => (await client.toolNames()).join() === 'two__b', 30_000);
  assert.equal((await client.tool('two__b')).content[0].text, 'fake/b');
}, { timeout: 90_000 });

test('H01 the profile defines the compartments', async (t) => {
  const only = await t.gateway({ mcpServers: { local: fake('--tool', 'a') } });
  assert.deepEqual((await statusOf(only)).compartments.map((one) => one.name), ['endpoint', 'control', 'launcher']);
  const none = await t.gateway({ mcpServers: { local: fake('--tool', 'a') } }, { args: ['--single-process'] });
  assert.deepEqual((await statusOf(none)).compartments, []);
});

test('a server in a private compartment crashes alone', async (t) => {
  const [one, two] = [await t.fakeHttp(), await t.fakeHttp()];
  const gateway = await t.gateway({
    mcpServers: { one: { type: 'http', url: one.url, compartment: 'own' }, two: { type: 'http', url: two.url } },
  });
  const client = await t.http(gateway);
  await client.toolNames();
  const names = (await statusOf(gateway)).compartments.map((entry) => entry.name);
  assert.deepEqual(names.sort(), ['aggregator', 'aggregator.one', 'control', 'endpoint']);
  process.kill((await running(gateway, 'aggregator.one')).pid, 'SIGSTOP');
  t.defer(async () => process.kill((await compartment(gateway, 'aggregator.one')).pid, 'SIGCONT'));
  assert.ok(await client.tool('two__echo', { text: 'x' }));
});

test('pain-18 the address stays open while the endpoint is restarted', async (t) => {
  const gateway = await t.gateway({ mcpServers: { local: fake('--tool', 'a') } });
  const { pid } = await running(gateway, 'endpoint');
  process.kill(pid, 'SIGKILL');
  const refused = [];
  for (let i = 0; i < 20; ++i) {
    await fetch(gateway.url, { method: 'OPTIONS' }).catch((error) => {
      if (error.cause?.code === 'ECONNREFUSED') refused.push(error);
    });
    await sleep(5);
  }
  assert.equal(refused.length, 0);
});

await run();

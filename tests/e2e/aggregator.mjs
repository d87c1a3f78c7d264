// Tests the protocol of `bulkhead aggregator` with both codecs (rows A04 to A15, A18, A21, A22 and
// A32).
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { Gateway, alive, assert, descendants, fake, program, run, sanitized, test, until } from './lib.mjs';
import { Aggregator } from './aggregator_driver.mjs';

const codecs = ['ndjson', 'msgpack'];
const inBoth = (name, body) => {
  for (const codec of codecs) test(`${name} (${codec})`, (t) => body(t, codec));
};
const server = (name, ...args) => ({ name, ...fake(...args) });
const names = (reply) => reply.servers.map((each) => each.name);
const has = (items, ...fields) => {
  for (const item of items) for (const field of fields) assert.ok(field in item, `${field} in ${JSON.stringify(item)}`);
};
const lines = (path) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n') : []);
// Returns the requests with this method in the log of fake_mcp.
const received = (path, method) =>
  lines(path).filter((line) => line.startsWith('<') && line.includes(`"${method}"`)).map((line) => JSON.parse(line.slice(1)));
async function gone(pids, ms = 2000) {
  await until(`processes ${pids} end`, () => !pids.some(alive), ms);
}

inBoth('A04 the first message is the array of definitions', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([server('a', '--tool', 'say')]);
  const { servers } = await agg.request('list_servers');
  assert.equal(servers.length, 1);
  assert.equal(servers[0].name, 'a');
  assert.equal(servers[0].connected, true);
});

test('the aggregator confines itself before it reads input: no new privileges, no capabilities, a system-call filter', async (t) => {
  const agg = new Aggregator(t).define([server('a', '--tool', 'say')]);
  await agg.request('list_servers');
  const status = readFileSync(`/proc/${agg.pid}/status`, 'utf8');
  const field = (name) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)[1];
  assert.equal(field('NoNewPrivs'), '1');
  // Root keeps CAP_SETFCAP, which the user namespaces of servers require.
  const setfcap = 1n << 31n;
  assert.equal(BigInt(`0x${field('CapEff')}`) & ~setfcap, 0n);
  if (!sanitized) assert.equal(field('Seccomp'), '2');
});

test('A04 any other first message is an error, and the aggregator exits', async (t) => {
  const agg = new Aggregator(t, { codec: 'ndjson' });
  const reply = await agg.request('list_servers');
  assert.match(reply.error, /first message/);
  await agg.exited;
  assert.match(agg.stderr, /first message is not the array/);
});

test('A05 NDJSON: a line of 1,048,577 bytes is logged, and the next line is processed', async (t) => {
  const agg = new Aggregator(t, { codec: 'ndjson', args: ['--codec', 'ndjson'] });
  agg.define([server('a', '--tool', 'say')]);
  const start = '{"id":77,"method":"list_tools","x":"';
  const line = `${start}${'y'.repeat(1_048_577 - start.length - 2)}"}`;
  assert.equal(line.length, 1_048_577);
  agg.raw(`${line}\n`);
  const fits = await agg.request('list_tools', { x: 'y'.repeat(1_000_000) });
  assert.equal(fits.tools.length, 1);
  const { tools } = await agg.request('list_tools');
  assert.equal(tools[0].namespaced_name, 'a__say');
  assert.ok(!agg.order.includes(77));
  assert.match(agg.stderr, /skipped: it is longer than 1 MiB/);
});

test('A06 MessagePack: the same replies as NDJSON', async (t) => {
  const replies = [];
  for (const codec of codecs) {
    const agg = new Aggregator(t, { codec });
    agg.define([server('a', '--tool', 'say', '--tools', 20, '--resource', 'x://y', '--prompt', 'p', '--result', 's={"content":[],"n":[1,-7,2.5,null,1e300]}', '--tool', 's')]);
    const all = [];
    for (const method of ['list_servers', 'list_tools', 'list_resources', 'list_prompts']) all.push(await agg.request(method));
    all.push(await agg.call('a__say', { deep: [[[{ ä: '😀' }]]], long: 'x'.repeat(70_000) }));
    all.push(await agg.call('a__s'), await agg.call('none'));
    replies.push(all);
  }
  assert.deepEqual(replies[0], replies[1]);
  assert.equal(replies[0][4].result.echo.long.length, 70_000);
});

test('A06 MessagePack: 16 MiB + 1 is rejected without allocating it, and in-flight calls complete', async (t) => {
  const agg = new Aggregator(t, { args: ['--codec', 'msgpack'] }).define([server('a', '--tool', 'slow', '--delay', 'slow=500')]);
  await agg.request('list_servers');
  const slow = agg.call('a__slow');
  agg.raw(Buffer.from([1, 0, 0, 1, 0, 0, 0, 0]));
  let peak = Infinity;
  await until('the refusal', () => {
    const refused = /declares a length of more than 16 MiB/.test(agg.stderr);
    // It ends when the call completes, so it may have ended already.
    if (existsSync(`/proc/${agg.pid}/status`)) peak = Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${agg.pid}/status`, 'utf8'))?.[1] ?? peak);
    return refused;
  });
  assert.ok((await slow).result);
  assert.equal((await agg.exited).code, 0);
  // The memory of the sanitizer would be counted.
  if (!sanitized) assert.ok(peak < 64 * 1024, `${peak} kB`);
});

inBoth('A06 large results pass in MessagePack; NDJSON reports an error', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([server('a', '--tool', 'big', '--size', 'big=3000000')]);
  const reply = await agg.call('a__big');
  if (codec === 'msgpack') assert.equal(reply.result.content[0].text.length, 3_000_000);
  else assert.match(reply.error, /larger than a line of 1 MiB/);
});

inBoth('A07 A18 list_servers has all fields, and disabled and failed servers are listed as not connected', async (t, codec) => {
  const log = t.path('log');
  const agg = new Aggregator(t, { codec }).define([
    { ...server('good', '--tool', 'x', '--resource', 'r://1', '--prompt', 'p'), source: 'manual', url: '', headers: {}, bearer_token: null },
    { ...server('off', '--log', log), enabled: false, source: 'claude' },
    { ...server('odd', '--log', log), unsupported_stdio: true },
    { name: 'bad', command: '/nowhere/server', source: 'profile' },
    { name: 'web', url: 'http://127.0.0.1:9/mcp', source: 'corp', command: null, args: [], env: {} },
  ]);
  const { servers } = await agg.request('list_servers');
  assert.deepEqual(servers.map((s) => [s.name, s.connected]),
    [['good', true], ['off', false], ['odd', false], ['bad', false], ['web', false]]);
  has(servers, 'name', 'url', 'enabled', 'source', 'is_stdio', 'connected', 'tool_count', 'resource_count', 'prompt_count');
  const [good, off, , bad, web] = servers;
  assert.deepEqual([good.tool_count, good.resource_count, good.prompt_count], [1, 1, 1]);
  assert.deepEqual([good.source, good.enabled, good.is_stdio, good.url], ['manual', true, true, '']);
  assert.deepEqual([off.source, off.enabled], ['claude', false]);
  assert.deepEqual([web.is_stdio, web.url, web.source], [false, 'http://127.0.0.1:9/mcp', 'corp']);
  assert.match(bad.reason, /nowhere/);
  assert.ok(!existsSync(log));
});

inBoth('A08 list_tools has all fields', async (t, codec) => {
  const tool = { name: 'full', description: 'does', inputSchema: { type: 'object', properties: { a: {} } },
    annotations: { title: 'T', readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } };
  const agg = new Aggregator(t, { codec }).define([
    { ...server('a', '--tool-json', JSON.stringify(tool), '--tool', 'my__tool'), timeout_secs: 7 },
    server('b', '--tool', 'plain'),
  ]);
  const { tools } = await agg.request('list_tools');
  has(tools, 'namespaced_name', 'original_name', 'description', 'input_schema', 'server_name', 'annotations');
  const full = tools.find((each) => each.original_name === 'full');
  assert.deepEqual(full, {
    namespaced_name: 'a__full', original_name: 'full', description: 'does', input_schema: tool.inputSchema, server_name: 'a',
    annotations: { title: 'T', read_only_hint: true, destructive_hint: false, idempotent_hint: true, open_world_hint: false },
    timeout_secs: 7,
  });
  assert.equal(tools.find((each) => each.namespaced_name === 'a__my__tool').original_name, 'my__tool');
  assert.ok(!('timeout_secs' in tools.find((each) => each.server_name === 'b')));
});

inBoth('A09 list_resources and list_prompts work; a server without resources or prompts is not an error', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([
    server('s', '--resource', 'file:///x/y', '--prompt', 'p'), server('bare', '--tool', 'x')]);
  const { resources } = await agg.request('list_resources');
  const { prompts } = await agg.request('list_prompts');
  assert.deepEqual(resources.map((r) => [r.namespaced_uri, r.original_uri, r.server_name]),
    [['capsem://s/file:///x/y', 'file:///x/y', 's']]);
  has(resources, 'name', 'description', 'mime_type');
  assert.deepEqual(prompts.map((p) => [p.namespaced_name, p.original_name, p.server_name]), [['s__p', 'p', 's']]);
  assert.ok(Array.isArray(prompts[0].arguments));
});

inBoth('A09 without servers, lists are empty', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([]);
  for (const kind of ['servers', 'tools', 'resources', 'prompts']) {
    assert.deepEqual((await agg.request(`list_${kind}`))[kind], []);
  }
});

inBoth('A10 call_tool calls the tool under its original name, with unchanged arguments', async (t, codec) => {
  const log = t.path('log');
  const agg = new Aggregator(t, { codec }).define([server('echo', '--tool', 'say', '--log', log)]);
  const args = { t: 'x', n: 1.5, deep: [{ ä: null }] };
  assert.ok((await agg.call('echo__say', args)).result.content[0].text);
  for (const empty of [{}, [], 'text', null]) assert.ok((await agg.call('echo__say', empty)).result);
  const calls = received(log, 'tools/call');
  assert.deepEqual(calls[0].params.arguments, args);
  assert.deepEqual(new Set(calls.map((call) => call.params.name)), new Set(['say']));
  for (const call of calls.slice(1)) assert.deepEqual(call.params.arguments ?? {}, {});
});

inBoth('A10 errors are texts that name the server', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([
    server('dies', '--tool', 'now', '--die', 'now'), server('good', '--tool', 'say', '--error', 'bad={"code":-32001,"message":"not today"}', '--tool', 'bad')]);
  assert.match((await agg.call('dies__now')).error, /dies/);
  assert.match((await agg.call('good__bad')).error, /not today/);
  assert.match((await agg.call('good__none')).error, /good__none/);
  assert.match((await agg.call('nobody__x')).error, /nobody__x/);
  assert.ok((await agg.call('good__say')).result);
});

inBoth('A11 read_resource and get_prompt pass the original uri and name', async (t, codec) => {
  const log = t.path('log');
  const agg = new Aggregator(t, { codec }).define([
    server('s', '--resource', 'db://host/a/b?c=d', '--prompt', 'p', '--log', log)]);
  assert.ok((await agg.request('read_resource', { uri: 'capsem://s/db://host/a/b?c=d' })).result.contents);
  assert.ok((await agg.request('get_prompt', { name: 's__p', arguments: { x: 'y' } })).result.messages);
  assert.equal(received(log, 'resources/read')[0].params.uri, 'db://host/a/b?c=d');
  assert.deepEqual(received(log, 'prompts/get')[0].params, { name: 'p', arguments: { x: 'y' } });
  assert.ok((await agg.request('read_resource', { uri: 'nothing' })).error);
});

inBoth('A12 refresh ends removed servers, starts new servers, keeps unchanged servers, and an in-flight call completes', async (t, codec) => {
  const stay = server('stay', '--tool', 'x');
  const agg = new Aggregator(t, { codec }).define([stay, server('old', '--tool', 'slow', '--delay', 'slow=400')]);
  await agg.request('list_servers');
  const before = descendants(agg.pid);
  const slow = agg.call('old__slow');
  const refreshed = await agg.request('refresh', { servers: [stay, server('new', '--tool', 'y')] });
  assert.equal(refreshed.ok, true);
  const after = descendants(agg.pid);
  const reply = await slow;
  assert.ok(reply.result || reply.error);
  const { servers } = await agg.request('list_servers');
  assert.deepEqual(servers.map((s) => [s.name, s.connected]), [['stay', true], ['new', true]]);
  assert.ok((await agg.call('new__y')).result);
  assert.match((await agg.call('old__slow')).error, /old__slow/);
  const kept = before.filter(alive);
  assert.ok(kept.length > 0 && kept.length < before.length, `kept ${kept} of ${before}`);
  assert.ok(kept.every((pid) => after.includes(pid)));
});

inBoth('A12 refresh ignores and reports invalid definitions', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([]);
  assert.match((await agg.request('refresh', { servers: {} })).error, /array/);
  const canary = 'CANARY-93';
  const reply = await agg.request('refresh', { servers: [
    { name: 'a__b', command: 'x' }, { name: '', command: 'x' }, { name: 'builtin', command: 'x' },
    { name: 'h', url: 'http://127.0.0.1:9/', headers: { Accept: canary } }, server('good', '--tool', 'x')] });
  assert.equal(reply.ok, true);
  assert.deepEqual(names(await agg.request('list_servers')), ['good']);
  assert.equal(agg.stderr.match(/is skipped/g).length, 4);
  assert.ok(!agg.stderr.includes(canary));
});

inBoth('A13 shutdown answers ok, exits with 0 and leaves no child', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([server('a', '--tool', 'hang', '--hang', 'tool:hang'), server('b', '--ignore-eof', '--ignore-term', '--tool', 'x')]);
  await agg.request('list_servers');
  const children = descendants(agg.pid);
  assert.ok(children.length >= 2);
  const hanging = agg.call('a__hang');
  assert.equal((await agg.request('shutdown')).ok, true);
  assert.match((await hanging).error, /shutting down/);
  assert.deepEqual(await agg.exited, { code: 0, signal: null });
  await gone(children);
});

inBoth('A13 shutdown works while servers are still connecting', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([server('slow', '--hang', 'initialize')]);
  const waiting = agg.request('list_tools');
  assert.equal((await agg.request('shutdown')).ok, true);
  assert.match((await waiting).error, /shutting down/);
  assert.equal((await agg.exited).code, 0);
});

test('A14 when the input is closed, everything exits within 2 s, even stubborn servers with an in-flight call', async (t) => {
  const agg = new Aggregator(t).define([server('a', '--tool', 'hang', '--hang', 'tool:hang', '--ignore-eof', '--ignore-term')]);
  await agg.request('list_servers');
  const children = descendants(agg.pid);
  const hanging = agg.call('a__hang');
  agg.closeInput();
  await gone([agg.pid, ...children]);
  assert.match((await hanging).error, /input was closed/);
  assert.equal((await agg.exited).code, 0);
});

test('A14 when the input is closed, an HTTP server that does not close its session causes no delay', async (t) => {
  const http = await t.fakeHttp({ hangDelete: true });
  const agg = new Aggregator(t).define([{ name: 'web', url: http.url }]);
  assert.equal((await agg.request('list_servers')).servers[0].connected, true);
  const hanging = agg.call('web__hang');
  agg.closeInput();
  await gone([agg.pid]);
  assert.match((await hanging).error, /input was closed/);
  assert.equal(http.deleted, 1);
});

test('A14 if the parent is killed while another process holds the pipes open, everything exits within 2 s', async (t) => {
  const command = ['sh', '-c', 'exec 3<&0; "$BULKHEAD" aggregator <&3 & wait'];
  const agg = new Aggregator(t, { command }).define([server('a', '--tool', 'x', '--ignore-eof', '--ignore-term')]);
  await agg.request('list_servers');
  const below = descendants(agg.pid);
  assert.ok(below.length >= 2);
  agg.child.kill('SIGKILL');
  await gone(below);
});

inBoth('A15 each of 100 concurrent calls gets its own payload, some out of order', async (t, codec) => {
  const delays = Array.from({ length: 10 }, (_, i) => ['--tool', `t${i}`, '--delay', `t${i}=${(9 - i) * 20}`]).flat();
  const agg = new Aggregator(t, { codec }).define([server('a', ...delays)]);
  await agg.request('list_tools');
  const first = agg.order.length;
  const replies = await Promise.all(Array.from({ length: 100 }, (_, i) => agg.call(`a__t${i % 10}`, { i })));
  assert.deepEqual(replies.map((reply) => reply.result.echo.i), Array.from({ length: 100 }, (_, i) => i));
  assert.equal(new Set(replies.map((reply) => reply.id)).size, 100);
  const order = agg.order.slice(first);
  assert.ok(order.some((id, i) => i > 0 && id < order[i - 1]));
});

inBoth('A21 with garbage between two requests, both are answered and one line is logged', async (t, codec) => {
  const agg = new Aggregator(t, { codec }).define([server('a', '--tool', 'x')]);
  const one = agg.request('list_tools');
  agg.raw(codec === 'ndjson' ? '{"id":9,"meth\n' : Buffer.from([0, 0, 0, 4, 0x81, 0xa1, 0x61, 0xc1]));
  const two = agg.request('list_tools');
  assert.equal((await one).tools.length, 1);
  assert.equal((await two).tools.length, 1);
  const skipped = () => agg.stderr.match(/a message is skipped/g)?.length;
  await until('the line is logged', skipped);
  assert.match((await agg.request('dance')).error, /unknown method/);
  assert.match((await agg.request('call_tool', {})).error, /params.name/);
  assert.equal(skipped(), 1);
});

inBoth('A22 a result that is not UTF-8, or too large for the codec: an error with its id, and the next call works', async (t, codec) => {
  // The shell passes the bytes unchanged as an argument.
  const agg = new Aggregator(t, { codec }).define([
    { name: 'a', command: 'sh', args: ['-c', `exec "$0" --tool good --tool bad --tool big --size big=17000000 --result bad="$(printf '{"content":[{"type":"text","text":"\\377"}]}')"`, fake().command] }]);
  const bad = await agg.call('a__bad');
  assert.ok(bad.error, JSON.stringify(bad).slice(0, 300));
  const big = await until('the server is back', async () => {
    const reply = await agg.call('a__big');
    return /larger than/.test(reply.error) && reply;
  }, 10_000);
  assert.match(big.error, codec === 'ndjson' ? /1 MiB/ : /16 MiB/);
  assert.ok((await agg.call('a__good')).result);
  assert.equal(agg.exit, undefined);
});

test('A32 a second instance with the same lock exits with 0 without reading its input', async (t) => {
  const lock = t.path('aggregator.lock');
  const first = new Aggregator(t, { args: ['--lock-path', lock] }).define([server('a', '--tool', 'x')]);
  await first.request('list_servers');
  assert.equal(Number(readFileSync(lock, 'utf8')), first.pid);
  const second = spawnSync('sh', ['-c', `printf 'left' | { "${program}" aggregator --lock-path "${lock}"; echo "rc=$?"; cat; }`],
    { encoding: 'utf8', timeout: 10_000 });
  assert.equal(second.stdout, 'rc=0\nleft');
  assert.ok((await first.call('a__x')).result);
  await first.request('shutdown');
  await first.exited;
  // A lock file that remains after a process has exited is not locked.
  const third = new Aggregator(t, { args: ['--lock-path', lock] }).define([]);
  assert.deepEqual((await third.request('list_servers')).servers, []);
});

test('A32 with a foreign parent, exit 0 without reading the input; a lock that cannot be created is an error', async (t) => {
  const env = new Gateway(t.dir, undefined).env();
  const tell = (args) => spawnSync('sh', ['-c', `printf 'left' | { "${program}" aggregator ${args}; echo "rc=$?"; cat; }`],
    { encoding: 'utf8', timeout: 10_000, env });
  assert.equal(tell(`--parent-pid ${process.pid}`).stdout, 'rc=0\nleft');
  assert.equal(tell('--parent-pid 4194303').stdout, 'rc=0\nleft');
  const loud = tell(`--lock-path ${t.dir}/no/such/folder/lock`);
  assert.equal(loud.stdout, 'rc=1\nleft');
  assert.match(loud.stderr, /lock file .*No such file/);
  assert.equal(tell(`--lock-path ${t.dir}`).stdout, 'rc=1\nleft');
});

test('A32 the process of --parent-pid is watched', async (t) => {
  const agg = new Aggregator(t, { args: ['--parent-pid', String(process.pid)] }).define([server('a', '--tool', 'x')]);
  assert.ok((await agg.call('a__x')).result);
});

test('a profile changes limits and adds servers; its transports are ignored, its server names are reserved', async (t) => {
  const gateway = new Gateway(t.dir, `
    [naming]
    separator = "."
    [transports.web]
    plugin = "transport-http"
    listen = "127.0.0.1:1"
    [mcpServers.own]
    command = ${JSON.stringify(fake().command)}
    args = ["--tool", "x"]
  `);
  const agg = new Aggregator(t, { args: ['--config', gateway.config] }).define([server('a', '--tool', 'x'), server('own', '--tool', 'y')]);
  const { tools } = await agg.request('list_tools');
  assert.deepEqual(tools.map((tool) => tool.namespaced_name).sort(), ['a.x', 'own.x']);
  assert.match(agg.stderr, /server "own" is skipped: the profile or another plugin already uses this name/);
});

await run();

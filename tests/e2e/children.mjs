// Tests the processes of servers: sandbox, number, lifetime and complete removal.
import { existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alive, assert, descendants, fake, fakeMcp, filesBelow, node, patience, npmServer, processesWith, run, runProgram, show, sleep, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const quickly = { retry_min_ms: 50, retry_max_ms: 150, grace_ms: 100 };
const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
// Returns the environment of a process, or an empty string if even its owner cannot read it.
const environment = (pid) => {
  try {
    return read(`/proc/${pid}/environ`);
  } catch (error) {
    if (error.code !== 'EACCES' || process.getuid() === 0) throw error;
    return '';
  }
};
const starts = (log) => read(log).split('\n').filter((line) => line.startsWith('! start')).length;
const calls = (text, tool) => text.split('\n').filter((line) => line.startsWith('< ') && line.includes('tools/call') && line.includes(`"${tool}"`)).length;
const zombies = (pid) => descendants(pid).filter((child) => !alive(child));

// Fault: sessions, reconnects and crashes leave processes behind, or wrappers (npx, sh) leave the
// programs that they started, until the machine runs out of memory.
test('pain-3 processes do not accumulate', async (t) => {
  const [log, wrapped] = [t.path('log'), t.path('wrapped')];
  const gateway = await t.gateway({
    limits: quickly,
    mcpServers: {
      plain: fake('--tool', 'a', '--tool', 'die', '--die', 'die', '--log', log),
      // A wrapper that starts the server in a separate session, and also a daemon.
      wrapped: { command: '/bin/sh', args: ['-c', `setsid sleep 1000 & "$0" "$@"`, fakeMcp, '--tool', 'b', '--log', wrapped] },
    },
  });
  for (let round = 0; round < 12; ++round) {
    const client = await t.http(gateway);
    await client.toolNames();
    await until('both answer', async () => (await client.tool('plain__a')) && (await client.tool('wrapped__b')));
    if (round % 5 === 0) await client.tool('plain__die').catch(() => {});
    if (round % 7 === 0) process.kill(processesWith(wrapped).at(-1), 'SIGKILL');
    await client.close();
  }
  await until('one of each is left', () => processesWith(log).length === 1 && processesWith(`\0--log\0${wrapped}`).length <= 2);
  await until('no zombies are left', () => zombies(gateway.pid).length === 0);
  const below = descendants(gateway.pid).map((pid) => read(`/proc/${pid}/cmdline`)).filter((line) => line.startsWith('sleep'));
  assert.ok(below.length <= 1, `daemons of ended wrappers: ${below.length}`);
  const left = descendants(gateway.pid);
  await gateway.stop();
  await until('all have ended', () => !left.some(alive));
}, { timeout: 90_000 });

// Fault: each call or each client starts a process or container.
test('pain-4 many concurrent calls start no process', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { up: fake('--tool', 'a', '--delay', 'a=50', '--log', log) } });
  const clients = await Promise.all(Array.from({ length: 10 }, () => t.http(gateway)));
  await Promise.all(clients.map((client) => client.toolNames()));
  await Promise.all(clients.flatMap((client) => Array.from({ length: 20 }, () => client.tool('up__a'))));
  assert.equal(starts(log), 1);
  assert.equal(calls(read(log), 'a'), 200);
  assert.equal(processesWith(log).length, 1);
  assert.deepEqual(zombies(gateway.pid), []);
});

// Fault: the same server runs once for each user or namespace.
test('pain-23 clients share a server; a per-client server stops with its client', async (t) => {
  const [shared, own] = [t.path('shared'), t.path('own')];
  const gateway = await t.gateway({
    mcpServers: { shared: fake('--tool', 'a', '--log', shared), own: { ...fake('--tool', 'b', '--log', own), session: 'per-client' } },
  });
  const clients = await Promise.all(Array.from({ length: 6 }, () => t.http(gateway)));
  for (const client of clients) await Promise.all([client.tool('shared__a'), client.tool('own__b')]);
  assert.equal(processesWith(shared).length, 1);
  assert.ok(processesWith(own).length >= 6);
  for (const client of clients) await client.close();
  await until('those of the clients have ended', () => processesWith(own).length <= 1);
  assert.equal(processesWith(shared).length, 1);
});

// Returns the state of each server in `bulkhead status`: { name: state }.
const statesOf = async (gateway) => Object.fromEntries((await statusOf(gateway)).servers.map((entry) => [entry.name, entry.state]));

test('F06 a lazy server starts when it is called, and its list is stored', async (t) => {
  const [log, log2] = [t.path('log'), t.path('log2')];
  const lazy = (file, tool) => ({ ...fake('--tool', tool, '--log', file), start: 'lazy', idle_stop_ms: 300 });
  const gateway = await t.gateway({ mcpServers: { lazy: lazy(log, 'a'), lazy2: lazy(log2, 'b') } });
  const none = { lazy: 'idle', lazy2: 'idle' };
  assert.deepEqual(await statesOf(gateway), none);
  const client = await t.http(gateway);
  assert.deepEqual([starts(log), starts(log2)], [0, 0], 'a client that only connects starts nothing');
  assert.deepEqual(await statesOf(gateway), none);
  assert.equal((await client.tool('lazy__a')).content[0].text, 'fake/a');
  assert.deepEqual([starts(log), starts(log2)], [1, 0], 'the other one is not started');
  await until('it ends when it is idle', () => processesWith(log).length === 0);
  await until('the status shows it', async () => (await statesOf(gateway)).lazy === 'idle');
  const other = await t.http(gateway);
  assert.deepEqual(await other.toolNames(), ['lazy__a', 'lazy2__b']);
  assert.deepEqual([starts(log), starts(log2)], [1, 1], 'listing starts the one whose list is not known');
  await until('both are idle', async () => JSON.stringify(await statesOf(gateway)) === JSON.stringify(none));
  assert.deepEqual(await other.toolNames(), ['lazy__a', 'lazy2__b']);
  assert.deepEqual((await statusOf(gateway)).servers.map((server) => server.tools), [1, 1], 'what it lists is known');
  await assert.rejects(client.tool('lazy__nosuch'), (error) => error.code === -32601 && error.message.includes('Tool not found'));
  assert.deepEqual([starts(log), starts(log2)], [1, 1], 'neither a list nor a tool that it does not have starts it');
  const answers = await Promise.all([client.tool('lazy__a'), other.tool('lazy__a'), client.tool('lazy__a')]);
  assert.equal(answers.length, 3);
  assert.deepEqual([starts(log), starts(log2)], [2, 1], 'calls at once start it once, and it alone');
});

for (const args of [[], ['--single-process']]) {
  test(`F06 a request starts only the lazy server that it names ${args}`, async (t) => {
    const names = ['tool', 'unknown', 'prompt', 'completion', 'listed', 'template', 'never', 'no-prompt'];
    const lazy = (name) => ({
      ...fake('--tool', 'a', '--prompt', 'p', '--resource', 'mem://r', '--template', 'mem://{id}', '--log', t.path(name)),
      start: 'lazy',
    });
    const gateway = await t.gateway({ mcpServers: Object.fromEntries(names.map((name) => [name, lazy(name)])) }, { args });
    const client = await t.http(gateway);
    const running = new Set();
    const check = async (what) => {
      assert.deepEqual(names.filter((name) => starts(t.path(name)) !== 0), names.filter((name) => running.has(name)), what);
      const expected = Object.fromEntries(names.map((name) => [name, running.has(name) ? 'ready' : 'idle']));
      assert.deepEqual(await statesOf(gateway), expected, what);
    };
    const get = (name) => client.call('prompts/get', { name });
    const read = (uri) => client.call('resources/read', { uri });
    const complete = (ref) => client.call('completion/complete', { ref, argument: { name: 'x', value: 'y' } });

    const unknown = {
      tool: () => client.tool('nobody__a'),
      'tool without prefix': () => client.tool('a'),
      'half a prefix': () => client.tool('too__a'),
      prompt: () => get('nobody__p'),
      'prompt without prefix': () => get('p'),
      resource: () => read('bulkhead://absent/mem://r'),
      'resource of no server': () => read('bulkhead://absent'),
      subscription: () => client.call('resources/subscribe', { uri: 'bulkhead://absent/mem://r' }),
      completion: () => complete({ type: 'ref/prompt', name: 'nobody__p' }),
      'completion of a resource': () => complete({ type: 'ref/resource', uri: 'bulkhead://absent/mem://{id}' }),
    };
    for (const [what, request] of Object.entries(unknown)) {
      await assert.rejects(request(), (error) => error.code < 0, what);
      await check(`${what}: no server has it`);
    }

    const somebody = {
      tool: () => client.tool('tool__a'),
      prompt: () => get('prompt__p'),
      completion: () => complete({ type: 'ref/prompt', name: 'completion__p' }),
      listed: () => read('bulkhead://listed/mem://r'),
      template: () => complete({ type: 'ref/resource', uri: 'bulkhead://template/mem://{id}' }),
      unknown: () => assert.rejects(client.tool('unknown__b'), (error) => error.code === -32601),
      'no-prompt': () => assert.rejects(get('no-prompt__q'), (error) => error.code === -32602),
    };
    for (const [server, request] of Object.entries(somebody)) {
      await request();
      running.add(server);
      await check(server);
    }

    // An original URI does not name its server, so any server may have it. Lists involve all
    // servers.
    await assert.rejects(read('other://r'), (error) => error.code === -32002);
    for (const name of names) running.add(name);
    await check('an original URI');
  });
}

for (const args of [[], ['--single-process']]) {
  test(`F06 a resource URI starts only the lazy servers that may have it, according to stored lists ${args}`, async (t) => {
    const state = t.path('state');
    const lazy = (name) => ({ ...fake('--tool', 'a', '--resource', `${name}://r`, '--template', `${name}://{id}`, '--log', t.path(name)), start: 'lazy' });
    const profile = (...names) => ({ state_dir: state, mcpServers: Object.fromEntries(names.map((name) => [name, lazy(name)])) });
    const capable = { capabilities: { sampling: {}, elicitation: {} } };
    const first = await t.gateway(profile('one', 'two'), { args });
    await (await t.http(first)).toolNames();
    await until('both lists are on disk', () => ['one', 'two'].every((name) => existsSync(join(state, 'lists', name))));
    await first.stop();

    const second = await t.gateway(profile('one', 'two', 'late'), { args });
    const before = [starts(t.path('one')), starts(t.path('two'))];
    const idle = { one: 'idle', two: 'idle', late: 'idle' };
    for (const options of [{}, capable]) {
      const client = await t.http(second, options);
      const read = (uri) => client.call('resources/read', { uri });
      // No stored list contains this URI, so only servers without stored lists may have it.
      await assert.rejects(read('other://r'), (error) => error.code === -32002);
      assert.deepEqual([starts(t.path('one')), starts(t.path('two'))], before, JSON.stringify(options));
      assert.deepEqual(await statesOf(second), { ...idle, late: 'ready' }, JSON.stringify(options));
    }
    const other = await t.http(second, capable);
    await other.call('resources/read', { uri: 'one://y' });
    assert.deepEqual([starts(t.path('one')), starts(t.path('two'))], [before[0] + 1, before[1]], 'for clients with other capabilities');
    const client = await t.http(second);
    await client.call('resources/read', { uri: 'two://x' });
    assert.deepEqual([starts(t.path('one')), starts(t.path('two'))], [before[0] + 1, before[1] + 1], 'a remembered template');
  });
}

test('F06 without prefixes an unlisted name starts all lazy servers', async (t) => {
  const lazy = (file, tool) => ({ ...fake('--tool', tool, '--log', t.path(file)), start: 'lazy' });
  const gateway = await t.gateway({ naming: { prefix: 'never' }, mcpServers: { one: lazy('one', 'a'), two: lazy('two', 'b') } });
  const client = await t.http(gateway);
  assert.deepEqual(await statesOf(gateway), { one: 'idle', two: 'idle' });
  assert.equal((await client.tool('b')).content[0].text, 'fake/b');
  assert.deepEqual(await statesOf(gateway), { one: 'ready', two: 'ready' }, 'only their lists tell whose it is');
});

test('F06 a lazy server that runs for some clients is not shown as idle', async (t) => {
  const lazy = (file) => ({ ...fake('--tool', 'a', '--log', t.path(file)), start: 'lazy' });
  const gateway = await t.gateway({ mcpServers: { one: lazy('one'), two: lazy('two') } });
  const client = await t.http(gateway, { capabilities: { sampling: {} } });
  await client.tool('one__a');
  assert.deepEqual(await statesOf(gateway), { one: 'ready', two: 'idle' });
  assert.deepEqual([starts(t.path('one')), starts(t.path('two'))], [1, 0]);
});

for (const mode of ['in compartments', 'in one process']) {
  test(`F06 a lazy server's list outlives the gateway, ${mode}`, async (t) => {
    const log = t.path('log');
    const lazy = (...more) => ({ ...fake('--tool', 'a', '--prompt', 'p', '--log', log, ...more), start: 'lazy' });
    const state = t.path('kept-state');
    mkdirSync(state, { mode: 0o700 });
    const profile = (server) => ({ state_dir: state, mcpServers: { lazy: server } });
    const options = { args: mode === 'in one process' ? ['--single-process'] : [] };
    const first = await t.gateway(profile(lazy()), options);
    assert.deepEqual(await (await t.http(first)).toolNames(), ['lazy__a']);
    assert.equal(starts(log), 1, 'its tools are unknown');
    await until('it is on disk', () => existsSync(join(state, 'lists/lazy')));
    await first.stop();
    for (const name of ['lists/lazy', 'lists/.key']) assert.equal(statSync(join(state, name)).mode & 0o777, 0o600);

    const second = await t.gateway(profile(lazy()), options);
    const client = await t.http(second);
    assert.deepEqual(await client.toolNames(), ['lazy__a']);
    assert.deepEqual((await client.call('prompts/list')).prompts.map((prompt) => prompt.name), ['lazy__p']);
    assert.equal(starts(log), 1, 'listing does not start it');
    // The tools for clients with other capabilities are not known yet.
    const other = await t.http(second, { capabilities: { sampling: {} } });
    assert.deepEqual(await other.toolNames(), ['lazy__a']);
    assert.equal(starts(log), 2);
    assert.equal((await client.tool('lazy__a')).content[0].text, 'fake/a');
    await second.stop();

    const started = starts(log);
    const third = await t.gateway(profile(lazy('--tool', 'b')), options);
    assert.deepEqual(await (await t.http(third)).toolNames(), ['lazy__a', 'lazy__b']);
    assert.equal(starts(log), started + 1, 'another definition is another server');
    await third.stop();

    writeFileSync(join(state, 'lists/lazy'), 'nonsense', { mode: 0o600 });
    const fourth = await t.gateway(profile(lazy('--tool', 'b')), options);
    assert.deepEqual(await (await t.http(fourth)).toolNames(), ['lazy__a', 'lazy__b']);
    assert.equal(starts(log), started + 2, 'what is damaged is not believed');
  });
}

test('F06 a lazy server stays idle after a crash of the endpoint', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({ mcpServers: { lazy: { ...fake('--tool', 'a', '--log', log), start: 'lazy', idle_stop_ms: 100 } } });
  const client = await t.http(gateway);
  assert.deepEqual(await client.toolNames(), ['lazy__a']);
  await until('it ends when it is idle', () => processesWith(log).length === 0);
  const endpoint = async () => (await statusOf(gateway)).compartments.find((entry) => entry.name === 'endpoint');
  const { pid } = await endpoint();
  process.kill(pid, 'SIGKILL');
  await until('another one runs', async () => {
    const now = await endpoint();
    return now.pid !== pid && now.state === 'running';
  });
  assert.deepEqual(await (await t.http(gateway)).toolNames(), ['lazy__a']);
  assert.equal(starts(log), 1);
});

// There are two servers of each kind. One crashes. The other must keep its three attempts.
for (const args of [[], ['--single-process']]) {
  test(`F22 the next call restarts a crashed server, up to three times for each server ${args}`, async (t) => {
    const crashing = (log) => fake('--tool', 'a', '--tool', 'die', '--die', 'die', '--log', t.path(log));
    const gateway = await t.gateway({
      limits: { retry_min_ms: 60_000, retry_max_ms: 60_000, grace_ms: 60_000 },
      mcpServers: {
        eager: crashing('eager'), eager2: crashing('eager2'),
        lazy: { ...crashing('lazy'), start: 'lazy' }, lazy2: { ...crashing('lazy2'), start: 'lazy' },
      },
    }, { args });
    const client = await t.http(gateway);
    await client.toolNames();
    const state = async (name) => (await statusOf(gateway)).servers.find((entry) => entry.name === name).state;
    for (const server of ['eager', 'lazy']) {
      for (let crash = 1; crash <= 3; ++crash) {
        assert.equal((await client.tool(`${server}__a`)).content[0].text, 'fake/a');
        await assert.rejects(client.tool(`${server}__die`), (error) => error.code === -32603 && error.message.includes(`"${server}"`));
      }
      await assert.rejects(client.tool(`${server}__a`), (error) => error.code === -32603 && error.message.includes(`"${server}"`),
        `${server} refuses after the third time`);
      assert.equal(await state(server), 'failed');
      assert.equal(starts(t.path(server)), 3, `${server}: three crashes, three starts`);
    }
    for (const server of ['eager2', 'lazy2']) {
      assert.notEqual(await state(server), 'failed');
      await assert.rejects(client.tool(`${server}__die`), (error) => error.message.includes(`"${server}"`));
      assert.equal((await client.tool(`${server}__a`)).content[0].text, 'fake/a', `${server} has attempts of its own`);
      assert.equal(starts(t.path(server)), 2);
    }
  });
}

test('A33 a pool distributes calls only of tools that are marked as safe', async (t) => {
  const log = t.path('log');
  mkdirSync(log);
  const command = '/bin/sh';
  // Each process writes a separate log.
  const args = ['-c', 'exec "$0" "$@" --log "$LOGS/$(cat /proc/sys/kernel/random/uuid)"', fakeMcp, '--tool', 'a', '--tool', 'b'];
  const gateway = await t.gateway({ mcpServers: { up: { command, args, env: { LOGS: log }, pool_size: 3, pool_safe_tools: ['a'] } } });
  const client = await t.http(gateway);
  await client.toolNames();
  const ready = (text) => text.includes('"tools/list"');
  await until('all three are ready', () => readdirSync(log).filter((name) => ready(read(join(log, name)))).length === 3);
  // The gateway may still be reading a list, so calls are repeated until each process has had one.
  let rounds = 0;
  await until('each process gets calls', async () => {
    ++rounds;
    await Promise.all(Array.from({ length: 30 }, () => client.tool('up__a')));
    return readdirSync(log).every((name) => calls(read(join(log, name)), 'a') > 0);
  });
  await Promise.all(Array.from({ length: 30 }, () => client.tool('up__b')));
  const logs = readdirSync(log).map((name) => read(join(log, name)));
  assert.equal(logs.length, 3);
  assert.deepEqual(logs.map((text) => calls(text, 'a') > 0), [true, true, true]);
  assert.equal(logs.reduce((sum, text) => sum + calls(text, 'a'), 0), 30 * rounds);
  assert.deepEqual(logs.map((text) => calls(text, 'b')).filter((count) => count > 0), [30]);
});

test('F29 after SIGTERM, servers exit within 5 s and the exit code is 0', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({
    mcpServers: { polite: fake('--tool', 'a', '--log', log), deaf: fake('--tool', 'b', '--log', t.path('deaf'), '--ignore-eof') },
  });
  await (await t.http(gateway)).toolNames();
  const below = descendants(gateway.pid);
  assert.ok(below.length >= 2);
  const started = Date.now();
  process.kill(gateway.pid, 'SIGTERM');
  const { code, signal } = await gateway.exited;
  gateway.stopped = true;  // stopped by the test
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
  await until('children have ended', () => !below.some(alive));
  assert.ok(Date.now() - started < 5000 * patience, `${Date.now() - started} ms`);
});

// Without a PID namespace, the kernel does not kill processes that a server has moved to separate
// sessions.
for (const mode of ['in compartments', 'in one process']) {
  test(`sandbox = "off", ${mode}: a daemon ends with the server that started it`, async (t) => {
    const log = t.path('log');
    const mark = `1000.${process.pid}${mode.length}`;
    const script = `(setsid sleep ${mark} </dev/null >/dev/null 2>&1 &); exec "$0" "$@"`;
    const args = ['-c', script, fakeMcp, '--tool', 'a', '--tool', 'die', '--die', 'die', '--log', log];
    const gateway = await t.gateway(
      { limits: quickly, mcpServers: { up: { command: '/bin/sh', args, sandbox: 'off' } } },
      { args: mode === 'in one process' ? ['--single-process'] : [] },
    );
    const daemons = () => processesWith(`sleep\0${mark}`);
    const client = await t.http(gateway);
    await client.toolNames();
    const running = async (former) => {
      await until('it is back', () => client.tool('up__a'));
      await until('with a new daemon', () => daemons().length === 1 && !former.includes(daemons()[0]));
      return daemons();
    };
    const first = await running([]);
    await assert.rejects(client.tool('up__die'));
    const second = await running(first);
    const [server] = processesWith(log);
    // The first process of the sandbox.
    process.kill(Number(/^PPid:\s+(\d+)/m.exec(read(`/proc/${server}/status`))[1]), 'SIGKILL');
    await running(second);
    await until('no zombies are left', () => zombies(gateway.pid).length === 0);
    process.kill(gateway.pid, 'SIGKILL');
    gateway.stopped = true;  // stopped by the test
    await until('all have ended', () => daemons().length === 0 && processesWith(log).length === 0);
  });
}

test('the default sandbox: a file server works without changes, and secrets in the home directory are hidden', async (t) => {
  const home = t.path('../home');
  const files = t.path('workspace');
  for (const folder of [home, files, `${home}/.ssh`, `${home}/.aws`]) mkdirSync(folder, { recursive: true });
  writeFileSync(`${home}/.ssh/id_rsa`, 'CANARY');
  writeFileSync(`${home}/.aws/credentials`, 'CANARY');
  writeFileSync(`${home}/notes.txt`, 'notes');
  writeFileSync(`${files}/hello.txt`, 'hello');
  // HOME is not an argument, because servers may change paths in arguments.
  const later = ['.aws/credentials', '.config/gh/hosts.yml'];  // created after the start
  const script = 'for f in .ssh/id_rsa .aws/credentials notes.txt; do echo "$f $(cat "$HOME/$f" 2>&1)"; done >"$1"; echo x >"$HOME/new" || echo "home: read-only" >>"$1"; '
    + `echo x >"$1.started"; while [ ! -e "$1.go" ]; do sleep 0.05; done; for f in ${later.join(' ')} notes.txt; do echo "later $f $(cat "$HOME/$f" 2>&1)"; done >>"$1"; exec "$0" --tool look`;
  const seen = join(files, 'seen');
  const gateway = await t.gateway({
    limits: { connect_timeout_ms: 60_000, first_list_wait_ms: 1 },
    mcpServers: {
      files: npmServer('@modelcontextprotocol/server-filesystem/dist/index.js', files),
      looks: { command: '/bin/sh', args: ['-c', script, fakeMcp, seen] },
    },
  }, { env: { HOME: home } });
  await until('the looking server has started', () => existsSync(`${seen}.started`));
  rmSync(`${home}/.aws`, { recursive: true });
  for (const secret of later) {
    mkdirSync(join(home, secret, '..'), { recursive: true });
    writeFileSync(join(home, secret), 'CANARY');
  }
  writeFileSync(`${seen}.go`, '');
  const client = await t.http(gateway);
  await until('both servers run', async () => { const names = await client.toolNames(); return ['looks__look', 'files__write_file'].every((name) => names.includes(name)); }, 20_000);
  assert.match(JSON.stringify(await client.tool('files__read_text_file', { path: `${files}/hello.txt` })), /hello/);
  await client.tool('files__write_file', { path: `${files}/made.txt`, content: 'made' });
  assert.equal(read(`${files}/made.txt`), 'made');
  const report = read(seen);
  assert.match(report, /^notes\.txt notes/m);
  assert.match(report, /home: read-only/);
  assert.match(report, /^later notes\.txt notes/m);
  for (const secret of later) assert.ok(report.includes(`later ${secret} `), report);
  assert.ok(!report.includes('CANARY'), report);
  assert.ok(!existsSync(`${home}/new`));
});

for (const sandbox of ['home-read-only', 'strict']) {
  test(`sandbox ${sandbox}: credentials created after the start are hidden, and nothing is created in the home directory`, async (t) => {
    const secrets = ['.ssh/id_rsa', '.aws/credentials', '.kube/config', '.npmrc', '.netrc', '.config/gh/hosts.yml', '.docker/config.json', '.config/git/credentials'];
    const home = t.path('../home');
    const files = t.path('workspace');
    // Of some paths only the parent directory exists, one path itself exists, and others (such as
    // .kube) do not exist at all.
    for (const folder of [files, `${home}/.ssh`, `${home}/.config/other`, `${home}/project`]) mkdirSync(folder, { recursive: true });
    writeFileSync(`${home}/.netrc`, 'CANARY');
    writeFileSync(`${home}/project/notes.txt`, 'notes');
    const before = readdirSync(home, { recursive: true }).map(String).sort();
    const script = 'echo x >"$1/started"; while [ ! -e "$1/go" ]; do sleep 0.05; done; '
      + `for f in ${secrets.join(' ')} project/notes.txt project/later.txt; do echo "$f $(cat "$HOME/$f" 2>&1)"; done >"$1/seen"; exec "$0" --tool look`;
    const gateway = await t.gateway({
      limits: { connect_timeout_ms: 60_000, first_list_wait_ms: 1 },
      mcpServers: {
        looks: { command: '/bin/sh', args: ['-c', script, fakeMcp, files], sandbox },
        npx: { command: 'npx', args: ['--version'] },
        uvx: { command: 'uvx', args: ['--version'] },
      },
    }, { env: { HOME: home } });
    await until('it runs', () => existsSync(`${files}/started`), 20_000);
    const isOwn = (name) => /^\.config\/bulkhead|^\.local/.test(name);  // the gateway's own files
    const after = readdirSync(home, { recursive: true }).map(String).sort();
    assert.deepEqual(after.filter((name) => !isOwn(name)), before);
    for (const secret of secrets) {
      mkdirSync(join(home, secret, '..'), { recursive: true });
      writeFileSync(join(home, `${secret}.new`), 'CANARY');
      renameSync(join(home, `${secret}.new`), join(home, secret));
    }
    writeFileSync(`${home}/project/later.txt`, 'later');
    writeFileSync(`${files}/go`, '');
    const client = await t.http(gateway);
    await until('it has looked', async () => (await client.toolNames()).includes('looks__look'), 20_000);
    const report = read(`${files}/seen`);
    assert.ok(!report.includes('CANARY'), report);
    assert.equal(/later\.txt later/.test(report) && /notes\.txt notes/.test(report), sandbox !== 'strict', report);
  });
}

for (const sandbox of ['home-read-only', 'off']) {
  test(`sandbox ${sandbox}: packages run by name start in an empty directory, not in a repository`, async (t) => {
    const bin = t.path('bin');
    mkdirSync(bin);
    const commands = { npx: ['-y', 'pkg'], bunx: ['pkg'], uvx: ['pkg'], pipx: ['run', 'pkg'], python3: ['-m', 'pkg'], tool: ['x'] };
    const script = '#!/bin/sh\n{ pwd; ls -A; echo "safe=$PYTHONSAFEPATH"; } >"$REPORT" 2>&1; exec "$FAKE" --tool look\n';
    const report = (name) => join(t.path('reports'), name, 'seen');
    const servers = Object.entries(commands).map(([name, args]) => {
      writeFileSync(join(bin, name), script, { mode: 0o755 });
      mkdirSync(join(report(name), '..'), { recursive: true });
      writeFileSync(report(name), '');
      return [name, { command: name, args, sandbox, start: 'lazy', env: { PATH: `${bin}:/usr/bin:/bin`, REPORT: report(name), FAKE: fakeMcp } }];
    });
    const gateway = await t.gateway({ mcpServers: Object.fromEntries(servers) });
    // The gateway is started in this directory. npm, bun, uv and Python would read these files.
    const planted = ['package.json', 'bunfig.toml', 'uv.toml', 'pkg.py'];
    for (const name of planted) writeFileSync(join(gateway.dir, name), 'PLANTED');
    const client = await t.http(gateway);
    for (const name of Object.keys(commands)) {
      await client.tool(`${name}__look`);
      const [folder, ...rest] = read(report(name)).trim().split('\n');
      if (name === 'tool') {
        assert.equal(folder, gateway.dir);
        for (const file of planted) assert.ok(rest.includes(file), show(rest));
        assert.equal(rest.at(-1), 'safe=');
      } else {
        assert.notEqual(folder, gateway.dir, name);
        assert.deepEqual(rest, ['safe=1'], name);
      }
    }
    const log = readdirSync(join(gateway.dir, 'state'), { recursive: true, withFileTypes: true }).filter((entry) => entry.name === 'bulkhead.log');
    const logged = log.map((entry) => read(join(entry.parentPath ?? entry.path, entry.name))).join('');
    assert.equal(logged.split(`server "tool" starts in ${gateway.dir}, the gateway's working directory`).length, 2, logged);
    const doctor = runProgram(t, ['doctor', '--config', '{config}'], { profile: { mcpServers: Object.fromEntries(servers) } }).stdout;
    assert.match(doctor, /^warn  servers that run in the gateway's working directory: tool\n {6}\S/m);
  });
}

test('F31 a value of env is passed only to the child', async (t) => {
  const canary = 'CANARY-7f3a9c21';
  const dump = t.path('dump');
  const gateway = await t.gateway(
    { limits: quickly, mcpServers: { up: { ...fake('--tool', 'a', '--tool', 'die', '--die', 'die', '--dump-env', dump, '--log', t.path('log')), env: { SERVICE_TOKEN: '${env:CANARY_FROM_OUTSIDE}' } } } },
    { env: { CANARY_FROM_OUTSIDE: canary }, args: ['--log-level', 'debug', '--verbose'] },
  );
  const client = await t.http(gateway);
  await client.tool('up__a');
  await client.tool('up__die').catch(() => {});
  await until('it is back', () => client.tool('up__a'));
  assert.ok(read(dump).includes(canary), 'the child has it');
  for (const { path, text } of filesBelow(gateway.dir)) assert.ok(!text?.includes(canary), path);
  assert.ok(!gateway.stderr().includes(canary));
  const servers = processesWith(dump);
  for (const pid of [gateway.pid, ...descendants(gateway.pid)]) {
    assert.ok(!read(`/proc/${pid}/cmdline`).includes(canary), 'no command line');
    // The gateway itself has the value in its environment. Among its descendants, only the server
    // may have it.
    if (pid !== gateway.pid && !servers.includes(pid)) assert.ok(!environment(pid).includes(canary), read(`/proc/${pid}/cmdline`));
  }
});

await run({ parallel: 3 });

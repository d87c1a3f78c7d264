// Servers as processes: their sandbox, their number, when they run, and that nothing of them stays.
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alive, assert, descendants, fake, fakeMcp, node, npmServer, processesWith, run, sleep, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const quickly = { retry_min_ms: 50, retry_max_ms: 150, grace_ms: 100 };
const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
// Empty for those that do not even let their own user see it.
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

// Fault: each session, each reconnect and each crash leaves processes behind, wrappers (npx, sh)
// leave what they started, and the machine runs out of memory.
test('pain-3 processes do not pile up', async (t) => {
  const [log, wrapped] = [t.path('log'), t.path('wrapped')];
  const gateway = await t.gateway({
    limits: quickly,
    mcpServers: {
      plain: fake('--tool', 'a', '--tool', 'die', '--die', 'die', '--log', log),
      // A wrapper that starts the server in a session of its own and a daemon beside it.
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
  await until('no dead ones are kept', () => zombies(gateway.pid).length === 0);
  const below = descendants(gateway.pid).map((pid) => read(`/proc/${pid}/cmdline`)).filter((line) => line.startsWith('sleep'));
  assert.ok(below.length <= 1, `daemons of ended wrappers: ${below.length}`);
  const left = descendants(gateway.pid);
  await gateway.stop();
  await until('all are gone', () => !left.some(alive));
}, { timeout: 90_000 });

// Fault: every call, or every client, starts a process (or container).
test('pain-4 many calls at once start nothing', async (t) => {
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

// Fault: the same server once per user or namespace.
test('pain-23 clients share a server; those who ask for their own get one, and it ends with them', async (t) => {
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

test('F06 a lazy server runs when it is called, and its list is remembered', async (t) => {
  const log = t.path('log');
  const gateway = await t.gateway({
    mcpServers: { lazy: { ...fake('--tool', 'a', '--log', log), start: 'lazy', idle_stop_ms: 300 } },
  });
  await until('the gateway has settled', async () => (await statusOf(gateway)).servers[0].state === 'ready');
  assert.equal(processesWith(log).length, 0);
  assert.equal(starts(log), 0);
  const client = await t.http(gateway);
  assert.equal(starts(log), 0, 'a client that only connects starts nothing');
  assert.equal((await client.tool('lazy__a')).content[0].text, 'fake/a');
  assert.equal(starts(log), 1);
  await until('it ends when it is idle', () => processesWith(log).length === 0);
  const other = await t.http(gateway);
  assert.deepEqual(await other.toolNames(), ['lazy__a']);
  await sleep(100);
  assert.equal(starts(log), 1, 'listing does not start it');
  const answers = await Promise.all([client.tool('lazy__a'), other.tool('lazy__a'), client.tool('lazy__a')]);
  assert.equal(answers.length, 3);
  assert.equal(starts(log), 2, 'calls at once start it once');
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
    assert.equal(starts(log), 1, 'nobody knows what it lists');
    await until('it is on disk', () => existsSync(join(state, 'lists/lazy')));
    await first.stop();
    for (const name of ['lists/lazy', 'lists/.key']) assert.equal(statSync(join(state, name)).mode & 0o777, 0o600);

    const second = await t.gateway(profile(lazy()), options);
    const client = await t.http(second);
    assert.deepEqual(await client.toolNames(), ['lazy__a']);
    assert.deepEqual((await client.call('prompts/list')).prompts.map((prompt) => prompt.name), ['lazy__p']);
    assert.equal(starts(log), 1, 'listing does not start it');
    // Another set of tools for clients with other capabilities is not known.
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

test('F06 a lazy server stays asleep when the endpoint has crashed', async (t) => {
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

// Two of each kind: one that crashes, and one whose own three attempts stay untouched by that.
for (const args of [[], ['--single-process']]) {
  test(`F22 a server that died is started by the next call, three times, each on its own ${args}`, async (t) => {
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

test('A33 a pool shares the calls of the tools that are safe for it, and no others', async (t) => {
  const log = t.path('log');
  mkdirSync(log);
  const command = '/bin/sh';
  // Each process writes a log of its own.
  const args = ['-c', 'exec "$0" "$@" --log "$LOGS/$(cat /proc/sys/kernel/random/uuid)"', fakeMcp, '--tool', 'a', '--tool', 'b'];
  const gateway = await t.gateway({ mcpServers: { up: { command, args, env: { LOGS: log }, pool_size: 3, pool_safe_tools: ['a'] } } });
  const client = await t.http(gateway);
  await client.toolNames();
  const ready = (text) => text.includes('"tools/list"');
  await until('all three are there', () => readdirSync(log).filter((name) => ready(read(join(log, name)))).length === 3);
  await sleep(200);
  await Promise.all(Array.from({ length: 30 }, () => client.tool('up__a')));
  await Promise.all(Array.from({ length: 30 }, () => client.tool('up__b')));
  const logs = readdirSync(log).map((name) => read(join(log, name)));
  assert.equal(logs.length, 3);
  assert.deepEqual(logs.map((text) => calls(text, 'a') > 0), [true, true, true]);
  assert.equal(logs.reduce((sum, text) => sum + calls(text, 'a'), 0), 30);
  assert.deepEqual(logs.map((text) => calls(text, 'b')).filter((count) => count > 0), [30]);
});

test('F29 SIGTERM: children are gone within 5 s, exit 0', async (t) => {
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
  gateway.stopped = true;  // by us, not by itself
  assert.deepEqual({ code, signal }, { code: 0, signal: null });
  await until('children are gone', () => !below.some(alive));
  assert.ok(Date.now() - started < 5000, `${Date.now() - started} ms`);
});

// Without a PID namespace nothing in the kernel ends what a server has put into sessions of its own.
for (const mode of ['in compartments', 'in one process']) {
  test(`sandbox = "off", ${mode}: a daemon ends with the server that left it`, async (t) => {
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
      await until('with a daemon of its own', () => daemons().length === 1 && !former.includes(daemons()[0]));
      return daemons();
    };
    const first = await running([]);
    await assert.rejects(client.tool('up__die'));
    const second = await running(first);
    const [server] = processesWith(log);
    process.kill(Number(/^PPid:\s+(\d+)/m.exec(read(`/proc/${server}/status`))[1]), 'SIGKILL');  // who sees to it
    await running(second);
    await until('no dead ones are kept', () => zombies(gateway.pid).length === 0);
    process.kill(gateway.pid, 'SIGKILL');
    gateway.stopped = true;  // by us
    await until('all are gone', () => daemons().length === 0 && processesWith(log).length === 0);
  });
}

test('the default sandbox: a file server works as pasted, secrets of the home are not there', async (t) => {
  const home = t.path('../home');
  const files = t.path('workspace');
  for (const folder of [home, files, `${home}/.ssh`, `${home}/.aws`]) mkdirSync(folder, { recursive: true });
  writeFileSync(`${home}/.ssh/id_rsa`, 'CANARY');
  writeFileSync(`${home}/.aws/credentials`, 'CANARY');
  writeFileSync(`${home}/notes.txt`, 'notes');
  writeFileSync(`${files}/hello.txt`, 'hello');
  // The home is not among its arguments: what a server is given by name it may change.
  const script = 'for f in .ssh/id_rsa .aws/credentials notes.txt; do echo "$f $(cat "$HOME/$f" 2>&1)"; done >"$1"; echo x >"$HOME/new" || echo "home: read-only" >>"$1"; exec "$0" --tool look';
  const seen = join(files, 'seen');
  const gateway = await t.gateway({
    limits: { connect_timeout_ms: 20_000, first_list_wait_ms: 20_000 },
    mcpServers: {
      files: npmServer('@modelcontextprotocol/server-filesystem/dist/index.js', files),
      looks: { command: '/bin/sh', args: ['-c', script, fakeMcp, seen] },
    },
  }, { env: { HOME: home } });
  const client = await t.http(gateway);
  await until('the looking server runs', async () => (await client.toolNames()).includes('looks__look'), 20_000);
  assert.match(JSON.stringify(await client.tool('files__read_text_file', { path: `${files}/hello.txt` })), /hello/);
  await client.tool('files__write_file', { path: `${files}/made.txt`, content: 'made' });
  assert.equal(read(`${files}/made.txt`), 'made');
  const report = read(seen);
  assert.match(report, /notes\.txt notes/);
  assert.match(report, /home: read-only/);
  assert.ok(!report.includes('CANARY'), report);
  assert.ok(!existsSync(`${home}/new`));
});

test('F31 canary: a value of env reaches the child and nothing else', async (t) => {
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
  const files = readdirSync(gateway.dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath ?? entry.path, entry.name));
  for (const file of files) assert.ok(!read(file).includes(canary), file);
  assert.ok(!gateway.stderr().includes(canary));
  const servers = processesWith(dump);
  for (const pid of [gateway.pid, ...descendants(gateway.pid)]) {
    assert.ok(!read(`/proc/${pid}/cmdline`).includes(canary), 'no command line');
    // What the person set in the gateway's own environment is there; below it only the server has it.
    if (pid !== gateway.pid && !servers.includes(pid)) assert.ok(!environment(pid).includes(canary), read(`/proc/${pid}/cmdline`));
  }
});

await run({ parallel: 3 });

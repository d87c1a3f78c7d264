// Tests that secrets do not leak. The run uses credentials of every kind, literal and as ${env:..},
// and everything in it fails. All places that must not contain the secrets are then searched.
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { assert, descendants, fake, fakeMcp, filesBelow, run, runProgram, sanitized, show, sleep, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const root = process.getuid() === 0;

// The halves of each secret are searched for separately, so that truncated text is found too.
class Canaries {
  all = new Map(); // name -> value
  make(name) {
    const value = `cnry${randomBytes(20).toString('hex')}`;
    this.all.set(name, value);
    return value;
  }
  // Returns the names of the secrets found in the bytes.
  in(bytes) {
    const found = [];
    for (const [name, value] of this.all) {
      const half = value.length / 2;
      if (bytes.includes(value.slice(0, half)) || bytes.includes(value.slice(half))) found.push(name);
    }
    return found;
  }
}

// Yields the writable memory of a process in parts. Yields nothing if the process has exited.
function* memoryOf(pid) {
  let maps, fd;
  try {
    maps = readFileSync(`/proc/${pid}/maps`, 'utf8');
    fd = openSync(`/proc/${pid}/mem`, 'r');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return;
    throw error;
  }
  const piece = 1 << 20;
  const overlap = 64;
  try {
    for (const line of maps.split('\n')) {
      const area = /^([0-9a-f]+)-([0-9a-f]+) rw/.exec(line);
      if (!area) continue;
      const end = Number.parseInt(area[2], 16);
      for (let at = Number.parseInt(area[1], 16); at < end; at += piece - overlap) {
        const buffer = Buffer.alloc(Math.min(piece, end - at));
        let got = 0;
        try {
          got = readSync(fd, buffer, 0, buffer.length, at);
        } catch {
          break; // not readable even by root (such as [vvar])
        }
        yield buffer.subarray(0, got);
      }
    }
  } finally {
    closeSync(fd);
  }
}
function inMemory(canaries, pid) {
  const found = new Set();
  for (const bytes of memoryOf(pid)) for (const name of canaries.in(bytes)) found.add(name);
  return [...found].sort();
}

// Returns undefined if the process has exited or only root may read the file.
function readProc(pid, what) {
  try {
    return readFileSync(`/proc/${pid}/${what}`);
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ESRCH') return Buffer.alloc(0);
    if (error.code === 'EACCES' && !root) return Buffer.alloc(0);
    throw error;
  }
}
const argumentsOf = (pid) => readProc(pid, 'cmdline');
const environmentOf = (pid) => readProc(pid, 'environ');
const quietly = (promise) => promise.then((value) => JSON.stringify(value), (error) => `${error.message} ${JSON.stringify(error.error ?? '')} ${error.body ?? ''}`);

// Starts servers of every kind. All but three fail.
async function world(t, canaries) {
  const env = {};
  const by_env = (name) => {
    env[`CANARY_${name.toUpperCase()}`] = canaries.make(name);
    return `\${env:CANARY_${name.toUpperCase()}}`;
  };
  const literal = (name) => canaries.make(name);
  const [web, refusing, talking] = [await t.fakeHttp(), await t.fakeHttp({ mode: '401' }), await t.fakeHttp({ mode: 'html' })];
  const remote = (url, name) => ({
    url: `${url}?token=${literal(`${name}_url`)}&more=${by_env(`${name}_url_env`)}`,
    headers: { Authorization: `Bearer ${literal(`${name}_header`)}`, 'X-Key': by_env(`${name}_header_env`) },
  });
  const secret_env = (name) => ({ LITERAL: literal(`${name}_child`), REFERENCE: by_env(`${name}_child_env`) });
  const [log, dump] = [t.path('log'), t.path('environment')];
  const mcpServers = {
    web: remote(web.url, 'web'),
    dead: remote('http://127.0.0.1:9/mcp', 'dead'),
    nowhere: remote('http://no-such-host.invalid/mcp', 'nowhere'),
    refusing: remote(refusing.url, 'refusing'),
    talking: remote(talking.url, 'talking'),
    child: { ...fake('--tool', 'ok', '--tool', 'die', '--die', 'die', '--log', log, '--dump-env', dump), env: secret_env('good') },
    other: fake('--tool', 'ok'),
    failing: { ...fake('--exit-on', 'initialize', '--stderr', 'it does not work'), env: secret_env('failing') },
    chatty: { ...fake('--banner', '--tool', 'ok', '--stderr-flood', 100_000), env: secret_env('chatty') },
    missing: { command: '/no/such/program', args: ['x'], env: secret_env('missing') },
  };
  const limits = { retry_min_ms: 20, retry_max_ms: 100, first_list_wait_ms: 1500, connect_timeout_ms: 3000 };
  return { profile: { limits, mcpServers }, env, web, log, dump };
}

// Returns the texts that clients and users see when these servers fail.
async function useAndBreak(t, gateway, { web }) {
  const said = [];
  const client = await t.http(gateway);
  await until('the working servers are ready', async () => {
    const tools = await client.toolNames();
    return ['web__echo', 'child__ok', 'other__ok', 'chatty__ok'].every((name) => tools.includes(name));
  }, 20_000);
  const everything = ['web__echo', 'web__drop', 'child__ok', 'child__die', 'dead__x', 'nowhere__x', 'refusing__x', 'talking__x', 'failing__x', 'missing__x', 'chatty__ok'];
  const round = async () => {
    const now = await t.http(gateway);
    said.push(await quietly(now.tools()));
    for (const name of everything) said.push(await quietly(now.tool(name)));
    said.push(JSON.stringify(now.notes), JSON.stringify(await statusOf(gateway)));
    await now.close();
  };
  await round();
  for (const mode of ['401', '500', 'reset', 'html', 'ok']) {
    web.mode = mode;
    said.push(await quietly(client.tool('web__echo')));
  }
  const before = web.messages('tools/call').length;
  for (const { name, pid } of (await statusOf(gateway)).compartments ?? []) {
    process.kill(pid, 'SIGKILL');
    await until(`${name} is running again`, async () => {
      const found = (await statusOf(gateway)).compartments.find((one) => one.name === name);
      return found.pid > 0 && found.pid !== pid && found.state === 'running';
    }, 20_000);
    const again = await t.http(gateway);
    await until('the servers are ready again', async () => (await again.tool('web__echo')) && (await again.tool('child__ok')) && again.tool('chatty__ok'), 20_000);
    await round();
  }
  assert.ok(web.messages('tools/call').length > before);
  return said;
}

test('canary secrets appear only where they are needed', async (t) => {
  const canaries = new Canaries();
  const all = await world(t, canaries);
  const gateway = await t.gateway(all.profile, { args: ['--log-level', 'debug', '--verbose'], env: all.env });
  const said = await useAndBreak(t, gateway, all);
  const last = await t.http(gateway);
  await until('the child is ready', () => last.tool('child__ok'), 20_000);
  await last.tool('web__echo');
  // If the servers did not receive the secrets, the test would prove nothing.
  const call = all.web.messages('tools/call').at(-1);
  assert.equal(call.headers.authorization, `Bearer ${canaries.all.get('web_header')}`);
  assert.equal(call.headers['x-key'], canaries.all.get('web_header_env'));
  const { url } = all.web.requests.at(-1);
  assert.ok(url.includes(canaries.all.get('web_url')) && url.includes(canaries.all.get('web_url_env')), url);
  const dump = readFileSync(all.dump, 'utf8');
  assert.deepEqual(canaries.in(dump), ['good_child', 'good_child_env'], 'what is configured, and of no other server');

  const { compartments, servers } = await statusOf(gateway);
  assert.ok(servers.filter((server) => server.state !== 'ready').length >= 5, 'things have failed');
  const own = new Map(); // process ID of a server -> prefix of the names of its secrets
  for (const pid of descendants(gateway.pid)) {
    const given = String(argumentsOf(pid)).startsWith(fakeMcp);
    if (given) own.set(pid, canaries.in(environmentOf(pid)));
    assert.deepEqual(canaries.in(argumentsOf(pid)), [], `arguments of ${pid}`);
    if (!given) assert.deepEqual(canaries.in(environmentOf(pid)), [], `environment of ${argumentsOf(pid)}`);
  }
  assert.ok(!root || [...own.values()].some((names) => names.join() === 'good_child,good_child_env'));
  for (const names of own.values()) {
    assert.ok(names.every((name) => name.split('_')[0] === names[0].split('_')[0]), `one server's: ${names}`);
  }
  assert.deepEqual(canaries.in(argumentsOf(gateway.pid)), []);
  const given = Object.values(all.env);
  if (!root) assert.throws(() => readFileSync(`/proc/${gateway.pid}/environ`), /EACCES/, 'closed to its own user');
  for (const [name, value] of root ? canaries.all : []) {
    assert.equal(environmentOf(gateway.pid).includes(value), given.includes(value), `${name} in the supervisor's environment`);
  }
  for (const { name, pid } of [...compartments, { name: 'supervisor', pid: gateway.pid }]) {
    assert.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /Max core file size\s+0\s+0/, `${name} dumps no core`);
  }

  for (const text of said) assert.deepEqual(canaries.in(text), [], text.slice(0, 2000));
  await gateway.stop();
  for (const text of [gateway.stdoutText, gateway.stderrText]) assert.deepEqual(canaries.in(text), []);
  assert.ok(gateway.stderrText.length > 1000, 'it has said a lot');
  const files = filesBelow(gateway.dir).filter(({ path, text }) => text !== undefined && path !== gateway.config);
  assert.ok(files.some(({ path }) => path.endsWith('.log')), `there are logs: ${files.map(({ path }) => path)}`);
  for (const { path, text } of files) assert.deepEqual(canaries.in(Buffer.from(text, 'latin1')), [], path);
}, { timeout: 90_000 });

for (const args of [[], ['--single-process']]) {
  test(`a server's log contains no value of its env, whole or in pieces (${args[0] ?? 'compartments'})`, async (t) => {
    const env = {
      SOME_SETTING: 'tango-7/fox "trot"==',
      DATABASE_URL: 'postgres://me:pass-of-the-db@db/x',
      API_TOKEN: 'quebec',
      MODE: 'careful',
    };
    // The value is written in two parts, between which the gateway may read, as well as escaped and
    // truncated at the end.
    const script = [
      'printf "at start: %s.\\n" "$SOME_SETTING" >&2',
      'printf "in pieces: tango-7/f" >&2; sleep 0.3; printf "ox \\"trot\\"==.\\n" >&2',
      'printf "in json: {\\"k\\":\\"tango-7\\\\/fox \\\\\\"tr\\\\u006ft\\\\\\"==\\"}\\n" >&2',
      'printf "in a url: tango-7%%2Ffox%%20%%22trot%%22%%3D%%3D.\\n" >&2',
      'printf "password: pass-of-the-db; token: %s; mode: %s.\\n" "$API_TOKEN" "$MODE" >&2',
      'printf "the end: tango-7/fox" >&2',
      'exit 3',
    ].join('\n');
    const gateway = await t.gateway({ mcpServers: { good: fake('--tool', 'ok'), loud: { command: 'sh', args: ['-c', script], env } } }, { args });
    await t.http(gateway);
    const log = join(gateway.dir, 'state/bulkhead/log/servers/loud.log');
    await until('the end', () => existsSync(log) && /the end: .*/.test(readFileSync(log, 'utf8')), 20_000);
    const said = await until('the reason', async () => {
      const loud = JSON.stringify((await statusOf(gateway)).servers.find(({ name }) => name === 'loud'));
      return /last lines/.test(loud) && loud;
    }, 20_000);
    const text = readFileSync(log, 'utf8');
    const once = ['at start: ***.', 'in pieces: ***.', 'in json: {"k":"***"}', 'in a url: ***.', 'password: ***; token: ***; mode: careful.', 'the end: ***'];
    assert.ok(text.startsWith(once.join('\n')), text);
    await gateway.stop();
    for (const where of [text, said, readFileSync(log, 'utf8'), gateway.stderrText]) {
      for (const part of ['tango', 'fox', 'trot', 'pass-of', 'quebec']) assert.ok(!where.includes(part), `${part} in ${where}`);
    }
  }, { timeout: 60_000 });
}

for (const args of [[], ['--single-process']]) {
  test(`a server's log contains no value of its env, even with colours or line endings inside or as base64 (${args[0] ?? 'compartments'})`, async (t) => {
    const value = 'tango-7-foxtrot-quebec';
    const lines = {
      colours: ['tan\\033[1;31mgo-7-\\033[0mfoxtrot\\033(B-quebec'],
      title: ['tango\\033]0;title\\007-7-foxtrot\\033]8;;https://x/\\033\\\\-quebec'],
      zeros: ['tango\\000-7-\\000foxtrot-quebec'],
      overtyped: ['tango-7\\r-foxtrot\\b\\bot-quebec'],
      wrapped: ['tango-7-\\nfoxtrot-\\r\\nquebec'],
      reads: ['tan\\033[3', '1mgo-7-fox', 'trot-\\033', '[0mquebec'],
      json: ['tan\\\\u001b[31mgo-7-foxtrot-quebec'],
      base64: [Buffer.from(value).toString('base64')],
      basic: [Buffer.from(`user:${value}`).toString('base64')],
      token: [Buffer.from(`u:${value}`).toString('base64url')],
    };
    // The lines are written before the first request and while a client is served.
    const write = Object.entries(lines).map(([name, pieces]) => `printf '${name}: ' >&2; ${pieces.map((piece) => `printf '${piece}' >&2`).join('; sleep 0.2; ')}; printf '.\\n' >&2`);
    const work = t.path('work');
    mkdirSync(work);
    writeFileSync(join(work, 'program'), `${write.join('\n')}\nwhile [ ! -e "$WORK/go" ]; do sleep 0.05; done\n${write.join('\n')}\necho the end >&2\nexit 3\n`);
    const gateway = await t.gateway({ mcpServers: { good: fake('--tool', 'ok'), loud: { command: 'sh', args: [join(work, 'program')], env: { API_TOKEN: value, WORK: work } } } }, { args });
    const client = await t.http(gateway);
    const log = join(gateway.dir, 'state/bulkhead/log/servers/loud.log');
    const logged = () => (existsSync(log) ? readFileSync(log, 'latin1') : '');
    await until('it has written', () => logged().includes('token: '), 20_000);
    await client.tool('good__ok');
    writeFileSync(join(work, 'go'), '');
    await until('the end', () => logged().includes('the end'), 20_000);
    const said = await until('the reason', async () => {
      const loud = JSON.stringify((await statusOf(gateway)).servers.find(({ name }) => name === 'loud'));
      return /last lines/.test(loud) && loud;
    }, 20_000);
    await gateway.stop();
    const text = logged();
    for (const name of Object.keys(lines)) assert.ok(text.split(`${name}: `).length > 2, `${name} in ${show(text)}`);
    for (const where of [text, said, gateway.stderrText]) {
      for (const part of ['tan', 'go-7', 'fox', 'trot', 'quebec', ...[0, 1, 2].map((skipped) => Buffer.from(value.slice(skipped)).toString('base64').slice(0, 8))]) {
        assert.ok(!where.includes(part), `${part} in ${show(where)}`);
      }
    }
  }, { timeout: 60_000 });
}

test('secrets are not in the memory of compartments that do not need them', async (t) => {
  if (!root) t.skip('only root may look into the memory of others');
  if (sanitized) t.skip('a sanitizer has terabytes of shadow memory');
  const canaries = new Canaries();
  const { profile, env, web } = await world(t, canaries);
  const gateway = await t.gateway(profile, { args: ['--log-level', 'debug', '--verbose'], env });
  await useAndBreak(t, gateway, { web });
  const { compartments } = await statusOf(gateway);
  assert.deepEqual(compartments.map((one) => one.name).sort(), ['aggregator', 'control', 'endpoint', 'launcher']);
  const of = Object.fromEntries(compartments.map(({ name, pid }) => [name, inMemory(canaries, pid)]));
  assert.deepEqual(inMemory(canaries, gateway.pid), [...canaries.all.keys()].sort(), 'the supervisor: all, or this shows nothing');
  const childs = [...canaries.all.keys()].filter((name) => /_child(_env)?$/.test(name)).sort();
  const remotes = [...canaries.all.keys()].filter((name) => !childs.includes(name)).sort();
  assert.deepEqual(of.endpoint, [], 'the endpoint, which talks with clients');
  assert.deepEqual(of.control, [], 'control, which talks with local clients');
  assert.deepEqual(of.launcher, childs, 'the launcher: all of its servers, and nothing of remote ones');
  assert.deepEqual(of.aggregator, remotes, 'the aggregator: all of its servers, and nothing of children');
}, { timeout: 90_000 });

test('errors of an invalid profile do not contain its secrets', async (t) => {
  const canaries = new Canaries();
  const c = (name) => canaries.make(name);
  const env = { CANARY: c('environment') };
  const wrong = [
    { mcpServers: { a: { command: fakeMcp, env: { KEY: [c('list')] } } } },
    { mcpServers: { a: { url: `http://user:${c('password')}@127.0.0.1:1/mcp?t=${c('query')}`, headers: { 'Bad Name': c('name') } } } },
    { mcpServers: { a: { url: 'http://127.0.0.1:1/mcp', headers: { Key: `${c('line')}\nX: y`, Other: '${env:CANARY}\u0000' } } } },
    { mcpServers: { a: { url: `not a url ${c('url')}`, headers: { K: '${env:NO_SUCH_CANARY}' } } } },
    { mcpServers: { a: { command: fakeMcp, env: { K: '${env:CANARY}' }, cwd: '/no/such/folder', oops: c('unknown') } } },
  ];
  for (const profile of wrong) {
    const shown = runProgram(t, ['profile', 'show', '--config', '{config}'], { profile, env });
    const listed = runProgram(t, ['tools', '--config', '{config}'], { profile, env });
    for (const { stdout, stderr } of [shown, listed]) assert.deepEqual(canaries.in(stdout + stderr), [], stdout + stderr);
    assert.ok(listed.code !== 0 || listed.stderr.length > 0, 'it is said that something is wrong');
  }
});

test('profile show and reload do not reveal secrets', async (t) => {
  const canaries = new Canaries();
  const { profile, env } = await world(t, canaries);
  const gateway = await t.gateway(profile, { args: ['--log-level', 'debug', '--verbose'], env });
  const said = [];
  const tell = (...args) => {
    const { stdout, stderr } = runProgram(t, args, { env: { ...gateway.env(), ...env } });
    said.push(stdout, stderr);
  };
  tell('profile', 'show', '--config', gateway.config);
  tell('status');
  tell('status', '--json');
  const changed = structuredClone(profile);
  changed.mcpServers.web.headers.Authorization = `Bearer ${canaries.make('later')}`;
  changed.mcpServers.child.env.LITERAL = canaries.make('later_child');
  writeFileSync(gateway.config, JSON.stringify(changed));
  gateway.child.kill('SIGHUP');
  await sleep(500);
  writeFileSync(gateway.config, JSON.stringify({ mcpServers: { web: { url: 5, headers: { K: canaries.make('broken') } } } }));
  gateway.child.kill('SIGHUP');
  await sleep(300);
  const client = await t.http(gateway);
  said.push(await quietly(client.tool('web__echo')), JSON.stringify(await statusOf(gateway)));
  await gateway.stop();
  for (const text of [...said, gateway.stderrText, gateway.stdoutText]) assert.deepEqual(canaries.in(text), [], text.slice(0, 3000));
}, { timeout: 60_000 });

await run({ parallel: 2 });

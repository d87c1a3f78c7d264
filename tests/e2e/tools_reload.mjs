// Tests the reload of tools plugins in compartments: a changed file is detected, the old process
// finishes its calls, and no call is lost.
import { copyFileSync, mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import net from 'node:net';
import { alive, assert, build, run, runProgram, show, sleep, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';

const built = join(build, 'core/plugin/testing_plugins/plugins');
const plugins = join(build, 'lib/bulkhead/plugins');

// Copies this version of the plugin "held" to the path, as an installation would.
function install(path, version, { exclusive = false } = {}) {
  mkdirSync(dirname(path), { recursive: true });
  const manifest = 'id = "held"\nabi_major = 1\nabi_minor_needed = 0\nprovides = ["bh.tools/1"]\n';
  writeFileSync(join(dirname(path), 'held.plugin.toml'), manifest + (exclusive ? 'exclusive = true\n' : ''), { mode: 0o644 });
  copyFileSync(join(built, `held-${version}.so`), `${path}.new`);
  renameSync(`${path}.new`, path);
}
const copyPlugin = (name, dir) => {
  mkdirSync(dir, { recursive: true });
  for (const file of [`${name}.so`, `${name}.plugin.toml`]) copyFileSync(join(plugins, file), join(dir, file));
  return join(dir, `${name}.so`);
};
const said = async (client, tool) => (await client.tool(tool)).content[0].text;
// Starts calls, which the test awaits later.
const hold = (client, tools) => tools.map((tool) => {
  const call = said(client, tool);
  call.catch(() => {});
  return call;
});
const reload = (gateway) => ask(gateway, 'POST', '/reload-config');
const processOf = async (gateway, name) => (await statusOf(gateway)).compartments
  .filter((one) => one.name === name && one.state === 'running').map((one) => one.pid);
const inFlight = (gateway, count) =>
  until(`${count} calls run`, async () => (await statusOf(gateway)).in_flight === count);

// Fault: a rebuilt plugin at the same path is not detected, and the old code keeps running without
// a warning.
test('a changed file of a tools plugin is detected and reported, and its calls are not lost', async (t) => {
  const [first, second] = [t.path('a/held.so'), t.path('b/held.so')];
  install(first, 'one');
  install(second, 'one');
  const gateway = await t.gateway({ limits: { drain_ms: 60000 }, tools: { first: { plugin: first }, second: { plugin: second } } });
  const client = await t.http(gateway);
  await client.toolNames();
  assert.deepEqual((await reload(gateway)).files, [], 'nothing has changed');
  const [old] = await processOf(gateway, 'first');
  const [other] = await processOf(gateway, 'second');
  const held = hold(client, [...Array(3).fill('first__hold'), ...Array(2).fill('second__hold')]);
  await inFlight(gateway, 5);
  install(first, 'two');
  const answer = reload(gateway);
  await until('it drains', async () => (await statusOf(gateway)).compartments.some((one) => one.pid === old && one.state === 'draining'));
  const fresh = hold(client, Array(5).fill('first__which'));
  process.kill(old, 'SIGUSR1');
  assert.deepEqual(await Promise.all(held.slice(0, 3)), Array(3).fill('one'), 'those in flight end where they began');
  assert.deepEqual(await Promise.all(fresh), Array(5).fill('two'));
  const { success, files, changed, needs_restart: restart } = await answer;
  assert.deepEqual({ success, files, changed, restart }, { success: true, files: ['tools.first: file changed; new version runs'], changed: ['first'], restart: [] });
  assert.deepEqual(await processOf(gateway, 'second'), [other], 'the other plugin keeps running');
  process.kill(other, 'SIGUSR1');
  assert.deepEqual(await Promise.all(held.slice(3)), ['one', 'one']);
  assert.deepEqual((await reload(gateway)).files, [], 'once');
  install(first, 'one');
  install(second, 'two');
  assert.match(runProgram(t, ['reload'], { env: gateway.env() }).stdout,
    /^ {2}plugins: tools\.first: file changed; new version runs, tools\.second: file changed; new version runs$/m);
  assert.deepEqual([await said(client, 'first__which'), await said(client, 'second__which')], ['one', 'two']);
});

// Fault: a new version that has not started yet is reported as running.
test('a new version that is still starting is reported, and the other plugins work', async (t) => {
  const paths = { first: t.path('a/held.so'), second: t.path('b/held.so') };
  for (const path of Object.values(paths)) install(path, 'one');
  const tools = Object.fromEntries(Object.entries(paths).map(([name, plugin]) => [name, { plugin, required: false }]));
  const gateway = await t.gateway({ limits: { plugin_init_ms: 60_000 }, tools });
  const client = await t.http(gateway);
  await client.toolNames();
  install(paths.first, 'hangs-in-start');
  install(paths.second, 'two');
  const { success, files, changed, not_connected: waiting } = await reload(gateway);
  assert.deepEqual({ success, files, changed, waiting }, {
    success: true,
    files: ['tools.first: file changed; new version is starting', 'tools.second: file changed; new version runs'],
    changed: ['first', 'second'],
    waiting: [{ name: 'first', reason: 'still connecting' }],
  });
  assert.equal(await said(client, 'second__which'), 'two');
});

const compartments = async (gateway, name) => (await statusOf(gateway)).compartments.filter((one) => one.name === name);
const two = (t, install_) => {
  const paths = { first: t.path('a/held.so'), second: t.path('b/held.so') };
  for (const [name, path] of Object.entries(paths)) install(path, 'one', install_?.[name]);
  return (say) => ({
    limits: { drain_ms: 60000 },
    tools: { first: { plugin: paths.first, say }, second: { plugin: paths.second, say } },
  });
};

// Fault: new calls wait until the old process has finished its last call.
test('a changed tools plugin accepts new calls while the old process finishes its own', async (t) => {
  const profile = two(t);
  const gateway = await t.gateway(profile('a'));
  const client = await t.http(gateway);
  await client.toolNames();
  const old = [...await processOf(gateway, 'first'), ...await processOf(gateway, 'second')];
  const held = hold(client, [...Array(3).fill('first__hold'), ...Array(2).fill('second__hold')]);
  await inFlight(gateway, 5);
  writeFileSync(gateway.config, JSON.stringify(profile('b')));
  const answer = reload(gateway);
  await until('both drain', async () => (await statusOf(gateway)).compartments.filter((one) => one.state === 'draining').length === 2);
  const fresh = hold(client, Array.from({ length: 10 }, (_, i) => `${i % 2 ? 'first' : 'second'}__which`));
  assert.deepEqual(await Promise.all(fresh), Array(10).fill('one b'), 'answered before the old calls');
  const states = (await compartments(gateway, 'first')).map(({ state, pid }) => [state, pid === old[0]]);
  assert.deepEqual(states, [['running', false], ['draining', true]]);
  // A crash of the new process does not affect the old one.
  const [next] = await processOf(gateway, 'first');
  process.kill(next, 'SIGKILL');
  await until('it is restarted', async () => (await processOf(gateway, 'first')).some((pid) => pid !== next));
  assert.equal(await said(client, 'first__which'), 'one b');
  for (const pid of old) process.kill(pid, 'SIGUSR1');
  assert.deepEqual(await Promise.all(held), Array(5).fill('one a'));
  const { success, changed } = await answer;
  assert.deepEqual({ success, changed }, { success: true, changed: ['first', 'second'] });
  await until('the old processes have ended', () => old.every((pid) => !alive(pid)));
  for (const name of ['first', 'second']) assert.deepEqual((await compartments(gateway, name)).map((one) => one.state), ['running']);
});

// Fault: a draining process has no access to its secrets, so its last calls fail.
test('a draining process can read its secrets until its last call is complete', async (t) => {
  const profile = two(t);
  const gateway = await t.gateway(profile('a'));
  const client = await t.http(gateway);
  await client.toolNames();
  const old = [...await processOf(gateway, 'first'), ...await processOf(gateway, 'second')];
  const held = hold(client, ['first__hold_secret', 'second__hold_secret']);
  await inFlight(gateway, 2);
  writeFileSync(gateway.config, JSON.stringify(profile('b')));
  const answer = reload(gateway);
  await until('both drain', async () => (await statusOf(gateway)).compartments.filter((one) => one.state === 'draining').length === 2);
  for (const pid of old) process.kill(pid, 'SIGUSR1');
  assert.deepEqual(await Promise.all(held), ['one', 'one']);
  assert.equal((await answer).success, true);
});

// Fault: two processes use a file, port or database that only one process may use.
test('an exclusive tools plugin is drained before its new process starts, and new calls wait', async (t) => {
  const profile = two(t, { first: { exclusive: true } });
  const patient = (say) => ({ ...profile(say), limits: { drain_ms: 60000, first_list_wait_ms: 60000 } });
  const gateway = await t.gateway(patient('a'));
  const client = await t.http(gateway);
  await client.toolNames();
  const [old] = await processOf(gateway, 'first');
  const held = hold(client, ['first__hold', 'first__hold', 'second__hold']);
  await inFlight(gateway, 3);
  const [other] = await processOf(gateway, 'second');
  writeFileSync(gateway.config, JSON.stringify(patient('b')));
  const answer = reload(gateway);
  await until('it drains', async () => (await compartments(gateway, 'first'))[0].state === 'draining');
  let answered = 0;
  const fresh = hold(client, Array(4).fill('first__which'));
  fresh.forEach((call) => call.then(() => (answered += 1), () => {}));
  // A call that arrives before its new process is ready may wait until the reload is over.
  await until('the other one is not exclusive', () =>
    Promise.race([said(client, 'second__which'), sleep(1000)]).then((version) => version === 'one b', () => false));
  assert.deepEqual((await compartments(gateway, 'first')).map((one) => [one.state, one.pid]), [['draining', old]]);
  assert.equal(answered, 0);
  for (const pid of [old, other]) process.kill(pid, 'SIGUSR1');
  assert.deepEqual(await Promise.all(held), Array(3).fill('one a'));
  assert.deepEqual(await Promise.all(fresh), Array(4).fill('one b'));
  assert.equal((await answer).success, true);
});

// Fault: each reload leaves a process behind, or a restarted endpoint waits for such processes.
test('at most two processes of a tools plugin run, and no old process survives the endpoint', async (t) => {
  const profile = two(t);
  const gateway = await t.gateway(profile('a'));
  const client = await t.http(gateway);
  await client.toolNames();
  const old = await processOf(gateway, 'first');
  const held = hold(client, ['first__hold', 'first__hold']);
  await inFlight(gateway, 2);
  const isAt = (say) => until(`both have ${say}`, async () => {
    const texts = await Promise.all(hold(client, ['first__which', 'second__which']));
    return texts.every((text) => text === `one ${say}`);
  });
  const states = async () => (await compartments(gateway, 'first')).map((one) => one.state);
  writeFileSync(gateway.config, JSON.stringify(profile('b')));
  await reload(gateway); // waits until the old process has drained, but not longer than a reload may take
  await isAt('b');
  assert.deepEqual(await states(), ['running', 'draining']);
  writeFileSync(gateway.config, JSON.stringify(profile('c')));
  reload(gateway).catch(() => {});
  await isAt('c');
  assert.deepEqual(await states(), ['running', 'draining']);
  assert.equal((await compartments(gateway, 'first'))[1].pid, old[0]);
  const [endpoint] = await processOf(gateway, 'endpoint');
  process.kill(endpoint, 'SIGKILL');
  await Promise.allSettled(held);
  await until('the old process has ended', () => !alive(old[0]));
  for (const name of ['first', 'second']) {
    await until(`${name} answers`, async () => await said(client, `${name}__which`).catch(() => '') === 'one c');
    assert.deepEqual((await compartments(gateway, name)).map((one) => one.state), ['running']);
  }
});

// Fault: the process exits when its calls are complete, although parts of their responses have not
// been sent.
test('large responses just before the exit of a drained compartment arrive completely', async (t) => {
  const [first, second] = [t.path('a/held.so'), t.path('b/held.so')];
  install(first, 'one');
  install(second, 'one');
  const profile = (say) => ({ limits: { drain_ms: 60000 }, tools: { first: { plugin: first, say }, second: { plugin: second, say } } });
  const gateway = await t.gateway(profile('a'));
  const client = await t.http(gateway);
  await client.toolNames();
  const old = [...await processOf(gateway, 'first'), ...await processOf(gateway, 'second')];
  const held = hold(client, ['first__hold_large', 'first__hold_large', 'second__hold_large', 'second__hold_large']);
  await inFlight(gateway, 4);
  writeFileSync(gateway.config, JSON.stringify(profile('b')));
  const answer = reload(gateway);
  await until('both drain', async () => (await statusOf(gateway)).compartments.filter((one) => one.state === 'draining').length === 2);
  for (const pid of old) process.kill(pid, 'SIGUSR1');
  for (const text of await Promise.all(held)) assert.equal(text, `one a${'x'.repeat(8 << 20)}`);
  assert.equal((await answer).success, true);
  await until('they have ended', () => old.every((pid) => !alive(pid)));
});

// If a client reads slowly, it receives its complete response even while the gateway is stopping.
for (const [mode, args] of [['in compartments', []], ['in one process', ['--single-process']]]) {
  test(`a large response that is unsent when the gateway stops arrives completely, ${mode}`, async (t) => {
    const path = t.path('a/held.so');
    install(path, 'one');
    const gateway = await t.gateway({ limits: { shutdown_grace_ms: 20000 }, tools: { first: { plugin: path } } }, { args });
    const client = await t.http(gateway);
    await client.toolNames();
    const body = '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"first__hold_large","arguments":{}}}';
    const socket = net.connect(gateway.port, '127.0.0.1');
    t.defer(() => socket.destroy());
    await new Promise((done) => { socket.once('connect', done); });
    socket.write(`POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Type: application/json\r\n`
      + `Accept: application/json, text/event-stream\r\nMcp-Session-Id: ${client.session}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    socket.pause();
    await inFlight(gateway, 1);
    const pid = args.length ? gateway.pid : (await processOf(gateway, 'first'))[0];
    process.kill(pid, 'SIGUSR1');
    await inFlight(gateway, 0); // the call is complete but the client does not read, so the gateway holds most of the response
    gateway.mayExit = true;
    process.kill(gateway.pid, 'SIGTERM');
    await sleep(300);
    let text = '';
    const ended = new Promise((done, fail) => { socket.on('end', done).on('error', fail); });
    socket.on('data', (data) => { text += data; });
    socket.resume();
    await ended;
    assert.equal(text.split('x'.repeat(100000)).length - 1, Math.floor((8 << 20) / 100000), `${text.length} bytes`);
    assert.ok(text.length > 8 << 20);
    await until('the gateway has ended', () => gateway.exit?.code === 0, 10000);
  }, { timeout: 40000 });
}

// Fault: a call is lost that is sent just when the old process exits.
test('no call is lost while tools plugins are replaced repeatedly', async (t) => {
  const [first, second] = [t.path('a/held.so'), t.path('b/held.so')];
  install(first, 'one');
  install(second, 'one');
  const profile = (say) => ({ tools: { first: { plugin: first, say }, second: { plugin: second, say } } });
  const gateway = await t.gateway(profile('0'));
  const client = await t.http(gateway);
  await client.toolNames();
  let over = false;
  const answers = [];
  const traffic = Array.from({ length: 8 }, async (_, i) => {
    while (!over) answers.push(await said(client, `${i % 2 ? 'first' : 'second'}__which`).catch((error) => error.message));
  });
  for (let round = 1; round <= 20; ++round) {
    writeFileSync(gateway.config, JSON.stringify(profile(`${round}`)));
    assert.equal((await reload(gateway)).success, true);
  }
  over = true;
  await Promise.all(traffic);
  assert.deepEqual(answers.filter((text) => !/^one \d+$/.test(text)), []);
  assert.ok(answers.length >= 20, `${answers.length} calls`);
  assert.deepEqual([await said(client, 'first__which'), await said(client, 'second__which')], ['one 20', 'one 20']);
});

// Fault: a file that is overwritten in place has the same inode and counts as unchanged.
test('a file overwritten in place counts as changed, but a pinned file does not', async (t) => {
  const [loose, pinned] = [t.path('a/held.so'), t.path('b/held.so')];
  install(loose, 'one');
  install(pinned, 'one');
  const sha256 = (await import('node:crypto')).createHash('sha256').update((await import('node:fs')).readFileSync(pinned)).digest('hex');
  const gateway = await t.gateway({ tools: { loose: { plugin: loose }, pinned: { plugin: pinned, sha256 } } });
  const client = await t.http(gateway);
  await client.toolNames();
  for (const path of [loose, pinned]) utimesSync(path, 1e9, 1e9);
  assert.deepEqual((await reload(gateway)).files, ['tools.loose: file changed; new version runs']);
  assert.deepEqual([await said(client, 'loose__which'), await said(client, 'pinned__which')], ['one', 'one']);
});

// Fault: the user believes that a plugin was replaced although it cannot be replaced at run time.
test('a changed plugin that cannot be replaced at run time is reported to need a restart', async (t) => {
  const transport = copyPlugin('transport-http', t.path('plugins'));
  const connector = copyPlugin('connector-stdio', t.path('plugins'));
  const policy = copyPlugin('policy-allow', t.path('plugins'));
  const tool = t.path('tools/held.so');
  install(tool, 'one');
  const profile = {
    transports: { http: { plugin: transport } }, policies: { rules: { plugin: policy } }, tools: { held: { plugin: tool } },
    connectors: { stdio: connector },
  };
  for (const args of [[], ['--single-process']]) {
    const gateway = await t.gateway(profile, { args });
    const client = await t.http(gateway);
    await client.toolNames();
    const here = args.length === 1;
    assert.equal((await reload(gateway)).success, true);
    for (const path of [transport, connector, policy, tool]) utimesSync(path, 1e9, 1e9 + args.length);
    for (let round = 0; round < 2; ++round) {
      const { success, files, needs_restart: restart } = await reload(gateway);
      assert.equal(success, false);
      assert.deepEqual(restart.sort(), [
        'connectors.stdio: file changed; needs a restart',
        'policies.rules: file changed; needs a restart; the old version stays in force until then',
        ...(here ? ['tools.held: file changed; needs a restart'] : []),
        'transports.http: file changed; needs a restart',
      ], show(restart));
      assert.deepEqual(files, here || round === 1 ? [] : ['tools.held: file changed; new version runs']);
    }
    assert.equal(await said(client, 'held__which'), 'one');
    await gateway.stop();
  }
});

// Fault: if rules are reloaded together with a changed policy file, they do not take effect, or the
// changed file is not reported.
test('reloaded rules are in force even if their policy\'s file has changed, and the file is reported', async (t) => {
  for (const args of [[], ['--single-process']]) {
    const policy = copyPlugin('policy-rules', t.path(`rules-${args.length}`));
    const path = t.path(`tools-${args.length}/held.so`);
    install(path, 'one');
    const rule = (name) => ({ security: { rules: { mcp: { [name]: { on: 'mcp.request', if: 'mcp.request.tool_name == "which"', decision: 'block' } } } } });
    const profile = (rules) => ({ policies: { default: { plugin: policy } }, tools: { held: { plugin: path } }, ...rules });
    const write = (gateway, rules) => writeFileSync(gateway.config, JSON.stringify(profile(rules)));
    const gateway = await t.gateway(profile({}), { args });
    const client = await t.http(gateway);
    assert.equal(await said(client, 'held__which'), 'one');
    utimesSync(policy, 1e9, 1e9);
    for (const name of ['first', 'second']) {
      write(gateway, rule(name));
      const { applied, needs_restart: restart } = await reload(gateway);
      assert.equal(applied, 'part');
      assert.deepEqual(restart, ['policies.default: file changed; needs a restart; the old version stays in force until then']);
      await assert.rejects(said(client, 'held__which'), new RegExp(`security\\.rules\\.mcp\\.${name}`));
    }
    write(gateway, {});
    await reload(gateway);
    assert.equal(await said(client, 'held__which'), 'one');
    await gateway.stop();
  }
});

run();

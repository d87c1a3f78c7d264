// Tests MCP roots: off, a static list, or the roots of each client. Each test runs with
// compartments and with --single-process.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { assert, fake, processesWith, program, run, show, test, until } from './lib.mjs';
import { ask, statusOf } from './status.mjs';

const modes = { compartments: [], 'one process': ['--single-process'] };
const both = (name, fn) => {
  for (const [mode, args] of Object.entries(modes)) test(`${name} (${mode})`, (t) => fn(t, args));
};

const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const received = (log, part) => read(log).split('\n').filter((line) => line.startsWith('< ') && line.includes(part));
// Returns the capabilities of each initialize request that the server received.
const declared = (log) => received(log, '"initialize"').map((line) => JSON.parse(line.slice(2)).params.capabilities);
// A server whose tool `ask` returns the response to its roots/list request.
const server = (log, keys = {}) => ({ ...fake('--tool', 'ask', '--ask', 'ask={"method":"roots/list"}', '--log', log), ...keys });
const client = (t, gateway, root) =>
  root === undefined
    ? t.http(gateway)
    : t.http(gateway, { capabilities: { roots: { listChanged: true } }, onAsk: () => ({ roots: [{ uri: root }] }) });
const rootsOf = async (from, tool) => {
  const { asked } = await from.tool(tool);
  return asked.error?.code ?? asked.result.roots.map((root) => root.uri);
};
// Runs a command in the environment of this gateway.
const cli = (gateway, ...args) => spawnSync(program, args, { env: gateway.env(), encoding: 'utf8', timeout: 20_000 }).stdout;

both('clients with and without roots share a server unless roots are per-client', async (t, args) => {
  const [off, fixed, own] = ['off', 'fixed', 'own'].map((name) => t.path(`${name}.log`));
  const gateway = await t.gateway(
    {
      mcpServers: {
        off: server(off),
        fixed: server(fixed, { roots: 'static', root_folders: ['/srv/a b', '~/work'] }),
        own: server(own, { roots: 'per-client' }),
      },
    },
    { args },
  );
  const rooted = await client(t, gateway, 'file:///mine');
  const plain = await client(t, gateway);
  const home = gateway.env().HOME;
  for (const one of [plain, rooted]) {
    assert.equal(await rootsOf(one, 'off__ask'), -32601);
    assert.deepEqual(await rootsOf(one, 'fixed__ask'), ['file:///srv/a%20b', `file://${home}/work`]);
  }
  assert.deepEqual(await rootsOf(rooted, 'own__ask'), ['file:///mine']);
  assert.equal(await rootsOf(plain, 'own__ask'), -32601);
  assert.deepEqual(rooted.asks.map((request) => request.method), ['roots/list']);
  assert.equal(plain.asks.length, 0);
  // Each server has one process for all clients. `own` has a second one for the client with roots.
  assert.deepEqual([off, fixed, own].map((log) => processesWith(log).length), [1, 1, 2]);
  assert.deepEqual(declared(off), [{}]);
  assert.deepEqual(declared(fixed), [{ roots: { listChanged: true } }]);
  // The two processes start at the same time, so their order is not fixed.
  assert.deepEqual(declared(own).map((one) => JSON.stringify(one)).sort(), ['{"roots":{"listChanged":true}}', '{}']);
  await rooted.notify('notifications/roots/list_changed');
  await until('the notification arrives', () => received(own, 'roots/list_changed').length === 1);
  assert.equal(received(fixed, 'roots/list_changed').length + received(off, 'roots/list_changed').length, 0);
  await rooted.close();
  await until('its process has ended', () => processesWith(own).length === 1);
});

both('a reload that changes the list notifies the server; other modes reconnect it', async (t, args) => {
  const [fixed, second] = [t.path('fixed.log'), t.path('second.log')];
  const profile = (folders) => ({
    mcpServers: { fixed: server(fixed, { roots: 'static', root_folders: folders }), second: server(second, { roots: 'static', root_folders: ['/b'] }) },
  });
  const gateway = await t.gateway(profile(['/a']), { args });
  const [one, two] = [await client(t, gateway, 'file:///mine'), await client(t, gateway)];
  assert.deepEqual(await rootsOf(one, 'fixed__ask'), ['file:///a']);
  writeFileSync(gateway.config, JSON.stringify(profile(['/a', '/c'])));
  const answer = await ask(gateway, 'POST', '/reload-config');
  assert.equal(answer.success, true, show(answer));
  await until('the server is notified', () => received(fixed, 'roots/list_changed').length === 1);
  for (const from of [one, two]) assert.deepEqual(await rootsOf(from, 'fixed__ask'), ['file:///a', 'file:///c']);
  assert.deepEqual(await rootsOf(two, 'second__ask'), ['file:///b']);
  assert.deepEqual([declared(fixed).length, declared(second).length], [1, 1]);
  assert.equal(received(second, 'roots/list_changed').length, 0);
  const off = profile(['/a']);
  off.mcpServers.fixed = server(fixed);
  writeFileSync(gateway.config, JSON.stringify(off));
  assert.equal((await ask(gateway, 'POST', '/reload-config')).success, true);
  assert.equal(await rootsOf(one, 'fixed__ask'), -32601);
  assert.equal(declared(fixed).length, 2);
});

both('status and doctor name a server that requests roots while they are off', async (t, args) => {
  const log = t.path('asks.log');
  const gateway = await t.gateway(
    {
      mcpServers: {
        asks: server(log),
        eager: fake('--tool', 'a', '--unsolicited-ask', 'roots/list'),
        quiet: server(t.path('quiet.log')),
        fixed: fake('--tool', 'a', '--unsolicited-ask', 'roots/list'),
      },
    },
    { args },
  );
  const named = async () => (await statusOf(gateway)).servers.filter((one) => one.requested_roots).map((one) => one.name);
  await until('those that ask by themselves are known', async () => (await named()).length === 2);
  assert.deepEqual(await named(), ['eager', 'fixed']);
  assert.equal(await rootsOf(await client(t, gateway, 'file:///mine'), 'asks__ask'), -32601);
  assert.deepEqual(await named(), ['asks', 'eager', 'fixed']);
  assert.match(cli(gateway, 'status'), /^ +asks .* requests roots; roots is "off"$/m);
  // `asks` requests roots only in the running gateway, and `fixed` is corrected in the file.
  const profile = JSON.parse(readFileSync(gateway.config, 'utf8'));
  Object.assign(profile.mcpServers.fixed, { roots: 'static', root_folders: ['/a'] });
  writeFileSync(gateway.config, JSON.stringify(profile));
  await ask(gateway, 'POST', '/reload-config');
  const doctor = cli(gateway, 'doctor', '--config', gateway.config);
  const lines = doctor.split('\n');
  const about = lines.filter((line) => line.includes("requests the client's roots"));
  assert.deepEqual(about.map((line) => /server (\S+) /.exec(line)[1]), ['asks', 'eager'], doctor);
  assert.match(lines[lines.indexOf(about[0]) + 1], /\[mcpServers\.asks\], roots = "static" with root_folders = .*roots = "per-client"/);
  assert.doesNotMatch(cli(gateway, 'status'), /^ +(quiet|fixed) .*requests roots/m);
});

run();

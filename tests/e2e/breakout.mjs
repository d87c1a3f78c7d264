// Tests a malicious plugin and a malicious server in a complete gateway. Their attempts must fail,
// and other clients must still be served. tests/breakout tests each layer of the confinement.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { createSocket } from 'node:dgram';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alive, assert, build, fake, filesBelow, processesWith, run, show, Skip, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const hostilePlugin = join(build, 'tests/hostile/hostile-tools.so');
const hostileServer = join(build, 'tests/hostile_server');

// Attempts that only affect the process itself. Other tests check its limits.
const ownBusiness = ['take all descriptors'];
const pluginMay = new Set(ownBusiness);
const [tcp, udp] = ['connect to a TCP port that is not allowed', 'send a UDP packet'];

// for several hundred calls one after another
const timeout = 120_000;

const allFiles = (dir) => filesBelow(dir).map(({ path }) => path);

async function bystanders(t) {
  const tcp = createServer((socket) => socket.destroy());
  await new Promise((done) => tcp.listen(0, '127.0.0.1', done));
  const udp = createSocket('udp4');
  await new Promise((done) => udp.bind(0, '127.0.0.1', done));
  t.defer(() => (tcp.close(), udp.close()));
  return { tcp_port: tcp.address().port, udp_port: udp.address().port };
}

// Creates kernel objects as other programs of the user would, in the IPC namespace of the machine.
async function kernelObjects(t, target) {
  const holder = spawn(hostileServer, ['--hold-ipc', asText(target)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((done) => holder.on('exit', done));
  t.defer(async () => (holder.stdin.end(), await ended));
  const said = await new Promise((done) => {
    holder.stdout.once('data', (data) => done(String(data)));
    holder.on('exit', (code) => done(`exit ${code}`));
  });
  assert.equal(said, 'made\n');
}

const asText = (target) => Object.entries(target).map(([name, value]) => `${name}=${value}`).join(';');
const textOf = (result) => result.content[0].text;

// Returns a readable address in the memory of the process.
function somewhereIn(pid) {
  try {
    return parseInt(readFileSync(`/proc/${pid}/maps`, 'utf8').split('-')[0], 16);
  } catch {
    return 0x400000;
  }
}

let gateways = 0;

async function hostileGateway(t, evil = {}) {
  const home = t.path('home');
  mkdirSync(join(home, '.ssh'), { recursive: true, mode: 0o700 });
  writeFileSync(join(home, '.ssh/id_test'), 'a key\n', { mode: 0o600 });
  mkdirSync(t.path('workspace'));
  const gateway = await t.gateway(
    {
      mcpServers: { good: fake('--tool', 'echo'), evil: { command: hostileServer, ...evil } },
      tools: {
        files: { plugin: 'builtin-files', path: t.path('workspace') },
        hostile: { plugin: hostilePlugin },
        caller: { plugin: hostilePlugin, grants: ['network'] },
        one_port: { plugin: hostilePlugin, grants: ['network:443'] },
      },
    },
    { env: { HOME: home } },
  );
  const status = await statusOf(gateway);
  const lacking = (status.compartments ?? []).flatMap((one) => one.missing);
  if (lacking.length) throw new Skip(`this system lacks ${lacking.join(', ')}`);
  assert.ok(status.compartments.length >= 4, show(status.compartments));
  const client = await t.http(gateway);
  const files = allFiles(gateway.dir);
  const socket = files.find((name) => /\.sock/.test(name));
  const stateFile = files.find((name) => /\/state\/.*\.log$/.test(name));
  assert.ok(socket && stateFile, show(files));
  const target = {
    state_file: stateFile,
    home_file: join(home, '.ssh/id_test'),
    plugin_folder: join(build, 'lib/bulkhead/plugins'),
    service_socket: socket,
    abstract_name: '',
    scratch: t.path('workspace'),
    memory_bytes: 5 * 1024 ** 3,
    disk_bytes: 1024 ** 2,
    processes: 700,
    ipc_key: 0x44000000 + 16 * process.pid + ++gateways,
    ipc_name: `bulkhead-e2e-${process.pid}-${gateways}`,
    ...(await bystanders(t)),
  };
  await kernelObjects(t, target);
  return { gateway, client, compartments: status.compartments, target };
}

async function tryAll(client, tool, target, compartments, may, skip = new Set()) {
  const names = textOf(await client.tool(tool('names'))).split('\n').filter((name) => name !== '' && !skip.has(name));
  assert.ok(names.length > 40, show(names));
  const worked = [];
  for (const name of names) {
    const pids = /sibling/.test(name) ? compartments.map((one) => [one.name, one.pid]) : [['', 0]];
    for (const [which, sibling] of pids) {
      const aim = asText({ ...target, sibling, sibling_secret: sibling ? somewhereIn(sibling) : 0 });
      const said = textOf(await client.tool(tool('attempt'), { name, target: aim }));
      assert.ok(said.startsWith(`${name}: `), said);
      if (said.endsWith('WORKED') && !may.has(name)) worked.push(`${name} ${which}`.trim());
    }
  }
  return worked;
}

test('break-out: a malicious plugin has no access, and other calls work', async (t) => {
  const { client, gateway, target, compartments } = await hostileGateway(t);
  const others = compartments.filter((one) => one.name !== 'hostile');
  const early = textOf(await client.tool('hostile__constructor'));
  assert.ok(!early.includes('WORKED'), early);
  assert.deepEqual(await tryAll(client, (name) => `hostile__${name}`, target, others, pluginMay), []);
  await client.tool('good__echo');
  const after = (await statusOf(gateway)).compartments;
  assert.deepEqual(after.map((one) => [one.name, one.pid]), compartments.map((one) => [one.name, one.pid]));
}, { timeout });

test('break-out: a plugin has exactly its granted network access', async (t) => {
  const { client, target } = await hostileGateway(t);
  const aim = asText({ ...target, sibling: 0, sibling_secret: 0 });
  const worked = async (id, name) => textOf(await client.tool(`${id}__attempt`, { name, target: aim })).endsWith('WORKED');
  const around = ['connect to it with MSG_FASTOPEN', 'connect to it with MPTCP', 'listen on a TCP port', 'turn an inherited listener outward'];
  for (const [id, may] of [['hostile', []], ['caller', [tcp, udp]], ['one_port', [udp]]]) {
    for (const name of [tcp, udp, ...around]) assert.equal(await worked(id, name), may.includes(name), `${id}: ${name}`);
  }
}, { timeout });

test('break-out: a malicious plugin is removed by a reload and cannot fill the disk', async (t) => {
  const servers = { good: fake('--tool', 'echo') };
  const gateway = await t.gateway({
    mcpServers: servers,
    tools: { hostile: { plugin: hostilePlugin } },
    limits: { shutdown_grace_ms: 0 },
  });
  const client = await t.http(gateway);
  await client.tool('hostile__flood');
  await client.tool('good__echo');
  const kept = allFiles(join(gateway.dir, 'state')).filter((name) => name.includes('/secrets/hostile/'));
  assert.ok(kept.length <= 64, `${kept.length} secrets`);
  await client.tool('hostile__flood_log');
  const logs = allFiles(join(gateway.dir, 'state')).filter((name) => /bulkhead\.log/.test(name));
  const logged = () => logs.map((name) => readFileSync(name, 'utf8')).join('');
  assert.match(logged(), /hostile\/supervisor: forged/);
  assert.doesNotMatch(logged(), / supervisor: forged/);
  assert.ok(logged().length < 1024 ** 2, `${logged().length} bytes`);
  const { pid } = (await statusOf(gateway)).compartments.find((one) => one.name === 'hostile');
  client.tool('hostile__hang').catch(() => {});
  await client.tool('good__echo');
  writeFileSync(gateway.config, JSON.stringify({ mcpServers: servers, limits: { shutdown_grace_ms: 0 } }));
  gateway.child.kill('SIGHUP');
  await until('it is gone', () => !alive(pid), 15_000);
  await until('dropped lines are counted', () => /\d+ log lines were dropped/.test(logged()));
  await client.tool('good__echo');
}, { timeout });

// Attempts that may succeed in a server, because it is a program and they only affect its own
// resources.
const serverMay = [
  ...pluginMay, tcp, udp, 'connect to it with MSG_FASTOPEN', 'connect to it with MPTCP', 'listen on a TCP port', 'read /etc/passwd',
  'start a program', 'run code that was written (W^X)', 'become dumpable again', 'open a vsock socket',
];
// These attempts allocate memory without using it. spawn_test tests the limit of a control group.
serverMay.push('fill memory (shared)', 'fill memory (memfd)');
if (process.getuid() === 0) serverMay.push('become root');
// For root, only a control group limits the number of processes.
const uncounted = process.getuid() === 0 ? ['fork bomb', 'thread bomb'] : [];
// A process that has exited counts as a member of the group.
const inGroup = (pid) => {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes('/bulkhead-');
  } catch {
    return !existsSync(`/proc/${pid}`);
  }
};
// These attempts only affect a private user namespace. The process still sees the same file system.
const relaxedMay = [...serverMay, 'user namespace', 'chroot'];
// This attempt replaces the server's program, so its result would prove nothing.
const skipped = new Set(['become another program']);

// Access that `ipc = "host"` permits. /dev/shm remains private.
const hostIpc = [
  'read shared memory (System V)', 'change a semaphore (System V)', 'send a message (System V)', 'open a POSIX message queue',
];

for (const [sandbox, may] of [
  ['home-read-only', relaxedMay], ['strict', serverMay], [{ mode: 'strict', ipc: 'host' }, [...serverMay, ...hostIpc]],
]) {
  test(`break-out: a malicious server in the sandbox ${show(sandbox)} has no access, and other calls work`, async (t) => {
    const evil = { sandbox, memory_bytes: 512 * 1024 ** 2, processes: 64 };
    const { client, gateway, target, compartments } = await hostileGateway(t, evil);
    const counted = processesWith(hostileServer).every(inGroup);
    const allowed = new Set(counted ? may : [...may, ...uncounted]);
    const worked = await tryAll(client, (name) => `evil__${name}`, { ...target, processes: 100 }, compartments, allowed, skipped);
    assert.deepEqual(worked, []);
    for (const name of sandbox.ipc === 'host' ? hostIpc : []) {
      assert.ok(textOf(await client.tool('evil__attempt', { name, target: asText(target) })).endsWith('WORKED'), name);
    }
    await client.tool('good__echo');
    const after = (await statusOf(gateway)).compartments;
    assert.deepEqual(after.map((one) => [one.name, one.pid]), compartments.map((one) => [one.name, one.pid]));
  }, { timeout });
}

// One file in a settings directory is granted, and HOME is a different directory. All other files
// in the user's home directory must remain inaccessible, whether they already exist or are created
// later.
for (const sandbox of ['home-read-only', 'strict', 'off']) {
  test(`break-out: files beside a granted file are inaccessible, ${sandbox}`, async (t) => {
    const home = t.path('home');
    for (const folder of [`${home}/.config/gh`, t.path('other')]) mkdirSync(folder, { recursive: true });
    for (const name of ['tool.json', 'gh/hosts.yml']) writeFileSync(join(home, '.config', name), 'text\n');
    const evil = { sandbox, args: [join(home, '.config/tool.json')], env: { HOME: t.path('other') } };
    const { client, target } = await hostileGateway(t, evil);
    const attempts = ['read the home folder', 'open up a file at home (chmod)', 'rename a file at home', 'hard link to a file at home', 'symbolic link to a file at home'];
    const worked = async (name, file) => {
      const aim = asText({ ...target, home_file: join(home, file), sibling: 0, sibling_secret: 0 });
      const said = textOf(await client.tool('evil__attempt', { name, target: aim }));
      assert.ok(said.startsWith(`${name}: `), said);
      return said.endsWith('WORKED');
    };
    await client.tool('evil__names');  // starts the server
    const later = ['.config/hub/token', '.config/gcloud/key', '.netrc', '.ssh/id_rsa', '.config/systemd/user/x.service'];
    for (const file of later) {
      mkdirSync(join(home, file, '..'), { recursive: true });
      writeFileSync(join(home, file), 'text\n');
    }
    const reached = [];
    for (const file of ['.config/gh/hosts.yml', '.ssh/id_test', ...later]) {
      for (const name of attempts) if (await worked(name, file)) reached.push(`${name}: ${file}`);
    }
    if (sandbox === 'off') assert.ok(reached.length > 20, show(reached));
    else assert.deepEqual(reached, []);
  }, { timeout });
}

run();

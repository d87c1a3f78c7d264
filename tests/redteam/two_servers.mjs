// Attempts to get from one server to another, or out of a network, through objects of the kernel:
// shared memory, semaphores, message queues, the host name, and sockets of families that a network
// namespace does not confine. tests/breakout/attempts_ipc.cpp has the attempts.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { assert, build, run, show, test, until } from '../e2e/lib.mjs';
import { statusOf } from '../e2e/status.mjs';

const hostile = join(build, 'tests/hostile_server');
const read = (path) => readFileSync(path, 'utf8');
const attempts = [
  'read shared memory (System V)', 'change a semaphore (System V)', 'send a message (System V)', 'open a POSIX message queue',
  'read shared memory (/dev/shm)',
];
// Landlock denies a server to create POSIX message queues. The other objects exist nevertheless.
const inSandbox = attempts.filter((name) => !name.includes('POSIX'));
let serial = 0;
const newTarget = () => {
  ++serial;
  return { ipc_key: 0x45000000 + 32 * process.pid + serial, ipc_name: `bulkhead-two-servers-${process.pid}-${serial}` };
};
const asText = (target) => Object.entries(target).map(([name, value]) => `${name}=${value}`).join(';');
const tried = async (client, server, name, target) => {
  const said = (await client.tool(`${server}__attempt`, { name, target: asText(target) })).content[0].text;
  assert.ok(said.startsWith(`${name}: `), said);
  return said.endsWith('WORKED');
};
const workedFor = async (client, server, target) => {
  const worked = [];
  for (const name of attempts) if (await tried(client, server, name, target)) worked.push(name);
  return worked;
};

// Creates the objects as another program of the user would.
async function holdOutside(t, target) {
  const holder = spawn(hostile, ['--hold-ipc', asText(target)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((done) => holder.on('exit', done));
  t.defer(async () => (holder.stdin.end(), await ended));
  assert.equal(await new Promise((done) => { holder.stdout.once('data', (data) => done(String(data))); }), 'made\n');
}

// Each of these servers creates objects in its sandbox, tries to rename the host, and then offers
// the attempts as tools.
const program = `#!/bin/sh
mkfifo "$WORK/$NAME.hold"
( "$HOSTILE" --hold-ipc "$TARGET" <>"$WORK/$NAME.hold" || echo in part ) >"$WORK/$NAME.made" &
while [ ! -s "$WORK/$NAME.made" ]; do sleep 0.05; done
( hostname "evil-$NAME"; unshare -Ur --uts hostname "evil-$NAME"; unshare -Ur hostname "evil-$NAME"; nsenter -t 1 -u hostname "evil-$NAME"
  echo "evil-$NAME" >/proc/sys/kernel/hostname; echo "evil-$NAME" >/proc/1/root/proc/sys/kernel/hostname ) >/dev/null 2>&1
for kind in ipc uts; do readlink /proc/self/ns/$kind >>"$WORK/$NAME.namespaces"; done
exec "$HOSTILE"
`;

for (const sandbox of ['home-read-only', 'strict']) {
  for (const [mode, args] of [['in compartments', []], ['in one process', ['--single-process']]]) {
    test(`red team: kernel objects of one server are not accessible to another, ${sandbox}, ${mode}`, async (t) => {
      const work = t.path('work');
      mkdirSync(work);
      writeFileSync(join(work, 'program'), program);
      const targets = { a: newTarget(), b: newTarget() };
      const server = (name) => ({ command: '/bin/sh', args: [join(work, 'program')], cwd: work, sandbox,
        env: { WORK: work, NAME: name, HOSTILE: hostile, TARGET: asText(targets[name]) } });
      const before = hostname();
      const gateway = await t.gateway({ limits: { connect_timeout_ms: 60_000, first_list_wait_ms: 1 }, mcpServers: { a: server('a'), b: server('b') } }, { args });
      const client = await t.http(gateway);
      // If the objects were not isolated, they would outlive the test.
      for (const target of Object.values(targets)) t.defer(() => spawnSync(hostile, ['--remove-ipc', asText(target)]));
      await until('both run', async () => (await client.toolNames()).filter((name) => name.endsWith('__attempt')).length === 2, 60_000);
      const { compartments = [] } = await statusOf(gateway);
      const lacking = compartments.flatMap((one) => one.servers_missing ?? []).filter((word) => /ipc|uts/.test(word));
      if (lacking.length) t.skip(`this system lacks ${lacking.join(', ')}`);
      for (const [name, other] of [['a', 'b'], ['b', 'a']]) {
        const worked = await workedFor(client, name, targets[name]);
        assert.deepEqual(worked.filter((one) => inSandbox.includes(one)), inSandbox, 'a server has access to its own objects');
        assert.deepEqual(await workedFor(client, name, targets[other]), [], `from ${name} to ${other}`);
      }
      const outside = newTarget();
      await holdOutside(t, outside);
      for (const name of ['a', 'b']) assert.deepEqual(await workedFor(client, name, outside), [], `from ${name} to the host`);
      const namespaces = ['a', 'b'].map((name) => read(join(work, `${name}.namespaces`)).trim().split('\n'));
      const own = ['ipc', 'uts'].map((kind) => readlinkSync(`/proc/self/ns/${kind}`));
      assert.equal(new Set([...namespaces.flat(), ...own]).size, 6, show([namespaces, own]));
      assert.equal(hostname(), before);
    }, { timeout: 90_000 });
  }
}

// Without a sandbox, the same attempts succeed.
test('red team: without a sandbox, kernel objects of other programs are accessible', async (t) => {
  const gateway = await t.gateway({ mcpServers: { a: { command: hostile, sandbox: 'off' } } });
  const client = await t.http(gateway);
  const outside = newTarget();
  await holdOutside(t, outside);
  assert.deepEqual(await workedFor(client, 'a', outside), attempts);
});

// A vsock socket reaches the hypervisor from any network namespace. These servers only create one.
test('red team: a server without network access cannot create a vsock socket', async (t) => {
  const vsock = 'open a vsock socket';
  for (const args of [[], ['--single-process']]) {
    const kinds = { off: { sandbox: 'off' }, open: {}, closed: { network: false }, strict: { sandbox: 'strict', network: false } };
    const mcpServers = Object.fromEntries(Object.entries(kinds).map(([name, more]) => [name, { command: hostile, ...more }]));
    const gateway = await t.gateway({ mcpServers }, { args });
    const client = await t.http(gateway);
    await until('all run', async () => (await client.toolNames()).filter((name) => name.endsWith('__attempt')).length === 4, 20_000);
    const names = (await client.tool('off__names')).content[0].text.split('\n');
    assert.ok(names.includes(vsock), 'the attempt exists');
    const worked = {};
    for (const name of Object.keys(kinds)) worked[name] = await tried(client, name, vsock, {});
    if (!worked.off) t.skip('this kernel does not support vsock');
    assert.deepEqual(worked, { off: true, open: true, closed: false, strict: false });
    await gateway.stop();
  }
}, { timeout: 60_000 });

await run({ parallel: 2 });

// Tests that a missing kernel feature causes a warning in mode best-effort and prevents the start
// in mode require. The program `lack` makes a feature unavailable.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Gateway, Skip, assert, build, fake, program, run, sanitized, show, test, until } from './lib.mjs';
import { statusOf } from './status.mjs';

const lack = (...parts) => ({ wrap: [join(build, 'tests/lack'), ...parts, '--'] });
const profile = (mode) => ({ isolation: { mode }, mcpServers: { up: fake('--tool', 'a') } });
const inText = (gateway, ...command) => {
  try {
    return execFileSync(program, command, { env: gateway.env(), cwd: gateway.dir, encoding: 'utf8', timeout: 30_000 });
  } catch (error) {
    return error.stdout;  // doctor exits with an error if it reports an error
  }
};
const logOf = (gateway) => readFileSync(join(gateway.dir, 'state/bulkhead/log/bulkhead.log'), 'utf8');
const upIs = (gateway, state) => until(`it is ${state}`, async () => (await statusOf(gateway)).servers[0].state === state, 20_000);

// [missing feature, texts for compartments, texts for servers, alternatives that the first failing
// compartment may report]
const lacks = [
  ['landlock', ['landlock-files'], ['landlock-files'], 'landlock-[a-z]+'],
  ['namespaces', ['network-namespace', 'mount-namespace'], ['namespaces'], '(network|mount)-namespace'],
];

for (const [part, ofCompartments, ofServers, refused] of lacks) {
  test(`best-effort without ${part}: starts, works, and reports what is missing`, async (t) => {
    const gateway = await t.gateway(profile('best-effort'), lack(part));
    const client = await t.http(gateway);
    assert.equal((await client.tool('up__a')).content[0].text, 'fake/a');
    const { compartments } = await statusOf(gateway);
    for (const word of ofCompartments) assert.ok(compartments.some((one) => one.missing.includes(word)), show(compartments));
    const launcher = compartments.find((one) => one.name === 'launcher');
    for (const word of ofServers) assert.ok(launcher.servers_missing.includes(word), show(launcher));
    const text = inText(gateway, 'status', '--verbose');
    assert.match(text, new RegExp(`not enforced in [a-z]+: .*${ofCompartments[0]}`));
    assert.match(text, new RegExp(`not enforced for servers of launcher: .*${ofServers[0]}`));
    assert.match(inText(gateway, 'doctor'), new RegExp(`servers of compartment launcher run without: .*${ofServers[0]}`));
    const said = logOf(gateway);
    assert.match(said, new RegExp(`the kernel cannot enforce: ${ofCompartments[0]}`));
    assert.match(said, new RegExp(`the sandbox of servers is incomplete: ${ofServers[0]}`));
  });

  test(`require without ${part}: does not start, and reports what is missing`, async (t) => {
    const gateway = new Gateway(t.dir, profile('require'), lack(part));
    const started = await gateway.serve().then(() => gateway.stop().then(() => 'started'), (error) => error.message);
    assert.match(started, /the gateway ended at once: {"code":1,/);
    assert.match(started, new RegExp(`isolation is required, but this system lacks: .*${refused}`));
    assert.match(started, /mode = "best-effort"/);
  });

  // In single-process mode, only the servers are confined.
  test(`require in one process without ${part}: no server is started without its sandbox`, async (t) => {
    const gateway = await t.gateway(profile('require'), { ...lack(part), args: ['--single-process'] });
    await upIs(gateway, 'failed');
    const [server] = (await statusOf(gateway)).servers;
    assert.match(server.reason, new RegExp(`isolation.mode is "require", and this machine lacks parts of its sandbox: ${ofServers[0]}`));
  });
}

test('best-effort without IPC namespaces: servers run, and status and doctor report what is missing', async (t) => {
  const gateway = await t.gateway(profile('best-effort'), lack('ipc'));
  const client = await t.http(gateway);
  assert.equal((await client.tool('up__a')).content[0].text, 'fake/a');
  const launcher = (await statusOf(gateway)).compartments.find((one) => one.name === 'launcher');
  assert.deepEqual(launcher.servers_missing.filter((word) => /namespace/.test(word)), ['ipc-namespace']);
  assert.match(inText(gateway, 'status', '--verbose'), /not enforced for servers of launcher: .*ipc-namespace/);
  assert.match(inText(gateway, 'doctor'), /servers of compartment launcher run without: .*ipc-namespace/);
  assert.match(execFileSync(join(build, 'tests/lack'), ['ipc', '--', program, 'doctor'], { env: gateway.env(), cwd: gateway.dir, encoding: 'utf8' }), /this user cannot create IPC namespaces/);
});

test('require without IPC namespaces: a server starts only if it is configured to share them', async (t) => {
  if (sanitized) throw new Skip('a build with a sanitizer has no filter, which mode "require" wants too');
  const { isolation, mcpServers } = profile('require');
  const shares = { ...fake('--tool', 'b'), sandbox: { ipc: 'host' } };
  const gateway = await t.gateway({ isolation, mcpServers: { ...mcpServers, shares } }, lack('ipc'));
  const states = async () => Object.fromEntries((await statusOf(gateway)).servers.map((one) => [one.name, one]));
  await until('one is ready, one failed', async () => {
    const { up, shares } = await states();
    return up.state === 'failed' && shares.state === 'ready';
  }, 20_000);
  assert.match((await states()).up.reason, /isolation\.mode is "require", and this machine lacks parts of its sandbox: ipc-namespace/);
});

test('a single process reports what its servers lack', async (t) => {
  const gateway = await t.gateway(profile('best-effort'), { ...lack('namespaces'), args: ['--single-process'] });
  await upIs(gateway, 'ready');
  assert.ok((await statusOf(gateway)).servers_missing.includes('namespaces'));
  assert.match(inText(gateway, 'status', '--verbose'), /not enforced for servers: .*namespaces/);
});

test('require with all features: starts, everything is in force, nothing is reported missing', async (t) => {
  if (sanitized) throw new Skip('a build with a sanitizer has no filter');
  const probe = await t.gateway(profile('best-effort'));
  await upIs(probe, 'ready');
  const missing = (await statusOf(probe)).compartments.flatMap((one) => [...one.missing, ...one.servers_missing]);
  await probe.stop();
  if (missing.length > 0) throw new Skip(`this machine lacks ${[...new Set(missing)].join(', ')}`);
  const gateway = await t.gateway(profile('require'));
  const client = await t.http(gateway);
  assert.equal((await client.tool('up__a')).content[0].text, 'fake/a');
  const { compartments } = await statusOf(gateway);
  for (const one of compartments) assert.ok(one.in_force.includes('seccomp') && one.in_force.includes('no-new-privs'), show(one));
  assert.ok(!inText(gateway, 'status', '--verbose').includes('not enforced'));
});

await run({ parallel: 2 });

// Causes random faults under load. Arguments: number of faults (default 200) and seed (default
// random, printed).
//
// Two gateways run: one serves HTTP and has a plugin in every compartment. The other serves a stdio
// client, whose session must survive all faults. Both have a policy and a session database in
// separate processes.
//
// Each call must get exactly one result or error before its deadline and must not be executed
// twice. After each series of faults, everything must recover within 2 s without orphaned
// processes, zombies or additional descriptors.
import { execFileSync } from 'node:child_process';
import { mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { HttpClient, StdioClient } from '../e2e/clients.mjs';
import { Gateway, assert, alive, build, fake, run, sleep, test, until } from '../e2e/lib.mjs';
import { statusOf } from '../e2e/status.mjs';
import { Load, callsIn, everyCompartment } from './load.mjs';
import { randomFrom } from './random.mjs';
import { Tree, descriptors } from './tree.mjs';

const [count = 200, seed = Date.now() % 1_000_000] = process.argv.splice(2).map(Number);
const root = process.getuid() === 0;
const CALL_TIMEOUT = 4000;
const LONGEST_STOP = 5000;
const WHOLE_WITHIN = 2000;
const DISK_MIB = 48;
const SERIES = 20; // faults between two recovery checks

// Creates a small file system for the state directory. Returns undefined if this user is not
// permitted to create it.
function smallDisk(t) {
  const state = t.path('state');
  mkdirSync(state, { mode: 0o700 });
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', `mount -t tmpfs -o size=64k tmpfs '${state}'`], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  const mount = `mount -t tmpfs -o size=${DISK_MIB}m,mode=0700 tmpfs '${state}' && exec "$@"`;
  return { state, wrap: ['unshare', '-m', 'sh', '-c', mount, 'sh'] };
}

// Sets the gateway's clocks ahead of the system's clocks; see fixtures/clock_shim.c.
class Clock {
  constructor(path) {
    this.path = path;
    this.file = openSync(path, 'w+'); // written in place, because the gateway has mapped it
    this.real = this.monotonic = 0n;
    this.#write();
  }
  get wrap() {
    return ['env', `LD_PRELOAD=${build}/tests/clock_shim.so`, `CLOCK_SHIM=${this.path}`];
  }
  #write() {
    writeSync(this.file, new BigInt64Array([this.real, this.monotonic]), 0, 16, 0);
  }
  // Wall-clock time jumps in both directions, monotonic time only forward.
  jump(random) {
    const seconds = (n) => BigInt(Math.round(n)) * 1_000_000_000n;
    this.real += seconds((random() - 0.5) * 2 * 86_400);
    this.monotonic += seconds(1 + random() * 60);
    this.#write();
  }
}

class Drill {
  counts = new Map();
  constructor(random, gateway, trees, webs, disk, clock) {
    Object.assign(this, { random, gateway, trees, webs, disk, clock });
    this.kinds = [
      [10, this.#kill],
      [4, this.#stop],
      [2, this.#gone],
      [1, this.#failing],
      [1, this.#jump],
      ...(root ? [[2, this.#cut]] : []),
      ...(disk ? [[1, this.#full]] : []),
    ];
  }
  pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }
  // Causes a fault, and repairs it if it is not repaired automatically.
  async fault() {
    let at = this.random() * this.kinds.reduce((sum, [weight]) => sum + weight, 0);
    const [, what] = this.kinds.find(([weight]) => (at -= weight) < 0);
    const name = await what.call(this);
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
  // Selects a random role first, because most of the processes are servers.
  #process() {
    const all = this.trees.flatMap((tree) => tree.look());
    if (!all.length) return undefined;
    const role = this.pick([...new Set(all.map((one) => one.role))].sort());
    return this.pick(all.filter((one) => one.role === role));
  }
  #signal({ pid }, signal) {
    try {
      process.kill(pid, signal);
    } catch {
      // the process has exited in the meantime
    }
  }
  async #kill() {
    const victim = this.#process();
    if (!victim) return 'kill nothing';
    this.#signal(victim, 'SIGKILL');
    return `kill ${victim.role}`;
  }
  async #stop() {
    const victim = this.#process();
    if (!victim) return 'stop nothing';
    const ms = this.random() < 0.08 ? LONGEST_STOP : 50 + this.random() * 700;
    this.#signal(victim, 'SIGSTOP');
    await sleep(ms);
    this.#signal(victim, 'SIGCONT');
    return `stop ${victim.role}`;
  }
  async #gone() {
    const web = this.pick(this.webs);
    await web.stop();
    await sleep(20 + this.random() * 600);
    await web.listen(web.port);
    return 'remote server gone';
  }
  async #failing() {
    const web = this.pick(this.webs);
    web.mode = this.pick(['503', 'reset', 'hang', 'html', '404']);
    await sleep(20 + this.random() * 300);
    web.mode = 'ok';
    return 'remote server failing';
  }
  async #cut() {
    const victim = this.pick(this.trees).look().find(({ role }) => role.endsWith('endpoint'));
    if (!victim) return 'cut nothing';
    try {
      execFileSync(`${build}/tests/cut_link`, [String(victim.pid), String(Math.floor(this.random() * 1000))], { stdio: 'ignore' });
    } catch {
      return 'cut nothing';
    }
    return `link of ${victim.role} cut`;
  }
  async #jump() {
    this.clock.jump(this.random);
    return 'clock jump';
  }
  async #full() {
    // The path as seen from the supervisor's mount namespace.
    const filler = `/proc/${this.gateway.pid}/root${this.disk.state}/filler`;
    try {
      writeFileSync(filler, Buffer.alloc((DISK_MIB + 1) << 20));
    } catch {
      // the disk is full
    }
    await sleep(100 + this.random() * 400);
    rmSync(filler, { force: true });
    return 'disk full';
  }
}

// Waits until all processes are running, all servers are ready and each tool responds. Returns the
// time since `since`.
async function whole({ gateway, expected, tools, client: own }, since) {
  const client = own ?? new HttpClient(gateway.url);
  await until('everything has recovered', async () => {
    const { compartments, servers } = await statusOf(gateway);
    const lacking = [...compartments.filter((one) => one.state !== 'running'), ...servers.filter((one) => one.state !== 'ready')];
    if (compartments.length !== expected.compartments || servers.length !== expected.servers) return false;
    if (lacking.length) throw new Error(lacking.map((one) => `${one.name} is ${one.state} ${one.reason ?? ''}`).join(', '));
    if (!client.server) await client.initialize();
    await Promise.all(tools.map((tool) => client.tool(tool.name, tool.arguments('again'))));
    return true;
  }, 20_000);
  const took = performance.now() - since;
  if (!own) await client.close();
  return took;
}

// A policy and a session database, each in a separate process.
const judges = {
  policies: { words: { plugin: join(build, 'tests/judges/policy-words.so'), words: 'a-word-that-no-call-has' } },
  telemetry: { book: { plugin: 'telemetry-sqlite' } },
};
const limits = { retry_min_ms: 20, retry_max_ms: 200, call_timeout_ms: CALL_TIMEOUT, connect_timeout_ms: 3000, policy_timeout_ms: 1000 };

// Starts a gateway under test. Returns {gateway, tools, tree, client}; `client` is set for stdio.
async function served(t, name, world, disk, clock) {
  const gateway = await t.gateway({
    limits,
    ...(disk && { state_dir: disk.state }),
    mcpServers: world.mcpServers,
    tools: world.plugins,
    ...judges,
  }, { wrap: [...(disk?.wrap ?? []), ...clock.wrap] });
  return { gateway, tools: world.tools, tree: new Tree(gateway.pid, name) };
}
async function onStdio(t, name) {
  const log = t.path('stdio-log');
  const gateway = new Gateway(t.dir, { limits, mcpServers: { up: fake('--tool', 'slow', '--tool', 'quick', '--delay', 'slow=30', '--name', `${name}-stdio`, '--log', log) }, ...judges });
  gateway.startedAt = Date.now();
  const client = new StdioClient(...gateway.stdioCommand());
  t.gateways.push({ stderr: () => client.stderr });
  gateway.child = client.child; // used by statusOf()
  t.defer(() => client.close());
  await client.initialize();
  const tools = ['slow', 'quick'].map((tool) => ({ name: `up__${tool}`, arguments: (call) => ({ call }), counted: true }));
  return { gateway, tools, client, tree: new Tree(gateway.pid, `${name}-stdio`, 'stdio '), records: () => callsIn(log) };
}

async function lookFirst(one) {
  await until('the status is available', () => statusOf(one.gateway).then(() => true, () => false));
  const { compartments, servers } = await statusOf(one.gateway);
  one.expected = { compartments: compartments.length, servers: servers.length };
  const names = compartments.map(({ name }) => name);
  for (const name of ['endpoint', 'policy.words', 'telemetry.book']) assert.ok(names.includes(name), `${name} of ${names}`);
  return whole(one, performance.now() - (Date.now() - one.gateway.startedAt));
}

test(`${count} faults`, async (t) => {
  console.log(`    seed ${seed}`);
  const random = randomFrom(seed);
  const name = `drill-${process.pid}-${seed}`;
  const world = await everyCompartment(t, name);
  const disk = smallDisk(t);
  if (!disk) console.log('    SKIP full disk: mounting a small tmpfs needs root');
  if (!root) console.log('    SKIP cut links: needs root');
  const clock = new Clock(t.path('clock'));
  const http = await served(t, name, world, disk, clock);
  const stdio = await onStdio(t, name);
  const both = [http, stdio];
  const { gateway } = http;
  // On a busy machine, recovery may take as long as the start.
  const start = Math.max(...(await Promise.all(both.map(lookFirst))));
  const within = Math.max(WHOLE_WITHIN, start);
  console.log(`    whole ${start.toFixed(0)} ms after the start`);
  const count_all = ({ gateway: { pid }, tree }) => ({ processes: tree.look().length, descriptors: root ? descriptors(pid) : 0 });
  const before = both.map(count_all);
  const deadline = CALL_TIMEOUT + LONGEST_STOP + 3000;
  const load = new Load(gateway.url, world.tools, deadline, random);
  const stdioLoad = new Load(undefined, stdio.tools, deadline, random, { client: stdio.client, first: 1_000_000 });
  const drill = new Drill(random, gateway, both.map(({ tree }) => tree), world.webs, disk, clock);
  const times = [];
  let trouble;
  for (let done = 0; done < count && !trouble; done += SERIES) {
    load.start(8);
    stdioLoad.start(3);
    for (let i = done; i < Math.min(count, done + SERIES); ++i) {
      await sleep(50 + random() * 500);
      await drill.fault();
    }
    const last = performance.now();
    try {
      times.push(...(await Promise.all(both.map((one) => whole(one, last)))));
    } catch (error) {
      trouble = error;
    }
    await Promise.all([load.stop(), stdioLoad.stop()]);
    if (trouble) break;
    await until('no zombie, no orphan, as many processes as before', () => {
      for (const { tree } of both) {
        assert.deepEqual(tree.zombies(), [], 'zombies');
        assert.deepEqual(tree.orphans(), [], 'orphans');
      }
      assert.deepEqual(both.map(count_all), before, 'processes, and descriptors of the supervisors');
      return true;
    }).catch((error) => (trouble = error));
  }
  console.log(`    ${[...drill.counts].sort().map(([what, n]) => `${n} x ${what}`).join(', ')}`);
  console.log(`    ${load.report()}`);
  console.log(`    stdio: ${stdioLoad.report()}`);
  console.log(`    recovered after ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`);
  if (trouble) throw trouble;
  assert.deepEqual([...load.wrong, ...stdioLoad.wrong], []);
  assert.deepEqual([...load.misdeeds(world.records()), ...stdioLoad.misdeeds(stdio.records())], []);
  assert.equal(load.lost, 0, 'HTTP sessions resume without a new handshake');
  assert.ok(load.results > count && stdioLoad.results > count / 2, 'there was load');
  assert.equal(stdio.client.exit, undefined, 'the gateway of the client on stdio keeps running');
  assert.ok(Math.max(...times) <= within, `whole within ${within.toFixed(0)} ms`);
  const seen = both.flatMap(({ tree }) => tree.look().map(({ pid }) => pid));
  await Promise.all([gateway.stop(), stdio.client.close()]);
  assert.deepEqual([...seen.filter(alive), ...both.flatMap(({ tree }) => tree.orphans())], [], 'left behind at the end');
}, { timeout: Math.max(60_000, count * 3000) });

await run({ parallel: 1 });

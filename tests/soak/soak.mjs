// Runs the gateway under load for ten minutes (SOAK_SECONDS): calls, sessions that are opened and
// closed, servers that are killed, disconnected or lose their sessions, and lists that change. The
// resources of each idle process are measured after the first minute and at the end. The test fails
// if they have grown by more than MARGINS.
import { loadavg } from 'node:os';
import { assert, run, sleep, test, until } from '../e2e/lib.mjs';
import { statusOf } from '../e2e/status.mjs';
import { Load, everyCompartment } from '../drills/load.mjs';
import { randomFrom } from '../drills/random.mjs';
import { Tree, descriptorKinds, descriptors, ownMemory, threads } from '../drills/tree.mjs';

const seconds = Number(process.env.SOAK_SECONDS || 600);
const first = Math.min(60, seconds / 3);
const seed = Number(process.env.SOAK_SEED || Date.now() % 1_000_000);
// Margins per process and in total. The number of processes must not grow. Threads have a margin
// because a pool starts them on demand, descriptors because connections that were just reopened may
// still be idle, and resident memory because allocators keep part of the peak.
const MARGINS = { descriptors: 2, threads: 1, rss: 1.5 * 2 ** 20, rss_total: 4 * 2 ** 20 };
const CALLERS = 8;
const root = process.getuid() === 0;

// Returns a row per process. Processes of the same role are numbered.
function measure(tree) {
  const rows = new Map();
  for (const { pid, role } of [{ pid: tree.pid, role: 'supervisor' }, ...tree.look()]) {
    const known = role.includes('/') ? role.slice(role.lastIndexOf('/') + 1) : role;
    let name = known;
    for (let n = 2; rows.has(name); ++n) name = `${known} ${n}`;
    rows.set(name, { pid, descriptors: root ? descriptors(pid) : 0, kinds: root ? descriptorKinds(pid) : [], threads: threads(pid), rss: ownMemory(pid) });
  }
  const total = { pid: 0, descriptors: 0, threads: 0, rss: 0 };
  for (const row of rows.values()) for (const key of ['descriptors', 'threads', 'rss']) total[key] += row[key];
  return { rows, total, processes: rows.size };
}

const mib = (bytes) => (bytes / 2 ** 20).toFixed(2);
const change = (was, is, text = String) => `${text(was)} → ${text(is)} (${is < was ? '−' : '+'}${text(Math.abs(is - was))})`;
function table(early, late) {
  const line = (name, was, is) =>
    `| ${name} | ${change(was.descriptors, is.descriptors)} | ${change(was.threads, is.threads)} | ${change(was.rss, is.rss, mib)} |`;
  const lines = ['| process | descriptors | threads | private MiB |', '|---|---|---|---|'];
  for (const [name, was] of early.rows) {
    const is = late.rows.get(name);
    lines.push(is ? line(name + (is.pid === was.pid ? '' : ' (another)'), was, is) : `| ${name} | gone | | |`);
  }
  lines.push(line(`all ${change(early.processes, late.processes)} processes`, early.total, late.total));
  return lines.join('\n');
}

class Unrest {
  counts = new Map();
  constructor(random, tree, webs) {
    Object.assign(this, { random, tree, webs });
    this.acts = [
      [6, 'server killed', () => this.#kill('server')],
      [1, 'compartment "web" killed', () => this.#kill('web')],
      [4, 'remote server gone and back', async (web) => {
        await web.stop();
        await sleep(50);
        await web.listen(web.port);
      }],
      [4, 'remote server forgets its sessions', (web) => web.forgetSessions()],
      [10, 'list changed', (web) => {
        if (web.tools.at(-1) === 'extra') web.tools.pop();
        else web.tools.push('extra');
        web.announce('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}');
      }],
    ];
  }
  #kill(wanted) {
    const found = this.tree.look().filter(({ role }) => role === wanted);
    if (!found.length) return;
    try {
      process.kill(found[Math.floor(this.random() * found.length)].pid, 'SIGKILL');
    } catch {
      // the process has ended in the meantime
    }
  }
  async act() {
    let at = this.random() * this.acts.reduce((sum, [weight]) => sum + weight, 0);
    const [, name, what] = this.acts.find(([weight]) => (at -= weight) < 0);
    await what(this.webs[Math.floor(this.random() * this.webs.length)]);
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }
}

test(`soak of ${seconds} s`, async (t) => {
  console.log(`seed ${seed}, load of the machine ${loadavg()[0].toFixed(1)}`);
  const random = randomFrom(seed);
  const name = `soak-${process.pid}-${seed}`;
  const world = await everyCompartment(t, name, { keep: false });
  const limits = { retry_min_ms: 20, retry_max_ms: 200, grace_ms: 500, call_timeout_ms: 20_000 };
  const gateway = await t.gateway({ limits, mcpServers: world.mcpServers, tools: world.plugins });
  const tree = new Tree(gateway.pid, name);
  const load = new Load(gateway.url, world.tools, 30_000, random, { session_calls: 40, pause: 5, streams: true });
  const unrest = new Unrest(random, tree, world.webs);
  const busy = async (ms) => {
    const end = performance.now() + ms;
    load.start(CALLERS);
    while (performance.now() < end) {
      await sleep(50 + random() * 400);
      await unrest.act();
      world.forget();
      load.done.clear();
    }
    await load.stop();
    await world.disconnect(); // concurrent connections would otherwise count as growth
    await until('everything is ready', async () => {
      const { servers, compartments, sessions } = await statusOf(gateway);
      const lacking = [...servers.filter((one) => one.state !== 'ready'), ...compartments.filter((one) => one.state !== 'running')];
      if (lacking.length || sessions) throw new Error(`${sessions} sessions, ${lacking.map((one) => `${one.name} is ${one.state} ${one.reason ?? ''}`)}`);
      return true;
    }, 20_000);
    await sleep(2000); // closed sessions release their connections and timers
    return measure(tree);
  };
  const early = await busy(first * 1000);
  const late = await busy((seconds - first) * 1000);
  console.log(`${load.report()}\n${load.notes} notifications; ${[...unrest.counts].map(([what, n]) => `${n} x ${what}`).join(', ')}`);
  console.log(`\nAfter ${first} s and after ${seconds} s:\n\n${table(early, late)}\n`);
  assert.deepEqual(load.wrong, []);
  assert.ok(load.notes > 0, 'clients are notified of list changes');
  assert.deepEqual([...tree.zombies(), ...tree.orphans()], [], 'zombies and orphans');
  assert.equal(late.processes, early.processes, 'processes');
  for (const [role, was] of early.rows) {
    const is = late.rows.get(role);
    assert.ok(is, `${role} is there`);
    const more = `descriptors of ${role}, before:\n  ${was.kinds.join('\n  ')}\nafter:\n  ${is.kinds.join('\n  ')}`;
    assert.ok(is.descriptors - was.descriptors <= MARGINS.descriptors, more);
    assert.ok(is.threads - was.threads <= MARGINS.threads, `threads of ${role}`);
    assert.ok(is.rss - was.rss <= MARGINS.rss, `memory of ${role}`);
  }
  assert.ok(late.total.rss - early.total.rss <= MARGINS.rss_total, 'memory of all');
}, { timeout: (seconds + 120) * 1000 });

await run({ parallel: 1 });

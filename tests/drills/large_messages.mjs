// Large messages must not delay other clients or use much memory when rules read them. Three
// clients send large calls one after another, beside a client that sends 100 pings per second.
// Rounds without rules alternate with rounds with rules. Arguments: [rounds] [seconds] [tests].
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { assert, descendants, fake, node, program, run, test } from '../e2e/lib.mjs';
import { statusOf } from '../e2e/status.mjs';
import { measureDelays, median, statusMiB, valuesIn } from './large_load.mjs';

const [rounds, seconds] = [Number(process.argv[2] ?? 3), Number(process.argv[3] ?? 10)];
process.argv.splice(2, 2); // run() would take the numbers as names of tests

const MOST_DELAY_MS = 150; // of the slowest ping, beyond that of a round without rules
const [ARGUMENTS_MB, RESULT_MB] = [62, 24];
const large = fileURLToPath(new URL('large_server.mjs', import.meta.url));

// docs/limits.md limits the messages in four places (incomplete requests, policy_waiting_bytes,
// queued large messages, write_queue_bytes). The senders have three messages at a time, which may
// be in all four. One message at a time is evaluated, with up to 80 bytes for each value. The rest
// is for the programs themselves, and for memory that their allocator has not returned.
const REST_MIB = 256;
const mostMiB = (megabytes) => (4 * 3 * megabytes * 1e6 + valuesIn(megabytes * 1e6) * 80) / 2 ** 20 + REST_MIB;

const rules = {
  arguments: { on: 'mcp.request', if: 'mcp.request.arguments_text.contains("no such text")', decision: 'block' },
  results: { on: 'mcp.response', if: 'mcp.response.text.contains("no such text")', decision: 'block' },
};
const profile = (withRules, more) => ({
  // All three messages may wait for one server.
  limits: { message_bytes: 64 << 20, policy_timeout_ms: 60_000, write_queue_bytes: 256 << 20 },
  mcpServers: {
    s: { ...fake('--tool', 'big', '--result', 'big={"content":[]}'), sandbox: 'off' },
    r: { command: node, args: ['--no-warnings', large, String(RESULT_MB)], sandbox: 'off' },
  },
  security: { rules: { mcp: withRules ? rules : {} } },
  ...more,
});

// Returns the processes of the gateway, without its servers.
const ownProcesses = (gateway) => [gateway.pid, ...descendants(gateway.pid)].filter((pid) => {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return words[0] === program || words[1] === 'compartment';
  } catch {
    return false;
  }
});

async function measure(t, call, withRules) {
  const gateway = await t.gateway(profile(withRules, call.profile));
  const client = await t.http(gateway);
  const names = await client.toolNames();
  assert.ok(names.includes(call.tool), String(names));
  const seen = await measureDelays(gateway.url, call, { seconds });
  const pids = ownProcesses(gateway);
  assert.ok(pids.length > 2, `${pids.length} processes`);
  seen.MiB = pids.reduce((sum, pid) => sum + statusMiB(pid, 'VmHWM'), 0);
  seen.restarts = (await statusOf(gateway)).compartments.reduce((sum, one) => sum + one.restarts, 0);
  await client.close();
  await gateway.stop();
  return seen;
}
const cell = (value) => (typeof value === 'number' ? value.toFixed(0) : value);

const cases = {
  'arguments of 62 MB': { tool: 's__big', kind: 'values', megabytes: ARGUMENTS_MB },
  'arguments of 62 MB, evaluated in a compartment of the policy': {
    tool: 's__big', kind: 'values', megabytes: ARGUMENTS_MB, profile: { policies: { default: { plugin: 'policy-rules', compartment: 'own' } } },
  },
  'results of 24 MB': { tool: 'r__values', kind: 'none', megabytes: RESULT_MB },
  'results of 24 MB with many members and an escaped name': { tool: 'r__escaped', kind: 'none', megabytes: RESULT_MB },
  'results of 24 MB with many members': { tool: 'r__members', kind: 'none', megabytes: RESULT_MB },
};
for (const [what, call] of Object.entries(cases)) {
  test(`rules do not make ${what} delay other clients`, async (t) => {
    const all = { without: [], with: [] };
    for (let round = 0; round < rounds; ++round) {
      // Each pair is in another order than the one before it.
      for (const name of round % 2 ? ['with', 'without'] : ['without', 'with']) {
        const load = loadavg()[0];
        const one = await measure(t, call, name === 'with');
        all[name].push(one);
        console.log(`  ${what}, ${name} rules (load ${load.toFixed(1)}): pings ${one.pings}, median ${cell(one.median)} ms, p99 ${cell(one.p99)}, `
          + `most ${cell(one.max)}; ${one.calls} large calls; ${cell(one.MiB)} MiB`);
        assert.deepEqual({ lost: one.lost, refused: one.refused, restarts: one.restarts }, { lost: 0, refused: [], restarts: 0 });
        assert.ok(one.calls > 0, 'no large call was completed');
      }
    }
    const most = Object.fromEntries(Object.entries(all).map(([name, list]) => [name, median(list.map(({ max }) => max))]));
    const memory = Math.max(...Object.values(all).flat().map(({ MiB }) => MiB));
    console.log(`  ${what}: slowest ping ${cell(most.without)} ms without rules, ${cell(most.with)} with rules (difference ${cell(most.with - most.without)}, `
      + `bound ${MOST_DELAY_MS}); most memory ${cell(memory)} MiB (bound ${cell(mostMiB(call.megabytes))})`);
    assert.ok(most.with - most.without <= MOST_DELAY_MS, `${cell(most.with - most.without)} ms above the rounds without rules`);
    assert.ok(memory <= mostMiB(call.megabytes), `${cell(memory)} MiB`);
  }, { timeout: (rounds * 2 * (seconds + 60)) * 1000 });
}

await run({ parallel: 1 });

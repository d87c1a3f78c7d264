// Runs the official conformance suite against the fixture servers: directly over HTTP, and through
// the gateway with one of them as the only upstream (once over HTTP, once over stdio). Each check
// that passes directly must also pass through the gateway; differences.yaml has the exceptions, and
// not_yet.yaml what the gateway does not pass yet.
//
//   run.mjs [--leg NAME]... [--accept] [--verbose]      (default: the legs that `make test` runs)
//
// --accept writes the differences of these legs that differences.yaml does not have to not_yet.yaml.
//
// A leg is CLIENTxSERVER: the generation of the revisions that the suite's client and the server
// behind the gateway speak. 2025: the session revisions; 2026: 2026-07-28.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Gateway, importFromNpm, node, npmBin, npmDir, root } from '../e2e/gateway.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const verbose = process.argv.includes('--verbose');
const accept = process.argv.includes('--accept');
const notYetFile = join(here, 'not_yet.yaml');
const fixtures = { 2025: join(here, 'server.mjs'), 2026: join(here, 'server26.mjs') };
// passes: of the fixture directly; if there are fewer, the fixture or the suite is broken.
const alpha = (revision, passes) => ({
  name: `0.2.0-alpha.12 at ${revision}`,
  args: [npmBin('conformance-alpha/dist/index.js'), 'server', '--suite', 'all', '--spec-version', revision],
  passes,
});
const stable = {
  name: '0.1.16',
  args: [npmBin('@modelcontextprotocol/conformance/dist/index.js'), 'server', '--suite', 'all'],
  passes: 44,
};
const suites = {
  2025: [stable, alpha('2025-11-25', 84), alpha('2025-06-18', 56)],
  2026: [alpha('2026-07-28', 152)],
};
// Without a server: directly only. `make test` also runs each leg that is in not_yet.yaml.
const legs = {
  '2025x2025': { client: 2025, server: 2025, make_test: true },
  '2026': { client: 2026, make_test: true },
  '2026x2025': { client: 2026, server: 2025 },
  '2025x2026': { client: 2025, server: 2026 },
  '2026x2026': { client: 2026, server: 2026 },
};
const scratch = mkdtempSync(join(tmpdir(), 'bulkhead-conformance-'));

function startFixture(generation) {
  const child = spawn(node, [fixtures[generation], 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`the fixture server ended (${code})`)));
    child.stdout.on('data', (data) => resolve({ child, url: String(data).trim() }));
  });
}

// scenario -> check id -> worst status of that check ("SUCCESS", "WARNING", "FAILURE" ...)
function readChecks(folder) {
  const rank = ['INFO', 'SUCCESS', 'SKIPPED', 'WARNING', 'FAILURE'];
  const scenarios = new Map();
  for (const entry of readdirSync(folder)) {
    const name = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(entry)?.[1];
    if (!name) continue;
    const checks = new Map();
    for (const check of JSON.parse(readFileSync(join(folder, entry, 'checks.json'), 'utf8'))) {
      const before = checks.get(check.id);
      if (before && rank.indexOf(before.status) >= rank.indexOf(check.status)) continue;
      checks.set(check.id, { status: check.status, why: check.errorMessage });
    }
    scenarios.set(name, checks);
  }
  return scenarios;
}

async function runSuite(suite, url, label) {
  const folder = mkdtempSync(join(scratch, 'results-'));
  const started = Date.now();
  const child = spawn(node, [...suite.args, '--url', url.replace('127.0.0.1', 'localhost'), '-o', folder]);
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  await new Promise((resolve) => child.on('exit', resolve));
  const total = /Total: (\d+) passed, (\d+) failed/.exec(output);
  if (!total) throw new Error(`the suite did not finish:\n${output.slice(-3000)}`);
  if (verbose) console.log(output.slice(output.indexOf('=== SUMMARY')));
  console.log(`${label}, suite ${suite.name}: ${total[1]} passed, ${total[2]} failed (${Date.now() - started} ms)`);
  return { passed: Number(total[1]), failed: Number(total[2]), checks: readChecks(folder) };
}

// Returns checks that are worse in `through` than in `direct`, as "scenario:check-id".
function compare(direct, through) {
  const worse = [];
  for (const [scenario, checks] of direct) {
    for (const [id, { status }] of checks) {
      const got = through.get(scenario)?.get(id);
      if (status === 'SUCCESS' && got?.status !== 'SUCCESS') {
        worse.push({ id: `${scenario}:${id}`, why: got ? `${got.status} ${got.why ?? ''}` : 'not reached' });
      }
    }
  }
  for (const [scenario, checks] of through) {
    for (const [id, { status, why }] of checks) {
      const was = direct.get(scenario)?.get(id)?.status;
      if (status === 'FAILURE' && was !== 'FAILURE' && was !== 'SUCCESS') worse.push({ id: `${scenario}:${id}`, why });
    }
  }
  return worse;
}

// The suites' results for the fixture servers themselves, each run once: the yardstick of the legs.
class Direct {
  #servers = new Map();
  #results = new Map();
  bad = false;
  async url(generation) {
    if (!this.#servers.has(generation)) this.#servers.set(generation, await startFixture(generation));
    return this.#servers.get(generation).url;
  }
  async result(generation, suite) {
    if (!this.#results.has(suite)) {
      const result = await runSuite(suite, await this.url(generation), `directly (${generation})`);
      if (result.passed < suite.passes || result.failed) {
        console.log(`  the fixture server itself fails: ${suite.passes} should pass`);
        this.bad = true;
      }
      this.#results.set(suite, result);
    }
    return this.#results.get(suite);
  }
  stop() {
    for (const { child } of this.#servers.values()) {
      child.removeAllListeners('exit');
      child.kill();
    }
  }
}

// Runs one suite through the gateways of a leg; returns false if there is an unknown difference.
async function runThrough(suite, direct, gateways, known, seen) {
  let good = true;
  for (const [label, gateway] of gateways) {
    const through = await runSuite(suite, gateway.url, label);
    for (const { id, why } of compare(direct.checks, through.checks)) {
      seen.add(id);
      console.log(`  ${known.get(id) ?? 'DIFFERENCE'}: ${id}: ${why}`);
      if (!known.has(id)) good = false;
    }
  }
  return good;
}

// known: check -> what is said about it. Returns {good, seen}.
async function runLeg(name, { client, server }, direct, known) {
  const gateways = [];
  const seen = new Set();
  let good = true;
  try {
    const upstreams = server === undefined ? {} : {
      HTTP: { type: 'http', url: await direct.url(server) },
      stdio: {
        command: node,
        // A clone below /tmp is not visible in a sandbox, whose /tmp is private. These paths make
        // the script's imports visible.
        sandbox_paths: { read: [root, npmDir] },
        args: [fixtures[server], 'stdio'],
        env: { BULKHEAD_NPM_DIR: process.env.BULKHEAD_NPM_DIR ?? '' },
      },
    };
    for (const [transport, definition] of Object.entries(upstreams)) {
      // At 2026-07-28, the suite asks for the client's roots, too.
      const up = client === 2026 ? { ...definition, roots: 'per-client' } : definition;
      const gateway = new Gateway(scratch, { mcpServers: { up }, naming: { prefix: 'never' } });
      gateways.push([`leg ${name}, ${transport} upstream`, gateway]);
      await gateway.serve();
    }
    for (const suite of suites[client]) {
      if (!(await runThrough(suite, await direct.result(client, suite), gateways, known, seen))) good = false;
    }
    for (const [id, text] of known) {
      if (seen.has(id)) continue;
      console.log(`STALE entry (${text}): ${name}: ${id}`);
      good = false;
    }
  } finally {
    for (const [label, gateway] of gateways) {
      await gateway.stop().catch((error) => {
        console.log(`${label}: ${error.message}\n${gateway.stderr().slice(-3000)}`);
        good = false;
      });
    }
  }
  return { good, seen };
}

function chosenLegs(notYet) {
  const named = process.argv.flatMap((word, i) => (word === '--leg' ? [process.argv[i + 1]] : []));
  const wrong = named.filter((name) => !legs[name]);
  if (wrong.length) {
    console.log(`no such leg: ${wrong.join(' ')}; legs: ${Object.keys(legs).join(' ')}`);
    process.exit(2);
  }
  return named.length ? named : Object.keys(legs).filter((name) => legs[name].make_test || notYet[name]);
}

function writeNotYet(notYet) {
  const lines = Object.entries(notYet).filter(([, ids]) => ids.length)
    .flatMap(([name, ids]) => [`${name}:`, ...ids.map((id) => `  - ${id}`)]);
  const head = readFileSync(notYetFile, 'utf8').split('\n').filter((line) => line.startsWith('#'));
  writeFileSync(notYetFile, [...head, ...lines, ''].join('\n'));
}

async function main() {
  const { parse } = await importFromNpm('yaml');
  const differences = parse(readFileSync(join(here, 'differences.yaml'), 'utf8'));
  const notYet = parse(readFileSync(notYetFile, 'utf8')) ?? {};
  const direct = new Direct();
  let good = true;
  try {
    for (const name of [...Object.keys(differences), ...Object.keys(notYet)].filter((entry) => !legs[entry])) {
      console.log(`differences.yaml or not_yet.yaml has an unknown leg: ${name}`);
      good = false;
    }
    for (const name of chosenLegs(notYet)) {
      const known = new Map((differences[name] ?? []).map((id) => [id, 'known difference']));
      if (!accept) for (const id of notYet[name] ?? []) known.set(id, 'not yet');
      const { good: fine, seen } = await runLeg(name, legs[name], direct, known);
      if (accept) notYet[name] = [...seen].filter((id) => !known.has(id)).sort();
      else if (!fine) good = false;
    }
    if (accept) writeNotYet(notYet);
    good &&= !direct.bad;
  } finally {
    direct.stop();
    rmSync(scratch, { recursive: true, force: true });
  }
  console.log(good ? 'conformance: ok, no unexplained difference' : 'conformance: FAILED');
  process.exit(good ? 0 : 1);
}

await main();

// Runs the official conformance suite against the fixture servers, first directly over HTTP and
// then through the gateway, with a fixture server as its only upstream (over HTTP and over stdio).
// Each check that passes directly must also pass through the gateway. differences.yaml lists the
// permitted differences, and not_yet.yaml the known failures.
//
//   run.mjs [--leg NAME]... [--accept] [--verbose]      (default: the legs of `make test`)
//
// With --accept, differences that are not in differences.yaml are written to not_yet.yaml.
//
// A leg is named CLIENTxSERVER after the protocol generations of the suite's client and of the
// server behind the gateway: 2025 for the revisions with sessions, 2026 for 2026-07-28. In a leg
// named upstream-CLIENTxSERVER, the suite is the server behind the gateway and checks what the
// gateway sends.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Gateway, importFromNpm, node, npmBin, npmDir, root } from '../e2e/gateway.mjs';
import { compare, readChecks, runProgram } from './suite.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const verbose = process.argv.includes('--verbose');
const accept = process.argv.includes('--accept');
const notYetFile = join(here, 'not_yet.yaml');
const fixtures = { 2025: join(here, 'server.mjs'), 2026: join(here, 'server26.mjs') };
// `passes` is the number of checks that must pass directly. If fewer pass, the fixture or the suite
// is broken.
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
// A leg without `server` only runs directly. `make test` also runs the legs in not_yet.yaml.
const legs = {
  '2025x2025': { client: 2025, server: 2025, make_test: true },
  '2026': { client: 2026, make_test: true },
  '2026x2025': { client: 2026, server: 2025, make_test: true },
  '2025x2026': { client: 2025, server: 2026, make_test: true },
  '2026x2026': { client: 2026, server: 2026, make_test: true },
  'upstream-2025x2025': { client: 2025, suite: 2025, make_test: true },
  'upstream-2026x2025': { client: 2026, suite: 2025, make_test: true },
  'upstream-2025x2026': { client: 2025, suite: 2026, make_test: true },
  'upstream-2026x2026': { client: 2026, suite: 2026, make_test: true },
};
// Client scenarios without OAuth, and the number of checks that the official SDK passes.
const clientSuites = {
  2025: {
    revision: '2025-11-25',
    scenarios: ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults', 'sse-retry', 'json-schema-2020-12-preservation'],
    passes: 20,
  },
  2026: {
    revision: '2026-07-28',
    scenarios: [
      'tools_call', 'request-metadata', 'sep-2322-client-request-state', 'http-standard-headers', 'http-custom-headers',
      'http-invalid-tool-headers', 'json-schema-ref-no-deref', 'json-schema-2020-12-preservation',
    ],
    passes: 64,
  },
};
const scratch = mkdtempSync(join(tmpdir(), 'bulkhead-conformance-'));

function startFixture(generation) {
  const child = spawn(node, [fixtures[generation], 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`the fixture server ended (${code})`)));
    child.stdout.on('data', (data) => resolve({ child, url: String(data).trim() }));
  });
}

async function runSuite(suite, url, label) {
  const started = Date.now();
  const { output, folder } = await runProgram([...suite.args, '--url', url.replace('127.0.0.1', 'localhost')], scratch);
  const total = /Total: (\d+) passed, (\d+) failed/.exec(output);
  if (!total) throw new Error(`the suite did not finish:\n${output.slice(-3000)}`);
  if (verbose) console.log(output.slice(output.indexOf('=== SUMMARY')));
  console.log(`${label}, suite ${suite.name}: ${total[1]} passed, ${total[2]} failed (${Date.now() - started} ms)`);
  return { passed: Number(total[1]), failed: Number(total[2]), checks: readChecks(folder) };
}

// A server on stdio gets another process for each set of capabilities that clients declare. The suite
// waits only 600 ms for the first call that declares elicitation, which a busy machine can exceed.
async function startProcess(url) {
  const PREFIX = 'io.modelcontextprotocol/';
  const _meta = { [`${PREFIX}protocolVersion`]: '2026-07-28', [`${PREFIX}clientCapabilities`]: { elicitation: {} } };
  await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } }),
  }).then((response) => response.text());
}

// Runs the client scenarios one after another, because some measure times. client.mjs describes
// `how`.
async function runClientSuite({ revision, scenarios }, how, label) {
  const command = [node, '--no-warnings', join(here, 'client.mjs'), how].join(' ');
  const started = Date.now();
  const result = { passed: 0, failed: 0, checks: new Map() };
  for (const scenario of scenarios) {
    const program = [npmBin('conformance-alpha/dist/index.js'), 'client', '--scenario', scenario, '--spec-version', revision];
    const { output, folder } = await runProgram([...program, '--command', command], scratch);
    const total = /Passed: (\d+)\/\d+, (\d+) failed/.exec(output);
    if (!total) throw new Error(`the scenario ${scenario} did not finish:\n${output.slice(-3000)}`);
    if (verbose) console.log(output);
    result.passed += Number(total[1]);
    result.failed += Number(total[2]);
    for (const [name, checks] of readChecks(folder)) result.checks.set(name, checks);
  }
  console.log(`${label}, client scenarios at ${revision}: ${result.passed} passed, ${result.failed} failed (${Date.now() - started} ms)`);
  return result;
}

// Runs the suites once against each fixture server. The legs are compared with these results.
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
  async clientResult(generation) {
    const suite = clientSuites[generation];
    if (!this.#results.has(suite)) {
      const result = await runClientSuite(suite, 'direct', 'directly');
      if (result.passed < suite.passes || result.failed) {
        console.log(`  the client itself fails: ${suite.passes} should pass`);
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

// Prints the checks that are worse through the gateway. Returns false if a difference is not known.
function report(direct, through, known, seen) {
  let good = true;
  for (const { id, why } of compare(direct.checks, through.checks)) {
    seen.add(id);
    console.log(`  ${known.get(id) ?? 'DIFFERENCE'}: ${id}: ${why}`);
    if (!known.has(id)) good = false;
  }
  return good;
}

async function runUpstreamLeg(name, { client, suite }, direct, known, seen) {
  const through = await runClientSuite(clientSuites[suite], client === 2026 ? '2026-07-28' : '2025-11-25', `leg ${name}`);
  return report(await direct.clientResult(suite), through, known, seen);
}

// `known` maps checks to their explanations. Returns {good, seen}.
async function runLeg(name, leg, direct, known) {
  const seen = new Set();
  let good = await (leg.suite ? runUpstreamLeg : runServerLeg)(name, leg, direct, known, seen);
  for (const [id, text] of known) {
    if (seen.has(id)) continue;
    console.log(`STALE entry (${text}): ${name}: ${id}`);
    good = false;
  }
  return { good, seen };
}

async function runServerLeg(name, { client, server }, direct, known, seen) {
  const gateways = [];
  let good = true;
  try {
    const upstreams = server === undefined ? {} : {
      HTTP: { type: 'http', url: await direct.url(server) },
      stdio: {
        command: node,
        // A sandbox has a private /tmp. These paths make the script and its imports visible even if
        // the repository is below /tmp.
        sandbox_paths: { read: [root, npmDir] },
        args: [fixtures[server], 'stdio'],
        env: { BULKHEAD_NPM_DIR: process.env.BULKHEAD_NPM_DIR ?? '' },
      },
    };
    for (const [transport, definition] of Object.entries(upstreams)) {
      // At 2026-07-28, the suite also requests the client's roots.
      const up = client === 2026 ? { ...definition, roots: 'per-client' } : definition;
      const gateway = new Gateway(scratch, { mcpServers: { up }, naming: { prefix: 'never' } });
      gateways.push([`leg ${name}, ${transport} upstream`, gateway]);
      await gateway.serve();
    }
    for (const suite of suites[client]) {
      const yardstick = await direct.result(client, suite);
      for (const [label, gateway] of gateways) {
        if (client === 2026) await startProcess(gateway.url);
        if (!report(yardstick, await runSuite(suite, gateway.url, label), known, seen)) good = false;
      }
    }
  } finally {
    for (const [label, gateway] of gateways) {
      await gateway.stop().catch((error) => {
        console.log(`${label}: ${error.message}\n${gateway.stderr().slice(-3000)}`);
        good = false;
      });
    }
  }
  return good;
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

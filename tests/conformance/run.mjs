// Runs the official conformance suite against the fixture server: directly over HTTP, and through
// the gateway with that server as its only upstream (once over HTTP, once over stdio). Each check
// that passes directly must also pass through the gateway, except those in differences.yaml.
//
//   run.mjs [--verbose]
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Gateway, importFromNpm, node, npmBin, npmDir, root } from '../e2e/gateway.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const verbose = process.argv.includes('--verbose');
const fixture = join(here, 'server.mjs');
const suites = [
  {
    name: '0.1.16',
    args: [npmBin('@modelcontextprotocol/conformance/dist/index.js'), 'server', '--suite', 'all'],
    passes: 44, // directly; a smaller number means that the fixture or the suite is broken
  },
  {
    name: '0.2.0-alpha.12 at 2025-11-25',
    args: [npmBin('conformance-alpha/dist/index.js'), 'server', '--suite', 'all', '--spec-version', '2025-11-25'],
    passes: 84,
  },
  {
    name: '0.2.0-alpha.12 at 2025-06-18',
    args: [npmBin('conformance-alpha/dist/index.js'), 'server', '--suite', 'all', '--spec-version', '2025-06-18'],
    passes: 56,
  },
];
const scratch = mkdtempSync(join(tmpdir(), 'bulkhead-conformance-'));

function startFixture() {
  const child = spawn(node, [fixture, 'http'], { stdio: ['ignore', 'pipe', 'inherit'] });
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
  const folder = join(scratch, `${label}-${suite.name}`.replaceAll(' ', '_'));
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

// Returns the checks whose status is worse in `through` than in `direct`, as "scenario:check-id".
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

async function main() {
  const { parse } = await importFromNpm('yaml');
  const allowed = parse(readFileSync(join(here, 'differences.yaml'), 'utf8')).server ?? [];
  const { child, url } = await startFixture();
  const gateways = [];
  let bad = 0;
  try {
    const legs = {
      'through the gateway, HTTP upstream': { type: 'http', url },
      'through the gateway, stdio upstream': {
        command: node,
        // A sandbox has a private /tmp, so a clone below /tmp would not be visible. These paths
        // make the script and its imports visible.
        sandbox_paths: { read: [root, npmDir] },
        args: [fixture, 'stdio'],
        env: { BULKHEAD_NPM_DIR: process.env.BULKHEAD_NPM_DIR ?? '' },
      },
    };
    for (const [label, upstream] of Object.entries(legs)) {
      const gateway = new Gateway(scratch, { mcpServers: { up: upstream }, naming: { prefix: 'never' } });
      gateways.push([label, gateway]);
      await gateway.serve();
    }
    const seen = new Set();
    for (const suite of suites) {
      const direct = await runSuite(suite, url, 'directly');
      if (direct.passed < suite.passes || direct.failed) {
        console.log(`  the fixture server itself fails: ${suite.passes} should pass`);
        bad = 1;
      }
      for (const [label, gateway] of gateways) {
        const through = await runSuite(suite, gateway.url, label);
        for (const { id, why } of compare(direct.checks, through.checks)) {
          seen.add(id);
          const known = allowed.includes(id);
          console.log(`  ${known ? 'known difference' : 'DIFFERENCE'}: ${id}: ${why}`);
          if (!known) bad = 1;
        }
      }
    }
    for (const id of allowed.filter((entry) => !seen.has(entry))) {
      console.log(`STALE entry in differences.yaml: ${id}`);
      bad = 1;
    }
  } finally {
    for (const [label, gateway] of gateways) {
      await gateway.stop().catch((error) => {
        console.log(`${label}: ${error.message}\n${gateway.stderr().slice(-3000)}`);
        bad = 1;
      });
    }
    child.removeAllListeners('exit');
    child.kill();
    rmSync(scratch, { recursive: true, force: true });
  }
  console.log(bad ? 'conformance: FAILED' : 'conformance: ok, no unexplained difference');
  process.exit(bad);
}

await main();

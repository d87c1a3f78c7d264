// Runs the conformance suite and reads its results.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { node } from '../e2e/gateway.mjs';

// Returns a map: scenario -> check ID -> worst status of the check ("SUCCESS", "WARNING", "FAILURE"
// ...).
export function readChecks(folder) {
  const rank = ['INFO', 'SUCCESS', 'SKIPPED', 'WARNING', 'FAILURE'];
  const scenarios = new Map();
  for (const entry of readdirSync(folder)) {
    const name = /^(?:server-)?(.*)-\d{4}-\d\d-\d\dT/.exec(entry)?.[1];
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

// Runs a program of the suite. Resolves with {output, folder}: the printed text and the directory
// of its results.
export async function runProgram(args, scratch) {
  const folder = mkdtempSync(join(scratch, 'results-'));
  const child = spawn(node, [...args, '-o', folder]);
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  await new Promise((resolve) => child.on('exit', resolve));
  return { output, folder };
}

// Returns the checks whose status is worse in `through` than in `direct`, as "scenario:check-id".
export function compare(direct, through) {
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

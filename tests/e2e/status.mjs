// `bulkhead status --json` of one gateway of a test: each test has a runtime folder of its own.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { program } from './gateway.mjs';

const execute = promisify(execFile);

export async function statusOf(gateway) {
  const { stdout } = await execute(program, ['status', '--json'], { env: gateway.env(), timeout: 10_000 });
  const found = JSON.parse(stdout).gateways.find((entry) => entry.pid === gateway.pid);
  if (!found) throw new Error(`no such gateway in ${stdout}`);
  return found;
}

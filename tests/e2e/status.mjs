// Queries a running gateway. Each test has a private runtime directory.
import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { promisify } from 'node:util';
import { program } from './gateway.mjs';

const execute = promisify(execFile);

// Returns the parsed output of `bulkhead status --json` for a gateway.
export async function statusOf(gateway) {
  // The command omits a gateway that does not respond within 2 s, which happens on a loaded machine.
  for (let attempt = 1; ; ++attempt) {
    const { stdout } = await execute(program, ['status', '--json'], { env: gateway.env(), timeout: 20_000 });
    const found = JSON.parse(stdout).gateways.find((entry) => entry.pid === gateway.pid);
    if (found) return found;
    if (attempt === 3) throw new Error(`no such gateway in ${stdout}`);
  }
}

// Sends a request to the gateway's service socket, as curl --unix-socket would.
export async function ask(gateway, method, path, body) {
  const { socket } = await statusOf(gateway);
  return new Promise((done, failed) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const req = request({ socketPath: socket, method, path, headers: { 'Content-Length': Buffer.byteLength(text) } }, (res) => {
      let data = '';
      res.on('data', (chunk) => (data += chunk));
      res.on('end', () => done({ status: res.statusCode, ...JSON.parse(data) }));
    });
    req.on('error', failed);
    req.end(text);
  });
}

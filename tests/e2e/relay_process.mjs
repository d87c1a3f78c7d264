// Runs a relay as a client would: sends lines and receives lines.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { assert, build, sanitized, until } from './lib.mjs';

export const relayProgram = process.env.BULKHEAD_RELAY ?? join(build, 'bin/bulkhead-relay');

export class Relay {
  // command: is run instead of the relay.
  constructor(t, args, command) {
    const [program, ...rest] = command ?? [relayProgram, ...args];
    this.lines = [];
    this.stderr = '';
    this.child = spawn(program, rest, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stdin.on('error', () => {});
    this.reading = createInterface({ input: this.child.stdout }).on('line', (line) => this.lines.push(line));
    this.child.stderr.on('data', (data) => (this.stderr += data));
    this.exit = new Promise((resolve) => this.child.on('close', (code, signal) => resolve(code ?? signal)));
    t.gateways.push({ stderr: () => this.stderr });
    t.defer(() => {
      this.child.kill('SIGKILL');
      return this.exit;
    });
  }
  send(message) {
    this.child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`);
  }
  request(id, method, params = {}) {
    this.send({ jsonrpc: '2.0', id, method, params });
  }
  async line(ms) {
    await until('a line of the relay', () => this.lines.length > 0, ms);
    return JSON.parse(this.lines.shift());
  }
  // Returns the memory in KiB: the current value, or the maximum with VmHWM.
  resident(field = 'VmRSS') {
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${this.child.pid}/status`, 'utf8'))[1]);
  }
  // Checks the memory limit in docs/relay.md.
  memoryWithin(most) {
    const peak = this.resident('VmHWM');
    if (!sanitized) assert.ok(peak <= most, `${peak} KiB of memory`);
  }
  // Returns the number of bytes written to the client.
  written() {
    return Number(/wchar: (\d+)/.exec(readFileSync(`/proc/${this.child.pid}/io`, 'utf8'))[1]);
  }
  unread(paused) {
    if (paused) this.reading.pause();
    else this.reading.resume();
  }
  end() {
    this.child.stdin.end();
    return this.exit;
  }
}

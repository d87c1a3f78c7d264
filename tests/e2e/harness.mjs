// Runs named tests with time limits. All processes that a test has started are terminated when the
// test finishes.
//
//   test('A19 degraded start', async (t) => { ... });
//   await run();            // at the end of the file
//
// Arguments select the tests whose names contain them.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Gateway, patience } from './gateway.mjs';
import { HttpClient, StdioClient } from './clients.mjs';
import { startFakeHttp } from '../fixtures/fake_http.mjs';

const tests = [];
export function test(name, body, options = {}) {
  tests.push({ name, body, timeout: Math.max(options.timeout ?? 0, 90_000) * patience });
}

export class Skip extends Error {}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits until probe() returns a true value, and returns this value. On failure, reports the last
// error or value. The limit is long, because a loaded machine may stop a process for seconds.
export async function until(what, probe, ms = 20_000) {
  ms *= patience;
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      last = await probe();
      if (last) return last;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what} (last: ${show(last)})`);
    await sleep(10);
  }
}

export function show(value) {
  if (value instanceof Error) return value.message;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text === undefined ? 'undefined' : text.length > 1500 ? `${text.slice(0, 1500)}...` : text;
}

class Context {
  #ends = [];
  constructor(name) {
    this.name = name;
    this.dir = mkdtempSync(join(tmpdir(), 'bulkhead-e2e-'));
    this.gateways = [];
  }
  // Registers a function to call when the test finishes. The functions are called in reverse order.
  defer(end) {
    this.#ends.push(end);
  }
  // Returns a path outside the gateway's directory. That directory is its home directory, in which
  // servers cannot write.
  path(name) {
    mkdirSync(join(this.dir, 'files'), { recursive: true });
    return join(this.dir, 'files', name);
  }
  // Starts a gateway that serves HTTP. Gateway.serve describes the options.
  async gateway(profile, options = {}) {
    const gateway = new Gateway(this.dir, profile, options);
    this.gateways.push(gateway);
    this.defer(() => gateway.stop());
    await gateway.serve();
    return gateway;
  }
  // Returns a client of the gateway's HTTP endpoint after the handshake.
  async http(where, options = {}) {
    const client = new HttpClient(typeof where === 'string' ? where : where.url, options);
    this.defer(() => client.close());
    if (options.initialize !== false) await client.initialize();
    return client;
  }
  // Returns a client that starts `bulkhead stdio`.
  async stdio(profile, options = {}) {
    const gateway = new Gateway(this.dir, profile, options);
    const client = new StdioClient(...gateway.stdioCommand(), options);
    this.gateways.push({ stderr: () => client.stderr });
    this.defer(() => client.close());
    if (options.initialize !== false) await client.initialize();
    return client;
  }
  // Returns a client that starts this stdio server.
  async spawn(command, args, options = {}) {
    const client = new StdioClient(command, args, options);
    this.defer(() => client.close());
    if (options.initialize !== false) await client.initialize();
    return client;
  }
  async fakeHttp(options) {
    const fake = await startFakeHttp(options);
    this.defer(() => fake.stop());
    return fake;
  }
  skip(reason) {
    throw new Skip(reason);
  }
  async end() {
    const errors = [];
    for (const end of this.#ends.reverse()) {
      try {
        await end();
      } catch (error) {
        errors.push(error);
      }
    }
    rmSync(this.dir, { recursive: true, force: true });
    if (errors.length) throw errors[0];
  }
}

async function runOne({ name, body, timeout }) {
  const t = new Context(name);
  const started = Date.now();
  let timer;
  let failure;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished within ${timeout} ms`)), timeout);
  });
  try {
    await Promise.race([body(t), late]);
  } catch (error) {
    failure = error;
  }
  clearTimeout(timer);
  const stderr = t.gateways.map((gateway) => gateway.stderr()).join('\n--\n');
  try {
    await t.end();
  } catch (error) {
    failure ??= error;
  }
  if (failure instanceof Skip) {
    console.log(`${name}: SKIP ${failure.message}`);
    return 'skip';
  }
  if (!failure) {
    console.log(`${name}: ok (${Date.now() - started} ms)`);
    return 'ok';
  }
  console.log(`${name}: FAILED\n    ${(failure.stack ?? String(failure)).replace(/\n/g, '\n    ')}`);
  if (stderr.trim()) console.log(`    gateway said:\n    | ${stderr.slice(-4000).replace(/\n/g, '\n    | ')}`);
  return 'failed';
}

// Runs the tests of this file in parallel. Exits with 0, 1 or 77 (all skipped).
export async function run({ parallel = 3 } = {}) {
  const only = process.argv.slice(2);
  const chosen = tests.filter((entry) => !only.length || only.some((text) => entry.name.includes(text)));
  if (!chosen.length) {
    console.log('no such test');
    process.exit(1);
  }
  const counts = { ok: 0, failed: 0, skip: 0 };
  const queue = [...chosen];
  const workers = Array.from({ length: Math.min(parallel, queue.length) }, async () => {
    while (queue.length) ++counts[await runOne(queue.shift())];
  });
  await Promise.all(workers);
  console.log(`${counts.ok} ok, ${counts.failed} failed, ${counts.skip} skipped`);
  process.exit(counts.failed ? 1 : counts.ok ? 0 : 77);
}

// Runs the matrix through the gateway. Its dimensions are the revisions of the client and of the
// server, the transports of both sides, and the features.
//
//   matrix.mjs [--cover | --all | --direct] [--try] [--list] [--only TEXT]...
//
// --cover   each pair of revisions once, and every revision with every transport (default)
// --all     every cell
// --direct  without a gateway: tests the client and the server of each revision and transport
// --try     also run the cells with the outcome "not yet"; they do not make the run fail
// --list    print the cells and their expected outcomes, without running them
// --only    only cells whose line contains the text, such as "2025-06-18/http" or " roots"
//
// A line is "CLIENT/TRANSPORT -> SERVER/TRANSPORT FEATURE". Every message that the gateway sends is
// also checked against the schema of its revision.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Gateway, node, npmDir, root } from '../e2e/gateway.mjs';
import { CheckedWire, schemaCheck } from '../fixtures/schema_check.mjs';
import { FEATURES, expected, pairings } from './cells.mjs';
import { Frames, Lines, OldHttp, Streamable } from './channels.mjs';
import { SessionClient, StatelessClient } from './client.mjs';
import { ANSWERS, PROFILE, capabilitiesOf } from './features.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const words = process.argv.slice(2);
const flag = (name) => words.includes(name);
const direct = flag('--direct');
const only = words.flatMap((word, i) => (word === '--only' ? [words[i + 1]] : []));
const scratch = mkdtempSync(join(tmpdir(), 'bulkhead-matrix-'));
const checks = new Map();
const checkOf = async (revision) => checks.get(revision) ?? checks.set(revision, await schemaCheck(revision)).get(revision);

// Even after a failure of this program, no server, gateway or file remains.
const stands = [];
process.on('exit', () => {
  for (const { gateway, child } of stands) {
    gateway?.child?.kill();
    child?.kill();
  }
  rmSync(scratch, { recursive: true, force: true });
});

const lineOf = (cell) => `${cell.client}/${cell.clientTransport} -> ${cell.server}/${cell.serverTransport} ${cell.feature}`;
function cells() {
  const chosen = pairings(!flag('--all') && !direct)
    .filter(({ client, server, clientTransport, serverTransport }) => !direct || (client === server && clientTransport === serverTransport));
  const all = chosen.flatMap((pairing) => FEATURES.map((feature) => ({ ...pairing, feature })));
  return all.map((cell) => ({ ...cell, line: lineOf(cell), ...expected(cell, direct) }))
    .filter(({ line }) => only.every((text) => line.includes(text)));
}

// A gateway with one server, for clients with all transports.
class Stand {
  constructor(revision, transport) {
    Object.assign(this, { revision, transport, name: `${revision}-${transport}` });
    this.dir = join(scratch, this.name);
    mkdirSync(this.dir);
    this.log = join(this.dir, 'server.log');
    this.socket = join(this.dir, 'guest.sock');
  }
  async start() {
    const args = this.#args();
    if (direct) {
      if (this.transport === 'http') this.url = await this.#serve(args);
      return this;
    }
    this.upstream = this.transport === 'stdio'
      ? { command: node, args, sandbox_paths: { read: [root, npmDir], write: [this.dir] } }
      : { type: 'http', url: await this.#serve(args) };
    this.upstream.roots = 'per-client'; // otherwise no server receives the client's roots
    const profile = {
      mcpServers: { up: this.upstream },
      naming: { prefix: 'never' },
      ...PROFILE,
      transports: { guests: { plugin: 'transport-vsock', listen: `unix:${this.socket}` }, http: { plugin: 'transport-http' } },
    };
    this.gateway = new Gateway(this.dir, profile);
    await this.gateway.serve();
    this.lines = new Gateway(this.dir, { ...profile, transports: undefined });
    return this;
  }
  #args() {
    return [join(here, 'server.mjs'), this.revision, this.transport, this.log];
  }
  #serve(args) {
    this.child = spawn(node, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return new Promise((resolve, reject) => {
      this.child.on('exit', (code) => reject(new Error(`the server ended (${code})`)));
      this.child.stdout.on('data', (data) => resolve(String(data).trim()));
    });
  }
  channel(transport, revision) {
    if (transport === 'stdio') return direct ? new Lines(node, this.#args()) : new Lines(...this.lines.stdioCommand());
    if (transport === 'frames') return new Frames(this.socket);
    return new (revision === '2024-11-05' ? OldHttp : Streamable)(this.url ?? this.gateway.url);
  }
  // Returns the errors in messages that the gateway has sent to the server. The gateway may send
  // server/discover of 2026-07-28, and initialize, to determine the server's generation.
  async errors() {
    const probes = { 'server/discover': await checkOf('2026-07-28'), initialize: await checkOf('2025-11-25') };
    const isProbe = (text) => {
      const message = JSON.parse(text);
      return probes[message.method]?.errors(message).length === 0;
    };
    const wire = new CheckedWire(await checkOf(this.revision));
    let log = '';
    try {
      log = readFileSync(this.log, 'utf8');
    } catch {
      // nothing was sent
    }
    // The server may be writing its last line at the moment.
    for (const line of log.slice(0, log.lastIndexOf('\n') + 1).split('\n')) {
      if (line.startsWith('< ') && isProbe(line.slice(2))) continue;
      if (line.startsWith('< ')) wire.sent(line.slice(2));
      else if (line) wire.received(line.slice(2));
    }
    return wire.errors.filter((error) => error.startsWith('sent'));
  }
  async stop() {
    this.child?.removeAllListeners('exit');
    await this.gateway?.stop().finally(() => this.child?.kill());
    this.child?.kill();
  }
}

const limit = (ms, what, promise) => {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

async function connect(stand, { client: revision, clientTransport }) {
  const Kind = revision === '2026-07-28' ? StatelessClient : SessionClient;
  const client = new Kind(revision, stand.channel(clientTransport, revision), await checkOf(revision), {
    capabilities: capabilitiesOf(revision),
    answers: ANSWERS,
  });
  try {
    await limit(30_000, 'the opening', client.open());
    if (client.negotiated && client.negotiated !== revision) throw new Error(`the gateway chose ${client.negotiated}`);
  } catch (error) {
    await client.close().catch(() => {});
    throw error;
  }
  return client;
}

// Runs the cells of a pairing with one client. Yields {cell, error}.
async function* runPairing(stand, list) {
  let client;
  let opening;
  for (const cell of list) {
    if (!cell.check) continue;
    if (cell.outcome === 'not yet' && !flag('--try')) continue;
    let error;
    const before = client?.errors.length ?? 0;
    try {
      if (opening) throw opening;
      client ??= await connect(stand, cell).catch((failure) => {
        throw (opening = failure);
      });
      client.notes.length = 0;
      await limit(40_000, cell.feature, cell.check({ client, server: cell.server }));
      const wrong = [...new Set(client.errors.slice(before))];
      if (wrong.length) throw new Error(`schema: ${wrong.join('; ')}`);
    } catch (failure) {
      error = failure;
    }
    yield { cell, error };
    if (error && client) {
      await client.close().catch(() => {});
      client = undefined;
    }
  }
  await client?.close();
}

const brief = (error) => String(error?.message ?? error).split('\n').filter(Boolean).slice(0, 4).join(' ').slice(0, 400);

async function runStand(key, list, counts) {
  const [revision, transport] = key.split('/');
  if (!list.some((cell) => cell.check && (cell.outcome !== 'not yet' || flag('--try')))) return;
  const stand = new Stand(revision, transport);
  stands.push(stand);
  try {
    await stand.start();
    for (const pairing of Map.groupBy(list, (cell) => `${cell.client}/${cell.clientTransport}`).values()) {
      for await (const { cell, error } of runPairing(stand, pairing)) {
        const good = cell.outcome === 'not yet' ? 'passes already' : cell.outcome;
        const bad = cell.outcome === 'not yet' ? 'not yet' : 'FAILED';
        const outcome = error ? bad : good;
        counts[outcome] = (counts[outcome] ?? 0) + 1;
        cell.counted = true;
        if (outcome === 'FAILED' || flag('--try')) console.log(`${cell.line}: ${outcome}${error ? `: ${brief(error)}` : ''}`);
      }
    }
    for (const error of new Set(await stand.errors())) {
      const outcome = list.every(({ outcome: wanted }) => wanted === 'not yet') ? 'not yet' : 'FAILED';
      console.log(`to the server, ${key}: ${outcome}: schema: ${error}`);
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    }
  } catch (error) {
    console.log(`${key}: FAILED: ${error.stack}\n${stand.gateway?.stderr().slice(-2000)}`);
    counts.FAILED = (counts.FAILED ?? 0) + 1;
  } finally {
    await stand.stop().catch((error) => {
      console.log(`${key}: FAILED: ${error.message}`);
      counts.FAILED = (counts.FAILED ?? 0) + 1;
    });
  }
}

async function main() {
  const all = cells();
  if (flag('--list')) {
    for (const { line, outcome, reason } of all) console.log(`${line}: ${outcome}${reason ? ` (${reason})` : ''}`);
    process.exit(0);
  }
  const counts = {};
  const started = Date.now();
  for (const [key, list] of Map.groupBy(all, (cell) => `${cell.server}/${cell.serverTransport}`)) await runStand(key, list, counts);
  const waiting = all.filter((cell) => !cell.counted && cell.outcome === 'not yet');
  for (const [reason, list] of Map.groupBy(waiting, (cell) => cell.reason)) console.log(`not yet: ${list.length} cells: ${reason}`);
  if (waiting.length) counts['not yet'] = (counts['not yet'] ?? 0) + waiting.length;
  const missing = all.filter((cell) => !cell.counted && cell.outcome !== 'not yet').length;
  if (missing) counts.FAILED = (counts.FAILED ?? 0) + missing;
  console.log(`matrix: ${all.length} cells: ${Object.entries(counts).map(([what, n]) => `${n} ${what}`).join(', ')} (${Date.now() - started} ms)`);
  process.exit(counts.FAILED ? 1 : 0);
}

await main();

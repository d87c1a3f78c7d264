// Runs `bulkhead aggregator` as a parent program would, with either codec.
import { spawn } from 'node:child_process';
import { Gateway, ended, program, sleep } from './lib.mjs';
import { decode, encode } from '../fixtures/msgpack.mjs';

const codecs = {
  ndjson: {
    frame: (value) => Buffer.from(`${JSON.stringify(value)}\n`),
    cut(buffer) {
      const end = buffer.indexOf(10);
      return end < 0 ? null : [JSON.parse(buffer.subarray(0, end).toString()), end + 1];
    },
  },
  msgpack: {
    frame(value) {
      const body = encode(value);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(body.length);
      return Buffer.concat([length, body]);
    },
    cut(buffer) {
      if (buffer.length < 4) return null;
      const end = 4 + buffer.readUInt32BE(0);
      return buffer.length < end ? null : [decode(buffer.subarray(4, end)), end];
    },
  },
};

export class Aggregator {
  #buffer = Buffer.alloc(0);
  #waiting = new Map();
  #id = 0;
  stderr = '';
  order = []; // request IDs in the order of the replies

  // options: codec, args, env, command (is run instead of the program; $BULKHEAD is the program's
  // path)
  constructor(t, options = {}) {
    this.codec = codecs[options.codec ?? 'msgpack'];
    const gateway = new Gateway(t.dir, undefined, options);
    const [command, ...args] = options.command ?? [program, 'aggregator', ...(options.args ?? [])];
    const env = { ...gateway.env(), BULKHEAD: program };
    this.child = spawn(command, args, { env, cwd: gateway.dir, stdio: ['pipe', 'pipe', 'pipe'] });
    this.exited = ended(this.child).then((exit) => (this.exit = exit));
    this.child.stdin.on('error', () => {}); // the process may have exited
    this.child.stdout.on('data', (data) => this.#take(data));
    this.child.stderr.on('data', (data) => (this.stderr += data));
    t.gateways.push({ stderr: () => this.stderr });
    t.defer(() => this.end());
  }
  get pid() {
    return this.child.pid;
  }

  #take(data) {
    this.#buffer = Buffer.concat([this.#buffer, data]);
    for (let cut; (cut = this.codec.cut(this.#buffer)); ) {
      const [reply, end] = cut;
      this.#buffer = this.#buffer.subarray(end);
      this.order.push(reply.id);
      this.#waiting.get(reply.id)?.(reply);
      this.#waiting.delete(reply.id);
    }
  }

  raw(bytes) {
    this.child.stdin.write(bytes);
  }
  define(servers) {
    this.raw(this.codec.frame(servers));
    return this;
  }
  // Resolves with the whole reply. If there is none, the test times out.
  request(method, params) {
    const id = ++this.#id;
    const reply = new Promise((done) => this.#waiting.set(id, done));
    this.raw(this.codec.frame({ id, method, params }));
    return reply;
  }
  call(name, args) {
    return this.request('call_tool', { name, arguments: args });
  }
  closeInput() {
    this.child.stdin.end();
  }

  async end() {
    if (this.exit) return;
    this.closeInput();
    if ((await Promise.race([this.exited, sleep(15_000)])) !== undefined) return;
    this.child.kill('SIGKILL');
    throw new Error('the aggregator did not end within 15 s of the end of its input');
  }
}

// Implements the guest side of the frame protocol: one connection, with requests by stream ID. All
// received frames are stored.
import { connect } from 'node:net';
import { until } from './lib.mjs';

export const metadata = (name = 'agent') => Buffer.from(`\0CAPSEM_META:${name}\n`);

export function frame(stream, payload, name = 'agent') {
  const body = Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload));
  const title = Buffer.from(name);
  const head = Buffer.alloc(20);
  head.writeUInt32BE(16 + title.length + body.length, 0);
  head.writeUInt16BE(0x4d43, 4);
  head.writeUInt8(1, 6);
  head.writeUInt8(16, 7);
  head.writeUInt32BE(stream, 8);
  head.writeUInt16BE(stream === 0 ? 1 : 0, 12);
  head.writeUInt16BE(title.length, 14);
  head.writeUInt32BE(body.length, 16);
  return Buffer.concat([head, title, body]);
}

export class Guest {
  constructor(t, path, { start = metadata() } = {}) {
    this.frames = [];
    this.bytes = Buffer.alloc(0);
    this.stream = 0;
    this.closed = false;
    this.socket = connect(path);
    this.socket.on('error', () => {});
    this.socket.on('close', () => (this.closed = true));
    this.socket.on('data', (data) => this.#received(data));
    if (start) this.socket.write(start);
    t.defer(() => this.socket.destroy());
  }
  #received(data) {
    this.bytes = Buffer.concat([this.bytes, data]);
    for (;;) {
      if (this.bytes.length < 20) return;
      const end = 4 + this.bytes.readUInt32BE(0);
      if (this.bytes.length < end) return;
      const name = 20 + this.bytes.readUInt16BE(14);
      this.frames.push({
        stream: this.bytes.readUInt32BE(8),
        notification: this.bytes.readUInt16BE(12) === 1,
        name: this.bytes.subarray(20, name).toString(),
        payload: this.bytes.subarray(name, end).toString(),
      });
      this.bytes = this.bytes.subarray(end);
    }
  }
  notify(method, params, name) {
    this.socket.write(frame(0, { jsonrpc: '2.0', method, params }, name));
  }
  // Resolves with the response, or with null for an empty frame.
  async request(method, params, { name, ms } = {}) {
    const stream = ++this.stream;
    this.socket.write(frame(stream, { jsonrpc: '2.0', id: `r${stream}`, method, params }, name));
    const found = await until(
      `an answer to ${method}`,
      () => this.frames.find((one) => one.stream === stream) ?? (this.closed && 'closed'),
      ms,
    );
    if (found === 'closed') throw new Error(`closed before the answer to ${method}`);
    return found.payload === '' ? null : JSON.parse(found.payload);
  }
  call(tool, args = {}, options) {
    return this.request('tools/call', { name: tool, arguments: args }, options);
  }
  sent(method) {
    return this.frames
      .filter((one) => one.notification)
      .map((one) => JSON.parse(one.payload))
      .filter((message) => message.method === method);
  }
}

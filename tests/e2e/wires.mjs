// Provides all client transports with one interface that sends and receives text. The classes know
// nothing of MCP except the ID, which shows whether a response is expected.
import { spawn } from 'node:child_process';
import http from 'node:http';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { HttpClient, events, until } from './lib.mjs';
import { member } from '../fixtures/raw_json.mjs';
import { Guest, frame, metadata } from './frames.mjs';

// Long, because tests may run on an emulated machine.
const patience = 30_000;

const awaitsAnswer = (text) => {
  try {
    return 'id' in JSON.parse(text);
  } catch {
    return true; // invalid JSON causes an error response
  }
};

// The base class. `messages` contains the text of each received message. IDs are JSON text, so that
// tests see the exact bytes.
class Wire {
  messages = [];
  static message(id, method, params) {
    const tail = params === undefined ? '' : `,"params":${typeof params === 'string' ? params : JSON.stringify(params)}`;
    return `{"jsonrpc":"2.0"${id === undefined ? '' : `,"id":${id}`},"method":"${method}"${tail}}`;
  }
  request(id, method, params) {
    return this.send(Wire.message(id, method, params));
  }
  notify(method, params) {
    return this.send(Wire.message(undefined, method, params));
  }
  answers(id) {
    return this.messages.filter((text) => member(text, 'id') === id);
  }
  // Returns the text of the first response with this ID.
  answer(id) {
    return this.until(`an answer to ${id}`, () => this.answers(id)[0]);
  }
  // Waits until `probe` returns a true value.
  until(what, probe) {
    return until(what, probe, patience);
  }
  async ask(id, method, params) {
    this.request(id, method, params);
    return JSON.parse(await this.answer(id));
  }
  async initialize() {
    const answer = await this.ask('"hello"', 'initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'wires', version: '1' },
    });
    await this.welcomed?.(answer);
    this.notify('notifications/initialized');
    return answer;
  }
}

// One message per line, over the standard streams of a program or over a socket.
class Lines extends Wire {
  constructor(input, output) {
    super();
    this.input = input;
    input.on('error', () => {});
    createInterface({ input: output }).on('line', (line) => this.messages.push(line));
    this.over = new Promise((resolve) => output.on('close', resolve));
  }
  send(text) {
    this.input.write(`${text}\n`);
  }
  // Sends the last message and closes the input. Resolves when the other side has also closed its
  // side.
  last(text) {
    this.input.end(`${text}\n`);
    return this.over;
  }
}

// Starts a program that exchanges lines.
export function programLines(t, command, args, options = {}) {
  const child = spawn(command, args, { ...options, stdio: ['pipe', 'pipe', 'pipe'] });
  let stderr = '';
  child.stderr.on('data', (data) => (stderr += data));
  t.gateways.push({ stderr: () => stderr });
  const gone = new Promise((resolve) => child.on('close', resolve));
  t.defer(() => {
    child.kill('SIGTERM');
    return gone;
  });
  return new Lines(child.stdin, child.stdout);
}

// Connects like an older guest, which sends lines after the metadata line.
export function socketLines(t, path) {
  const socket = connect({ path, allowHalfOpen: true });
  t.defer(() => socket.destroy());
  socket.write(metadata());
  return new Lines(socket, socket);
}

export class Frames extends Wire {
  #stream = 0;
  constructor(t, path) {
    super();
    this.guest = new Guest(t, path);
    delete this.messages;
  }
  // An empty frame means that the request is complete without a response, so it is not a message.
  get messages() {
    return this.guest.frames.map((one) => one.payload).filter(Boolean);
  }
  set messages(_) {}
  send(text) {
    this.guest.socket.write(frame(awaitsAnswer(text) ? ++this.#stream : 0, text));
  }
  last(text) {
    this.send(text);
    this.guest.socket.end();
    return this.until('the connection is closed', () => this.guest.closed);
  }
}

// Streamable HTTP: one POST request per message. The received responses are the messages.
export class Http extends Wire {
  constructor(t, url) {
    super();
    this.client = new HttpClient(url);
    t.defer(() => this.client.close());
    this.failure = undefined;
  }
  welcomed(answer) {
    this.client.negotiated = answer.result.protocolVersion;
  }
  send(text) {
    this.sent = this.#post(text).catch((error) => (this.failure ??= error));
  }
  async #post(text) {
    const res = await this.client.exchange('POST', { body: text, headers: this.client.headers(), stream: true });
    await this.#read(res, text);
  }
  async #read(res, text) {
    this.client.session ??= res.headers['mcp-session-id'];
    if ((res.headers['content-type'] ?? '').startsWith('text/event-stream')) {
      for await (const event of events(res)) if (event.data) this.messages.push(event.data);
      return;
    }
    let body = '';
    for await (const chunk of res) body += chunk;
    if (body) this.messages.push(body);
    if (!awaitsAnswer(text) && res.statusCode !== 202) throw new Error(`a notification got HTTP ${res.statusCode} ${body}`);
  }
  // The connection is closed after this request, which HTTP requests with a header.
  async last(text) {
    const { hostname, port, pathname } = this.client.url;
    const headers = this.client.headers({ 'content-type': 'application/json', connection: 'close' });
    const req = http.request({ host: hostname, port, path: pathname, method: 'POST', agent: false, headers });
    const closed = new Promise((resolve) => req.on('close', resolve));
    req.on('error', (error) => (this.failure ??= error));
    req.on('response', (res) => this.#read(res, text).catch((error) => (this.failure ??= error)));
    req.end(text);
    await closed;
  }
}

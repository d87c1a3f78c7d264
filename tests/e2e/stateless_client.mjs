// A client of MCP 2026-07-28 that sends single requests over HTTP, each with its own _meta; without an
// SDK, so that tests can send invalid requests.
import { existsSync, readFileSync } from 'node:fs';
import { assert, events, show } from './lib.mjs';

export const REVISION = '2026-07-28';
export const PREFIX = 'io.modelcontextprotocol/';
export const meta = (more = {}) => ({
  [`${PREFIX}protocolVersion`]: REVISION,
  [`${PREFIX}clientCapabilities`]: {},
  [`${PREFIX}clientInfo`]: { name: 'stateless-test', version: '1' },
  ...more,
});

// The headers that mirror the body.
function headersOf(method, params) {
  const named = { 'tools/call': params.name, 'prompts/get': params.name, 'resources/read': params.uri };
  const name = named[method] ?? (method.startsWith('tasks/') ? params.taskId : undefined);
  return {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': params._meta?.[`${PREFIX}protocolVersion`] ?? REVISION,
    'mcp-method': method,
    ...(name === undefined ? {} : { 'mcp-name': name }),
  };
}

export class Http {
  constructor(client) {
    this.client = client;
    this.next = 1;
  }
  open(method, params = {}, { more, id = this.next++, headers = {}, signal } = {}) {
    const whole = { ...params, _meta: meta(more) };
    const body = this.client.message(method, whole, id);
    return this.client.exchange('POST', { body, headers: { ...headersOf(method, whole), ...headers }, stream: true, signal });
  }
  // Resolves with {status, type, notes, answer}.
  async send(method, params, options) {
    const res = await this.open(method, params, options);
    const type = res.headers['content-type'] ?? '';
    const messages = [];
    if (type.startsWith('text/event-stream')) {
      for await (const event of events(res)) if (event.data) messages.push(JSON.parse(event.data));
    } else {
      let text = '';
      for await (const chunk of res) text += chunk;
      if (text !== '') messages.push(JSON.parse(text));
    }
    assert.equal(res.headers['mcp-session-id'], undefined);
    return { status: res.statusCode, type, headers: res.headers, answer: messages.pop(), notes: messages };
  }
  async result(method, params, options) {
    const { answer } = await this.send(method, params, options);
    assert.equal(answer.error, undefined, show(answer));
    return answer.result;
  }
}
export const httpOf = async (t, gateway) => new Http(await t.http(gateway, { initialize: false }));

// The messages of this method in the log of a scripted server; `sign` is < for those that it received.
export const lines = (log, sign, method) => (existsSync(log) ? readFileSync(log, 'utf8').split('\n') : [])
  .filter((line) => line.startsWith(`${sign} {`)).map((line) => JSON.parse(line.slice(2))).filter((one) => one.method === method);

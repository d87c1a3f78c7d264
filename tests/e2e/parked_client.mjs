// Helpers for tests of parked calls: servers that ask their client, and a client of MCP 2026-07-28 that
// is asked in results and repeats its requests.
import { writeFileSync } from 'node:fs';
import { assert, fake, node, show } from './lib.mjs';
import { schemaCheck } from '../fixtures/schema_check.mjs';
import { PREFIX, REVISION, lines } from './stateless_client.mjs';

export const modes = [['in compartments', []], ['in one process', ['--single-process']]];
export const check = await schemaCheck(REVISION);

export const CAPABLE = { [`${PREFIX}clientCapabilities`]: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } };
export const FORM = { message: 'Read?', requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } }, required: ['yes'] } };
export const ASKS = {
  elicit: { method: 'elicitation/create', params: FORM },
  visit: { method: 'elicitation/create', params: { mode: 'url', message: 'Sign in', url: 'http://127.0.0.1/x', elicitationId: 'e' } },
  sample: { method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text: '2+2?' } }], maxTokens: 9 } },
  roots: { method: 'roots/list' },
};
export const ANSWERS = {
  elicit: { action: 'accept', content: { yes: true } },
  visit: { action: 'accept' },
  sample: { role: 'assistant', content: { type: 'text', text: '4' }, model: 'm' },
  roots: { roots: [{ uri: 'file:///work', name: 'work' }] },
};
// A scripted server whose tools are named after what they ask.
export const asking = (log, ...more) => ({
  ...fake(...Object.entries(ASKS).flatMap(([name, ask]) => ['--tool', name, '--ask', `${name}=${JSON.stringify(ask)}`]), '--tool', 'x', '--log', log, ...more),
  roots: 'per-client',
});
export const calls = (log) => lines(log, '<', 'tools/call').map((one) => one.params.name);
// A call until its first answer, and the same with answers.
export const call = (http, name, { args: given = { n: 1 }, method = 'tools/call', ...options } = {}, more = {}) =>
  http.send(method, { name, arguments: given, ...more }, { more: CAPABLE, ...options });
export async function asked(http, name, { members, ...options } = {}) {
  const { answer, status } = await call(http, name, options, members);
  assert.equal(status, 200);
  assert.equal(answer.result?.resultType, 'input_required', show(answer));
  assert.deepEqual(check.errors(answer, 'tools/call'), []);
  return answer.result;
}
export const answering = ({ inputRequests, requestState }, answer) =>
  ({ requestState, inputResponses: Object.fromEntries(Object.keys(inputRequests).map((key) => [key, answer])) });
export async function refused(http, name, more, pattern, options) {
  const { answer, status } = await call(http, name, options, more);
  assert.equal(answer.error?.code, -32602, show(answer));
  assert.equal(status, 200);
  assert.match(answer.error.message, pattern);
}

export const answersIn = (log) => lines(log, '<', undefined).filter((one) => one.result !== undefined).length;

// A server whose tool `ever` asks again after each answer; the tool `once` asks once, and never answers;
// the tool `visit` requires a URL elicitation the first time, and answers with its params.
export function asker(t, log = t.path('asker')) {
  writeFileSync(log, '');
  const script = t.path('asker.mjs');
  writeFileSync(script, `
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const open = new Map();
let next = 0, visits = 0;
const ask = (call) => {
  const id = 'q' + ++next;
  open.set(id, call);
  send({ id, method: 'elicitation/create', params: ${JSON.stringify(FORM)} });
};
for await (const line of createInterface({ input: process.stdin })) {
  appendFileSync(process.argv[2], '< ' + line + '\\n');
  const { id, method, params, error } = JSON.parse(line);
  const call = open.get(id);
  if (method === 'tools/call' && params.name === 'visit') {
    const elicitations = [{ mode: 'url', elicitationId: 'e', message: 'Sign in', url: 'https://a.example/' }];
    if (++visits === 1) send({ id, error: { code: -32042, message: 'sign in first', data: { elicitations } } });
    else send({ id, result: { content: [{ type: 'text', text: JSON.stringify(params) }] } });
    continue;
  }
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'asker', version: '1' } } });
  else if (method === 'tools/list') send({ id, result: { tools: ['ever', 'once', 'visit'].map((name) => ({ name, inputSchema: { type: 'object' } })) } });
  else if (method === 'tools/call') ask({ id, name: params.name, token: params._meta?.progressToken });
  else if (error) send({ id: call.id, result: { content: [{ type: 'text', text: error.message }] } });
  else if (call?.name === 'ever') ask(call);
  else if (call?.token !== undefined) send({ method: 'notifications/progress', params: { progressToken: call.token, progress: 1 } });
}`);
  return { command: node, args: [script, log] };
}

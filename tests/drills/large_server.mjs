// node large_server.mjs MEGABYTES: a server on stdio with the tools `values`, `escaped` and
// `members`, whose results are payloads (large_load.mjs) of this size.
import { createInterface } from 'node:readline';
import { payloads } from './large_load.mjs';

const bytes = Number(process.argv[2]) * 1e6;
const kinds = ['values', 'escaped', 'members'];
const results = Object.fromEntries(kinds.map((kind) =>
  [kind, Buffer.from(`,"result":{"content":[],"structuredContent":{"v":${payloads[kind](bytes)}}}}\n`)]));
const write = (data) => new Promise((done) => { process.stdout.write(data, done); });
const answer = (id, result) => write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result)}}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    await answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'large', version: '1' } });
  } else if (method === 'tools/list') {
    await answer(id, { tools: kinds.map((name) => ({ name, inputSchema: { type: 'object' } })) });
  } else if (method === 'tools/call') {
    await write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)}`);
    await write(results[params.name]);
  } else if (id !== undefined) {
    await answer(id, {});
  }
}

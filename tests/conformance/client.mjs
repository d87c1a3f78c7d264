// The client that the conformance suite runs. It makes the requests that the suite's mock servers
// expect. With "direct", it is the official SDK 2.x. Otherwise it is a raw client (tests/matrix)
// that reaches the mock server only through a gateway, so the suite checks the gateway's requests.
//
//   client.mjs direct URL
//   client.mjs REVISION URL         (REVISION of the client in front of the gateway)
//
// The suite sets MCP_CONFORMANCE_SCENARIO, _PROTOCOL_VERSION and _CONTEXT (JSON).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Gateway, importFromNpm } from '../e2e/gateway.mjs';
import { schemaCheck } from '../fixtures/schema_check.mjs';
import { Lines } from '../matrix/channels.mjs';
import { SessionClient, StatelessClient } from '../matrix/client.mjs';

const [, , how, url] = process.argv;
const { toolCalls } = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');

// Fills in a form with the default of each field, or with a sample value of its type.
const samples = { string: 'text', integer: 1, number: 1.5, boolean: true, array: [], object: {} };
const filled = (schema) => Object.fromEntries(Object.entries(schema?.properties ?? {})
  .map(([name, property]) => [name, property.default ?? property.enum?.[0] ?? samples[property.type] ?? null]));
const accept = ({ requestedSchema }) => ({ action: 'accept', content: filled(requestedSchema) });
const capabilities = { elicitation: {}, sampling: {}, roots: {} };

async function direct() {
  const { Client, StreamableHTTPClientTransport } = await importFromNpm('@modelcontextprotocol/client');
  const mode = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === '2026-07-28' ? 'auto' : 'legacy';
  const client = new Client({ name: 'conformance', version: '1' }, { capabilities, versionNegotiation: { mode } });
  client.setRequestHandler('elicitation/create', ({ params }) => accept(params));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  const methods = {
    'tools/list': 'listTools', 'tools/call': 'callTool', 'resources/list': 'listResources', 'resources/read': 'readResource',
    'prompts/list': 'listPrompts', 'prompts/get': 'getPrompt',
  };
  return {
    call: (method, params) => client[methods[method]](params),
    close: () => client.close(),
  };
}

async function throughGateway(revision) {
  const dir = mkdtempSync(join(tmpdir(), 'bulkhead-conformance-client-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  const profile = { mcpServers: { up: { type: 'http', url, roots: 'per-client' } }, naming: { prefix: 'never' } };
  const lines = new Lines(...new Gateway(dir, profile).stdioCommand());
  const Kind = revision === '2026-07-28' ? StatelessClient : SessionClient;
  const client = new Kind(revision, lines, await schemaCheck(revision), { capabilities, answers: {} });
  client.answerTo = (method, params) => (method === 'elicitation/create' ? accept(params) : undefined);
  await client.open();
  return {
    call: (method, params) => client.call(method, params),
    close: () => client.close(),
  };
}

const client = await (how === 'direct' ? direct() : throughGateway(how));
// If the mock server does not support a request or fails, this is not a failure of the client.
const attempt = async (method, params = {}) => {
  try {
    return await client.call(method, params);
  } catch (error) {
    console.log(`${method}: ${error.message}`);
    return {};
  }
};
const { tools = [] } = await attempt('tools/list');
const focal = tools.find(({ inputSchema }) => inputSchema.$schema && inputSchema.$defs);
for (const { name, arguments: args } of toolCalls ?? tools.map((tool) => ({ name: tool.name, arguments: filled(tool.inputSchema) }))) {
  // One scenario compares the schema that its echo tool receives with the listed schema.
  await attempt('tools/call', { name, arguments: focal && 'schema' in args ? { schema: focal.inputSchema } : args });
}
const { resources = [] } = await attempt('resources/list');
if (resources.length) await attempt('resources/read', { uri: resources[0].uri });
const { prompts = [] } = await attempt('prompts/list');
if (prompts.length) await attempt('prompts/get', { name: prompts[0].name, arguments: filled({ properties: {} }) });
await client.close();
process.exit(0);

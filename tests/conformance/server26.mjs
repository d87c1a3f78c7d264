// The fixture server for 2026-07-28; content.mjs defines its tools, resources and prompts. It uses
// the low-level API of the official SDK 2.x.
//
//   server26.mjs stdio [--both]       server26.mjs http [PORT] [--both]   (prints its URL)
//
// With --both, it also serves clients of the revisions with sessions; over HTTP, these clients have
// no session.
import http from 'node:http';
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { importFromNpm } from '../e2e/gateway.mjs';
import { capabilities, complete, identity, listen, lists, messages, prompts, read, refused, tools } from './content.mjs';

const sdk = await importFromNpm('@modelcontextprotocol/server');
const words = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const legacy = process.argv.includes('--both') ? { http: 'stateless', stdio: 'serve' } : { http: 'reject', stdio: 'reject' };
const invalid = (text, data) => new sdk.ProtocolError(sdk.INVALID_PARAMS, text, data);
const state = sdk.createRequestStateCodec({ key: randomBytes(32), bind: ({ mcpReq }) => mcpReq.method });

// Thrown to return an input_required result.
class InputRequired {
  constructor(result) {
    this.result = result;
  }
}
const finish = async (run) => {
  try {
    return await run();
  } catch (error) {
    if (error instanceof InputRequired) return error.result;
    throw error;
  }
};

// Implements `io` of content.mjs. A request to the client is returned as an input_required result.
// The client then repeats its request, which runs the tool again and contains the responses.
// Responses of earlier rounds are in the sealed state.
function ioOf(changed, ctx) {
  const { mcpReq } = ctx;
  const declared = mcpReq.envelope?.[sdk.CLIENT_CAPABILITIES_META_KEY] ?? {};
  const answers = { ...(mcpReq.requestState()?.answers ?? {}), ...mcpReq.inputResponses };
  const declares = (capability) => declared[capability] !== undefined;
  return {
    declares,
    need(capability) {
      if (!declares(capability)) throw new sdk.MissingRequiredClientCapabilityError({ requiredCapabilities: { [capability]: {} } });
    },
    async ask(requests, { state: stateful = false } = {}) {
      if (Object.keys(requests).every((key) => answers[key] !== undefined)) return answers;
      const inputRequests = Object.fromEntries(Object.entries(requests).filter(([key]) => answers[key] === undefined));
      const requestState = stateful ? await state.mint({ answers }, ctx) : undefined;
      throw new InputRequired(sdk.inputRequired({ inputRequests, ...(stateful ? { requestState } : {}) }));
    },
    async progress(progress, total) {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken !== undefined) await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
    },
    log: (level, data) => mcpReq.log(level, data),
    changed,
    closeStream: () => {},
  };
}

// changed(kind, server) announces a changed list to all subscriptions.
function createServer(changed) {
  const server = new sdk.Server(identity, {
    capabilities,
    requestState: { verify: state.verify },
    cacheHints: Object.fromEntries(
      ['server/discover', 'tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'resources/read']
        .map((method) => [method, { ttlMs: 60_000, cacheScope: 'public' }]),
    ),
  });
  const io = (ctx) => ioOf((kind) => changed(kind, server), ctx);
  server.setRequestHandler('tools/list', lists.tools);
  server.setRequestHandler('tools/call', ({ params }, ctx) => {
    const tool = tools[params.name];
    if (!tool) throw invalid(`Unknown tool: ${params.name}`);
    return finish(() => tool[2](params.arguments ?? {}, io(ctx)));
  });
  server.setRequestHandler('resources/list', lists.resources);
  server.setRequestHandler('resources/templates/list', lists.templates);
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const found = read(uri);
    if (!found) throw invalid(`Resource not found: ${uri}`, { uri });
    return found;
  });
  server.setRequestHandler('prompts/list', lists.prompts);
  server.setRequestHandler('prompts/get', ({ params }, ctx) => {
    const prompt = prompts[params.name];
    if (!prompt) throw invalid(`Unknown prompt: ${params.name}`);
    return finish(async () => messages(await prompt[1](params.arguments ?? {}, io(ctx))));
  });
  server.setRequestHandler('completion/complete', ({ params }) => complete(params));
  return server;
}

async function serveStdio() {
  const { serveStdio: serve } = await importFromNpm('@modelcontextprotocol/server/stdio');
  const changed = (kind, server) => server.notification({ method: `notifications/${kind}/list_changed` });
  serve(() => createServer(changed), { legacy: legacy.stdio });
}

// Checks the Mcp-Param-* headers of tools, which the SDK only does in its high-level API. Returns
// the name of a header that is missing or differs from the argument, or undefined.
function wrongHeader({ method, params }, headers) {
  if (method !== 'tools/call') return undefined;
  for (const [key, schema] of Object.entries(tools[params?.name]?.[1].properties ?? {})) {
    const header = schema['x-mcp-header'] && `mcp-param-${schema['x-mcp-header'].toLowerCase()}`;
    const value = params.arguments?.[key];
    if (header && value !== undefined && decode(headers[header]) !== String(value)) return header;
  }
  return undefined;
}
// Decodes the value of a header. Returns undefined if it is invalid.
function decode(value) {
  const coded = /^=\?base64\?(.*)\?=$/.exec(value ?? '')?.[1];
  if (coded === undefined) return value;
  const bytes = Buffer.from(coded, 'base64');
  return bytes.toString('base64') === coded ? bytes.toString() : undefined;
}

async function serveHttp(port) {
  const handler = sdk.createMcpHandler(() => createServer((kind) => handler.notify[`${kind}Changed`]()), { legacy: legacy.http });
  const listener = http.createServer(async (req, res) => {
    if (refused(req, res)) return;
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const message = parsed(body);
    const header = req.headers['mcp-protocol-version'] && message && wrongHeader(message, req.headers);
    if (header) {
      const error = { code: -32020, message: `${header} is missing or differs from the body` };
      res.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message.id, error }));
      return;
    }
    const gone = new AbortController();
    res.on('close', () => gone.abort());
    const { status, headers, body: answer } = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, {
      method: req.method,
      headers: Object.entries(req.headers).map(([key, value]) => [key, String(value)]),
      body: ['GET', 'HEAD'].includes(req.method) ? undefined : body,
      signal: gone.signal,
    }));
    res.writeHead(status, Object.fromEntries(headers));
    res.flushHeaders();
    if (answer) Readable.fromWeb(answer).on('error', () => res.destroy()).pipe(res);
    else res.end();
  });
  await listen(listener, port);
}
function parsed(body) {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

if (words[0] === 'stdio') await serveStdio();
else await serveHttp(Number(words[1] ?? 0));

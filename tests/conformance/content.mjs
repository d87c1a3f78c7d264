// The tools, resources and prompts of the fixture servers of all revisions. They have the names
// that the suite uses and meet the requirements that the suite prints. Tools do not know the
// revision of their server; they use `io`:
//
//   io.ask({key: {method, params}}, {state})  sends requests to the client; returns {key: response}.
//       Without `state`, a server of 2026-07-28 sends no requestState, so earlier responses are lost.
//   io.declares(capability)     returns true if the client of this call has declared it
//   io.need(capability)         otherwise fails the call as the revision requires
//   io.progress(n, total)       sends nothing if the request had no progress token
//   io.log(level, data)
//   io.changed(kind)            announces that the list of "tools" or "prompts" has changed
//   io.closeStream()            closes the response stream before the result, if there is a stream

// One red pixel, and audio without samples.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const embedded = (uri, mimeType, body) => ({ type: 'resource', resource: { uri, mimeType, text: body } });
const nothing = { type: 'object', properties: {} };
const needs = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

const form = (message, properties, required) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties, ...(required ? { required } : {}) } },
});
const sampling = (prompt, maxTokens) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens },
});
const roots = { method: 'roots/list', params: {} };
const askForm = async (io, ...args) => (await io.ask({ form: form(...args) })).form;
const shown = (said) => `action=${said.action}, content=${JSON.stringify(said.content ?? {})}`;
const titled = (...pairs) => pairs.map(([value, title]) => ({ const: value, title }));
const name = { name: { type: 'string' } };
// The gateway announces a changed list only if it differs, so these items change with each announcement.
const changes = { test_trigger_tool_change: 0, test_simple_prompt: 0 };
const changesOf = (item) => (changes[item] ? ` (change ${changes[item]})` : '');
const ok = { ok: { type: 'boolean' } };

const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

// name -> [description, inputSchema, run(args, io)]
export const tools = {
  test_simple_text: ['Simple text', nothing, () => text('This is a simple text response for testing.')],
  test_image_content: ['An image', nothing, () => ({ content: [image] })],
  test_audio_content: ['Audio', nothing, () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] })],
  test_embedded_resource: ['An embedded resource', nothing, () => ({
    content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  })],
  test_multiple_content_types: ['Several kinds of content', nothing, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  })],
  test_tool_with_logging: ['Logs while it runs', nothing, async (_, io) => {
    const lines = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
    for (const [i, data] of lines.entries()) {
      if (i) await sleep(50);
      await io.log('info', data);
    }
    return text('Tool with logging executed successfully');
  }],
  test_error_handling: ['Always fails', nothing, () => ({
    isError: true,
    ...text('This tool intentionally returns an error for testing'),
  })],
  test_tool_with_progress: ['Reports progress', nothing, async (_, io) => {
    for (const progress of [0, 50, 100]) {
      if (progress) await sleep(50);
      await io.progress(progress, 100);
    }
    return text('Tool with progress executed successfully');
  }],
  test_sampling: ['Asks the client\'s model', needs('prompt'), async ({ prompt }, io) => {
    const { said } = await io.ask({ said: sampling(prompt, 100) });
    return text(`LLM response: ${said.content.text}`);
  }],
  test_elicitation: ['Asks the user', needs('message'), async ({ message }, io) => {
    const said = await askForm(io, message, {
      username: { type: 'string', description: "User's response" },
      email: { type: 'string', description: "User's email address" },
    }, ['username', 'email']);
    return text(`User response: action: ${said.action}, content: ${JSON.stringify(said.content ?? {})}`);
  }],
  test_elicitation_sep1034_defaults: ['Asks with defaults', nothing, async (_, io) => {
    const said = await askForm(io, 'Please review and update the form fields with defaults', {
      name: { type: 'string', description: 'User name', default: 'John Doe' },
      age: { type: 'integer', description: 'User age', default: 30 },
      score: { type: 'number', description: 'User score', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', description: 'Verified', default: true },
    });
    return text(`Elicitation completed: ${shown(said)}`);
  }],
  test_elicitation_sep1330_enums: ['Asks with all forms of enums', nothing, async (_, io) => {
    const said = await askForm(io, 'Please select options', {
      untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      titledSingle: {
        type: 'string',
        oneOf: titled(['value1', 'First Option'], ['value2', 'Second Option'], ['value3', 'Third Option']),
      },
      legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
      untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
      titledMulti: {
        type: 'array',
        items: { anyOf: titled(['value1', 'First Choice'], ['value2', 'Second Choice'], ['value3', 'Third Choice']) },
      },
    });
    return text(`Elicitation completed: ${shown(said)}`);
  }],
  json_schema_2020_12_tool: ['Tool with JSON Schema 2020-12 features', schema2020, (args) => text(JSON.stringify(args))],
  test_reconnection: ['Closes its stream before it answers', nothing, async (_, io) => {
    await sleep(50);
    io.closeStream();
    await sleep(100);
    return text('Reconnection test completed');
  }],

  // The suite calls the following tools only at 2026-07-28.
  test_missing_capability: ['Works only for clients with sampling', nothing, (_, io) => {
    io.need('sampling');
    return text('The client has sampling');
  }],
  test_streaming_elicitation: ['Reports progress, then asks the user', nothing, async (_, io) => {
    await io.progress(1, 2);
    return text(`Streaming elicitation: ${shown(await askForm(io, 'Continue?', ok, ['ok']))}`);
  }],
  test_logging_tool: ['Logs at every level', nothing, async (_, io) => {
    for (const level of ['debug', 'info', 'error']) await io.log(level, `a line at ${level}`);
    return text('Logged');
  }],
  test_trigger_tool_change: ['Announces a changed list of tools', nothing, async (_, io) => {
    changes.test_trigger_tool_change += 1;
    await io.changed('tools');
    return text('The list of tools has changed');
  }],
  test_trigger_prompt_change: ['Announces a changed list of prompts', nothing, async (_, io) => {
    changes.test_simple_prompt += 1;
    await io.changed('prompts');
    return text('The list of prompts has changed');
  }],
  test_x_mcp_header: [
    'Has a parameter that HTTP clients repeat in a header',
    { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
    ({ region }) => text(`region=${region}`),
  ],
  test_input_required_result_elicitation: ['Asks for a name', nothing, async (_, io) => {
    const { user_name } = await io.ask({ user_name: form('What is your name?', name, ['name']) });
    return text(`Hello, ${user_name.content?.name}!`);
  }],
  test_input_required_result_sampling: ['Asks the client\'s model a question', nothing, async (_, io) => {
    const { capital_question } = await io.ask({ capital_question: sampling('What is the capital of France?', 100) });
    return text(capital_question.content.text);
  }],
  test_input_required_result_list_roots: ['Asks for the roots', nothing, async (_, io) => {
    const { client_roots } = await io.ask({ client_roots: roots });
    return text(`Roots: ${client_roots.roots.map(({ uri }) => uri).join(' ')}`);
  }],
  test_input_required_result_request_state: ['Asks and keeps state', nothing, async (_, io) => {
    const { confirm } = await io.ask({ confirm: form('Please confirm', ok, ['ok']) }, { state: true });
    return text(`state-ok: ${shown(confirm)}`);
  }],
  test_input_required_result_multiple_inputs: ['Asks for three inputs at once', nothing, async (_, io) => {
    const said = await io.ask({
      user_name: form('What is your name?', name, ['name']),
      greeting: sampling('Generate a greeting', 50),
      client_roots: roots,
    }, { state: true });
    return text(`${said.greeting.content.text} ${said.user_name.content?.name}: ${said.client_roots.roots.length} roots`);
  }],
  test_input_required_result_multi_round: ['Asks twice, one after the other', nothing, async (_, io) => {
    const { step1 } = await io.ask({ step1: form('Step 1: What is your name?', name, ['name']) }, { state: true });
    const color = { color: { type: 'string' } };
    const { step2 } = await io.ask({ step2: form('Step 2: What is your favorite color?', color, ['color']) }, { state: true });
    return text(`${step1.content?.name} likes ${step2.content?.color}`);
  }],
  test_input_required_result_tampered_state: ['Accepts unchanged state only', nothing, async (_, io) => {
    const { confirm } = await io.ask({ confirm: form('Please confirm', ok, ['ok']) }, { state: true });
    return text(`The state was unchanged: ${shown(confirm)}`);
  }],
  test_input_required_result_capabilities: ['Asks only what the client can answer', nothing, async (_, io) => {
    const said = await io.ask({
      ...(io.declares('elicitation') ? { user_name: form('What is your name?', name, ['name']) } : {}),
      ...(io.declares('sampling') ? { greeting: sampling('Generate a greeting', 50) } : {}),
      ...(io.declares('roots') ? { client_roots: roots } : {}),
    });
    return text(`Answered: ${Object.keys(said).join(' ')}`);
  }],
};

export const resources = {
  'test://static-text': ['text/plain', { text: 'This is the content of the static text resource.' }],
  'test://static-binary': ['image/png', { blob: PNG }],
  'test://watched-resource': ['text/plain', { text: 'Watched resource content' }],
};

// name -> [argument names, run(args, io)]
export const prompts = {
  test_simple_prompt: [[], () => [{ type: 'text', text: 'This is a simple prompt for testing.' }]],
  test_prompt_with_arguments: [['arg1', 'arg2'], ({ arg1, arg2 }) => [
    { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` },
  ]],
  test_prompt_with_embedded_resource: [['resourceUri'], ({ resourceUri }) => [
    embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
    { type: 'text', text: 'Please process the embedded resource above.' },
  ]],
  test_prompt_with_image: [[], () => [image, { type: 'text', text: 'Please analyze the image above.' }]],
  test_input_required_result_prompt: [[], async (_, io) => {
    const context = { context: { type: 'string' } };
    const { user_context } = await io.ask({ user_context: form('What context should the prompt use?', context, ['context']) });
    return [{ type: 'text', text: `Context: ${user_context.content?.context}` }];
  }],
};

// The results of methods that have the same result in all revisions.
export const lists = {
  tools: () => ({
    tools: Object.entries(tools).map(([tool, [description, inputSchema]]) => ({ name: tool, description: `${description}${changesOf(tool)}`, inputSchema })),
  }),
  resources: () => ({
    resources: Object.entries(resources).map(([uri, [mimeType]]) => ({ uri, name: uri, description: `Resource ${uri}`, mimeType })),
  }),
  templates: () => ({
    resourceTemplates: [
      { uriTemplate: 'test://template/{id}/data', name: 'Template', description: 'A template', mimeType: 'application/json' },
    ],
  }),
  prompts: () => ({
    prompts: Object.entries(prompts).map(([prompt, [names]]) => ({
      name: prompt,
      description: `Prompt ${prompt}${changesOf(prompt)}`,
      arguments: names.map((argument) => ({ name: argument, description: argument, required: true })),
    })),
  }),
};

// Returns the result of resources/read, or undefined if the resource does not exist.
export function read(uri) {
  const known = resources[uri];
  if (known) return { contents: [{ uri, mimeType: known[0], ...known[1] }] };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id === undefined) return undefined;
  const body = { id, templateTest: true, data: `Data for ID: ${id}` };
  return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(body) }] };
}

export function complete({ argument }) {
  const values = ['paris', 'park', 'party'].filter((value) => value.startsWith(argument.value));
  return { completion: { values, total: values.length, hasMore: false } };
}

export const messages = (contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });

// The identity and capabilities of the fixture servers of all revisions.
export const identity = { name: 'conformance-fixture', version: '1.0.0' };
export const capabilities = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
};

// Rejects requests whose Host or Origin is not local, as a server on the loopback interface must
// do.
export function refused(req, res) {
  const local = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;
  const { host, origin } = req.headers;
  if (!local.test(host ?? '') || (origin && !local.test(new URL(origin).host))) {
    res.writeHead(403).end('Host or Origin is not local');
    return true;
  }
  if (new URL(req.url, 'http://x').pathname === '/mcp') return false;
  res.writeHead(404).end();
  return true;
}

export async function listen(server, port) {
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  console.log(`http://127.0.0.1:${server.address().port}/mcp`);
}

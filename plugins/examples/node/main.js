// A capability plugin of mcp-pif in Node.js: it tells poems. It is written by
// proto/README.md alone, and served over the unix transport, without certificates.
//
//   poem.read  {poem: "basho/frog", lines: 2}  →  {lines: [...], poem: "basho/frog"}
//
// Which poems a tool may read (poem:basho/*) is the host's to hold: the argument
// designates, and comes here only if it lies within the capability's scope.
'use strict';

const path = require('path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');
const poems = new Map(Object.entries(require('./poems.json')));

// Integers come as strings of digits, so that none is rounded.
const contract = loader.loadSync(path.join(__dirname, 'plugin.proto'), { keepCase: true, longs: String, oneofs: true });
const { 'mcppif.plugin.v1.Plugin': service, 'mcppif.plugin.v1.Value': Value } = contract;

const manifest = {
  kind: 'poem', version: '1.0.0', doc: 'tells poems', algebra: 'segments',
  verbs: [{ name: 'read', read_only: true, idempotent: true }],
  operations: [{
    name: 'poem.read', doc: 'tells a poem', verb: 'read', result: 'record: lines, poem', type: '{lines: list[string], poem: string}',
    params: [
      { name: 'poem', type: 'string', doc: 'whose and which, such as basho/frog', main: true, designates: true },
      { name: 'lines', type: 'int', doc: 'how many of its lines; all if left out', optional: true },
    ],
  }],
};

// A Problem is what a program can understand; what else goes wrong is told to nobody.
class Problem extends Error {
  constructor(code, message, hint = '') { super(message); this.failure = { code, message, hint }; }
}

// argumentsOf decodes the record of arguments, and holds it against the manifest.
function argumentsOf(bytes, params) {
  let record;
  try { record = Value.deserialize(bytes); } catch { throw new Problem('invalid', 'the arguments are no value'); }
  if (record.kind !== 'record') throw new Problem('invalid', 'the arguments are no record');
  const given = new Map();
  for (const { key, value } of record.record.fields || []) {
    const param = params.find(p => p.name === key);
    if (!param || given.has(key)) throw new Problem('invalid', 'there is an argument too many');
    const want = { string: 'text', int: 'integer' }[param.type];
    if (!value || value.kind !== want) throw new Problem('invalid', `the argument ${key} is no ${param.type}`);
    given.set(key, param.type === 'int' ? BigInt(value.integer) : value.text);
  }
  for (const p of params) {
    if (!p.optional && !given.has(p.name)) throw new Problem('invalid', `the argument ${p.name} is missing`);
  }
  return given;
}

function read(given) {
  const poem = given.get('poem');
  const lines = poems.get(poem);
  if (!lines) throw new Problem('not_found', 'there is no such poem', 'Ask for basho/frog.');
  const most = given.has('lines') ? given.get('lines') : BigInt(lines.length);
  if (most < 1n) throw new Problem('invalid', 'a poem has at least one line', 'Leave lines out.');
  const items = lines.filter((_, i) => BigInt(i) < most).map(text => ({ text }));
  return { record: { fields: [{ key: 'lines', value: { list: { items } } }, { key: 'poem', value: { text: poem } }] } };
}

const operations = { 'poem.read': read };
const handles = new Set();
let last = 0;

function invoke({ handle, operation, arguments: bytes, max_outcome_bytes: most }) {
  if (!handles.has(handle)) throw new Problem('invalid', 'the handle is closed');
  const known = manifest.operations.find(o => o.name === operation);
  if (!known) throw new Problem('invalid', 'there is no such operation');
  const value = Value.serialize(operations[operation](argumentsOf(bytes || Buffer.alloc(0), known.params)));
  if (BigInt(most || 0) > 0n && BigInt(value.length) > BigInt(most)) throw new Problem('too_large', 'the poem is too long');
  return { value };
}

// answering makes a method of a function: its problems are failures in the answer.
const answering = does => (call, done) => {
  try { done(null, does(call.request)); } catch (e) {
    if (e instanceof Problem) return done(null, { failure: e.failure });
    console.error(e); // standard error is the log; standard output is for the handshake alone
    done({ code: grpc.status.INTERNAL, details: 'it failed' });
  }
};

const server = new grpc.Server({ 'grpc.max_receive_message_length': Number(process.env.MCP_PIF_MAX_MESSAGE || 32 << 20) });
server.addService(service, {
  Describe: answering(() => ({ protocol: 1, features: [], manifest })),
  Open: answering(() => { handles.add(String(++last)); return { handle: String(last) }; }),
  Invoke: answering(invoke),
  Close: answering(({ handle }) => { handles.delete(handle); return {}; }),
});
// gRPC's health service, of which one answer is enough: SERVING.
server.addService({ Check: {
  path: '/grpc.health.v1.Health/Check', requestStream: false, responseStream: false,
  requestDeserialize: bytes => bytes, responseSerialize: bytes => bytes,
} }, { Check: (_, done) => done(null, Buffer.from([0x08, 1])) });

if (!process.env.MCP_PIF_PLUGIN) {
  console.error('this is a plugin of mcp-pif: mcp-pif plugin add FOLDER NODE main.js');
  process.exit(1);
}
const socket = path.join(process.env.PLUGIN_UNIX_SOCKET_DIR, `poem${process.pid}`);
server.bindAsync('unix:' + socket, grpc.ServerCredentials.createInsecure(), err => {
  if (err) throw err;
  process.stdout.write(`1|1|unix|${socket}|grpc\n`);
});

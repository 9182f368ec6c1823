// Drives one of the two TypeScript clients for clients_test.go. It is started as
//
//   node drive.mjs PACKAGE ERA --http URL TOKEN
//   node drive.mjs PACKAGE ERA COMMAND ARGUMENTS...
//
// and reads lines of JSON: {"do":"list"}, {"do":"call","tool":NAME,"arguments":{…}},
// {"do":"changed"}: how often the server has said that the list of tools changed,
// {"do":"ask","method":METHOD,"params":{…}} for what isn't about tools,
// {"do":"watch","uri":URI}, or {"do":"updated"}: how often it said that a resource
// changed. It answers each with a line, {"result":…} or {"failed":WORDS}. The first line
// it writes says which version of the protocol was agreed on.
import { createInterface } from "node:readline";

const [pkg, era, ...server] = process.argv.slice(2);
const info = { name: `drive-${pkg}`, version: "1.0.0" };

let changes = 0;
function changed() {
  changes++;
}

let updates = 0;
function updated() {
  updates++;
}

// What the clients call the requests.
const asks = {
  "resources/list": "listResources",
  "resources/templates/list": "listResourceTemplates",
  "resources/read": "readResource",
  "prompts/list": "listPrompts",
  "prompts/get": "getPrompt",
  "completion/complete": "complete",
};

async function connect() {
  if (pkg === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { ToolListChangedNotificationSchema, ResourceUpdatedNotificationSchema } = await import("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info, { capabilities: {} });
    client.setNotificationHandler(ToolListChangedNotificationSchema, changed);
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, updated);
    return [client, transport(StdioClientTransport, StreamableHTTPClientTransport)];
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const client = new Client(info, {
    versionNegotiation: { mode: era === "modern" ? "auto" : "legacy" },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
  });
  client.setNotificationHandler("notifications/resources/updated", updated);
  return [client, transport(StdioClientTransport, StreamableHTTPClientTransport)];
}

function transport(Stdio, HTTP) {
  if (server[0] === "--http") {
    return new HTTP(new URL(server[1]), { requestInit: { headers: { Authorization: `Bearer ${server[2]}` } } });
  }
  return new Stdio({ command: server[0], args: server.slice(1), env: process.env, stderr: "inherit" });
}

function say(message) {
  process.stdout.write(JSON.stringify(message) + "\n");
}

const [client, wire] = await connect();
await client.connect(wire);
say({ version: client.getNegotiatedProtocolVersion?.() ?? wire.protocolVersion ?? "" });
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  try {
    switch (order.do) {
      case "list":
        say({ result: await client.listTools() });
        break;
      case "call":
        say({ result: await client.callTool({ name: order.tool, arguments: order.arguments }) });
        break;
      case "changed":
        say({ result: changes });
        break;
      case "ask":
        say({ result: await client[asks[order.method]](order.params) });
        break;
      case "watch":
        if (era === "modern") await client.listen({ resourceSubscriptions: [order.uri] });
        else await client.subscribeResource({ uri: order.uri });
        say({ result: true });
        break;
      case "updated":
        say({ result: updates });
        break;
      default:
        throw new Error(`unknown order ${order.do}`);
    }
  } catch (e) {
    say({ failed: String(e?.message ?? e) });
  }
}
await client.close();

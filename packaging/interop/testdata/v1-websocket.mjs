// TypeScript SDK v1 over its WebSocketClientTransport. The transport offers the
// subprotocol mcp only and sets no headers, so the token goes in as a second
// subprotocol, by way of the WebSocket that the transport will construct.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";

const { url, token, tool, args } = JSON.parse(process.env.DRAWBRIDGE_TEST);
const Plain = globalThis.WebSocket;
globalThis.WebSocket = class extends Plain {
  constructor(address, protocol) {
    super(address, [protocol, `bearer.${token}`]);
  }
};

const client = new Client({ name: "ts-v1-websocket", version: "1.0.0" });
const transport = new WebSocketClientTransport(new URL(url));
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: args });
// The transport keeps no version of its own; the server's name shows that the
// handshake came through.
console.log(JSON.stringify({ server: client.getServerVersion().name, tools: tools.map((t) => t.name), result }));
await client.close();

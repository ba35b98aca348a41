// TypeScript SDK v2, over Streamable HTTP or stdio, in the era that mode says.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const { url, token, command, commandArgs, mode, tool, args } = JSON.parse(process.env.DRAWBRIDGE_TEST);
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } })
  : new StdioClientTransport({ command, args: commandArgs, stderr: "inherit" });
const client = new Client({ name: "ts-v2", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: args });
console.log(JSON.stringify({
  server: client.getServerVersion()?.name, version: client.getNegotiatedProtocolVersion(),
  tools: tools.map((t) => t.name), result,
}));
await client.close();

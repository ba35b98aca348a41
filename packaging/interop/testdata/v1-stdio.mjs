// TypeScript SDK v1, which starts a command and speaks on its pipes.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const { command, commandArgs, tool, args } = JSON.parse(process.env.DRAWBRIDGE_TEST);
const client = new Client({ name: "ts-v1-stdio", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, args: commandArgs, stderr: "inherit" }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: args });
console.log(JSON.stringify({ server: client.getServerVersion().name, tools: tools.map((t) => t.name), result }));
await client.close();

// Makes one request with the official client named by the first argument, whose
// base address is in the environment or the second argument, and prints what came
// of it as one line of JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(process.env.PACKAGES + "/"));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const [which, base] = process.argv.slice(2);

const clients = {
	async openai() {
		const { default: OpenAI } = await load("openai");
		const client = new OpenAI({ apiKey: "sk-test", ...(base ? { baseURL: base } : {}) });
		const res = await client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "x" }] });
		return res.choices[0].message.content;
	},
	async "openai-stream"() {
		const { default: OpenAI } = await load("openai");
		const client = new OpenAI({ apiKey: "sk-test", ...(base ? { baseURL: base } : {}) });
		let text = "";
		for await (const e of await client.chat.completions.create({ model: "m", stream: true, messages: [{ role: "user", content: "x" }] })) {
			text += e.choices[0]?.delta?.content ?? "";
		}
		return text;
	},
	async anthropic() {
		const { default: Anthropic } = await load("@anthropic-ai/sdk");
		const client = new Anthropic({ apiKey: "sk-test", ...(base ? { baseURL: base } : {}) });
		const res = await client.messages.create({ model: "m", max_tokens: 1, messages: [{ role: "user", content: "x" }] });
		return res.content[0].text;
	},
	async "anthropic-stream"() {
		const { default: Anthropic } = await load("@anthropic-ai/sdk");
		const client = new Anthropic({ apiKey: "sk-test", ...(base ? { baseURL: base } : {}) });
		return client.messages.stream({ model: "m", max_tokens: 1, messages: [{ role: "user", content: "x" }] }).finalText();
	},
	async google() {
		const { GoogleGenAI } = await load("@google/genai");
		const client = new GoogleGenAI({ apiKey: "test", ...(base ? { httpOptions: { baseUrl: base } } : {}) });
		return (await client.models.generateContent({ model: "m", contents: "x" })).text;
	},
	async "google-stream"() {
		const { GoogleGenAI } = await load("@google/genai");
		const client = new GoogleGenAI({ apiKey: "test", ...(base ? { httpOptions: { baseUrl: base } } : {}) });
		let text = "";
		for await (const e of await client.models.generateContentStream({ model: "m", contents: "x" })) text += e.text ?? "";
		return text;
	},
	async fetch() {
		const res = await fetch(base, { method: "POST", body: "{}" });
		return `${res.status}`;
	},
};

const out = {};
try {
	out.text = await clients[which]();
} catch (e) {
	out.error = `${e.constructor.name} ${e.status ?? ""} ${e.message}`;
	out.status = e.status ?? null;
}
console.log(JSON.stringify(out));

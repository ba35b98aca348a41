// Drawbridge's extension for omp (@oh-my-pi/pi-coding-agent) and pi
// (@earendil-works/pi-coding-agent): it attaches the session to Drawbridge as a
// host of tools. The session dials Drawbridge's websocket and is the MCP server
// on it.
//
// In omp a call runs in the live Main session, behind the session's own approval
// settings: where omp asks, it asks here too, and Drawbridge is told that it does.
// In pi an extension cannot run another tool from outside a tool call; there the
// built-in tools are built anew, and the descriptions say so.
//
// It also keeps the session's model requests under Drawbridge's model switch. While
// models are denied, shadows stand in the place of the host's providers and refuse;
// below them, a fetch answers for the places where models do.
//
// Nothing of the host is bundled: its modules are imported from the host itself.
// The settings are in drawbridge.json beside this file, or where
// DRAWBRIDGE_HOST_CONFIG says: {"endpoint": FILE, "token": TEXT, "name": TEXT,
// "main": BOOL}. endpoint is the agent's endpoint.json, which says where it
// listens; "url" (ws://…/host) can stand in its place.
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

type Json = any;
type Settings = { endpoint?: string; url?: string; token: string; name?: string; main?: boolean };

const FIRST_WAIT = 1_000; // ms before the agent is dialled again
const LONGEST_WAIT = 30_000;
const REFUSED = 4003; // close codes of the agent
const REPLACED = 4009;
const INVALID = -32602;

/** RpcError is an answer that is a JSON-RPC error. */
class RpcError extends Error {
	constructor(
		readonly code: number,
		message: string,
	) {
		super(message);
	}
}

function settings(): Settings | undefined {
	const here = dirname(fileURLToPath(import.meta.url));
	const file = process.env.DRAWBRIDGE_HOST_CONFIG ?? join(here, "drawbridge.json");
	try {
		return JSON.parse(readFileSync(file, "utf8"));
	} catch {
		return undefined; // not set up: the extension does nothing
	}
}

/** address returns where the agent listens now, or undefined while it does not run. */
function address(s: Settings): string | undefined {
	if (s.url) return s.url;
	try {
		const file = (s.endpoint ?? "").replace(/^~(?=\/)/, homedir());
		const url = new URL(JSON.parse(readFileSync(file, "utf8")).url);
		return `ws://${url.host}/host`;
	} catch {
		return undefined;
	}
}

/** A Backend is how one kind of host lists and runs its tools. */
interface Backend {
	kind: string;
	list(): Promise<Json[]>;
	/** willAsk tells whether the host will ask somebody before it runs this call. */
	willAsk?(name: string, args: Json): Promise<boolean>;
	/** run answers with a tool result; a refusal is a result too. */
	run(id: string, name: string, args: Json, signal: AbortSignal, update: (u: Json) => void): Promise<Json>;
}

/** schemaOf returns the tool's own JSON Schema, whatever it was written in. */
async function schemaOf(tool: Json, wire?: (tool: Json) => Json): Promise<Json> {
	const p = tool.parameters ?? tool.inputSchema;
	if (p && typeof p === "object" && !("~standard" in p) && (p.type !== undefined || p.$ref || p.anyOf || p.properties)) return p;
	if (wire) {
		try {
			const schema = wire(tool);
			if (schema && typeof schema === "object") return schema;
		} catch {} // the next way may work
	}
	for (const method of ["toJsonSchema", "toJSONSchema"]) {
		try {
			const schema = p?.[method]?.();
			if (schema && typeof schema === "object") return schema;
		} catch {} // the next way may work
	}
	return { type: "object" };
}

/**
 * optional waits for a module of the host, or returns undefined where it has none.
 * The specifier must stand as a literal in the import: the host rewrites literals
 * to its own copies, and Bun would fetch a package of that name for anything else.
 */
async function optional(module: Promise<Json>): Promise<Json> {
	try {
		return await module;
	} catch {
		return undefined;
	}
}

/** validated holds arguments against the tool, as the host does before a model's call. */
function validated(validate: Json, tool: Json, id: string, name: string, args: Json): Json {
	return validate ? validate(tool, { type: "toolCall", id, name, arguments: args }) : args;
}

function ompBackend(pi: Json): Backend {
	const main = () => pi.pi.AgentRegistry.global().get("Main")?.session;
	// Imported at once: a call should not wait for it.
	const schema = optional(import("@oh-my-pi/pi-ai/utils/schema"));
	const validation = optional(import("@oh-my-pi/pi-ai/utils/validation"));
	const approvals = optional(import("@oh-my-pi/pi-coding-agent/tools/approval"));
	return {
		kind: "omp",
		async list() {
			const session = main();
			if (!session) throw new RpcError(-32000, "there is no Main session yet");
			const wire = (await schema)?.toolWireSchema;
			const out: Json[] = [];
			for (const { name } of pi.getAllTools()) {
				const tool = session.getToolByName(name);
				if (!tool) continue;
				out.push({ name, description: tool.description, inputSchema: await schemaOf(tool, wire) });
			}
			return out;
		},
		async willAsk(name, args) {
			const session = main();
			const tool = session?.getToolByName(name);
			const approval = await approvals;
			if (!tool || !approval) return false;
			const { approvalMode, userPolicies } = approval.resolveApprovalFromContext({ settings: session.settings });
			return approval.resolveApproval(tool, args, approvalMode, userPolicies).policy === "prompt";
		},
		async run(id, name, args, signal, update) {
			const tool = main()?.getToolByName(name);
			if (!tool) throw new RpcError(INVALID, `no tool ${name} in the Main session`);
			const validate = (await validation)?.validateToolArguments;
			return tool.execute(id, validated(validate, tool, id, name, args), signal, update);
		},
	};
}

function piBackend(ctx: Json): Backend {
	let tools: Promise<Map<string, Json>> | undefined;
	const ai = optional(import("@earendil-works/pi-ai"));
	const builtins = () =>
		(tools ??= (async () => {
			const host: Json = await import("@earendil-works/pi-coding-agent");
			const found = new Map<string, Json>();
			for (const make of ["Read", "Bash", "Edit", "Write", "Grep", "Find", "Ls"]) {
				const tool = host[`create${make}ToolDefinition`]?.(ctx.cwd);
				if (tool) found.set(tool.name, tool);
			}
			return found;
		})());
	return {
		kind: "pi",
		async list() {
			const out: Json[] = [];
			for (const tool of (await builtins()).values()) {
				out.push({
					name: tool.name,
					description: `${tool.description}\n\n(pi's built-in ${tool.name}, run beside the session: the session's own extensions and prompts do not see the call.)`,
					inputSchema: await schemaOf(tool),
				});
			}
			return out;
		},
		async run(id, name, args, signal, update) {
			const tool = (await builtins()).get(name);
			if (!tool) throw new RpcError(INVALID, `pi has no built-in tool ${name}`);
			const validate = (await ai)?.validateToolArguments;
			return tool.execute(id, validated(validate, tool, id, name, args), signal, update, ctx);
		},
	};
}

// ---- The model switch ------------------------------------------------------

type Refused = { layer: "providers" | "fetch"; provider: string; destination: string };

/** What the person reads. It has no word by which hosts tell that another try may help. */
const REFUSAL = "model use is switched off by the person at this machine (host_llm: deny)";

const NOT_COVERED = [
	"requests past the host's providers and past fetch: node:http, node:http2, https and websockets of tools, extensions and libraries in this process",
	"local models in this process, child processes with a network of their own, and the host's MCP servers",
	"a server elsewhere that redirects to a model host",
];

const NO_PROVIDERS =
	"the host's own providers: this version of the host has them where the extension does not find them, so that requests past fetch (omp's Cursor provider, AWS transports) are not refused";

const MOST_WAITING = 1_000; // refusals that wait to be told

/** Providers keeps one kind of host from its providers. */
interface Providers {
	/** load is called each time the host loads this extension, before there is a session. */
	load(pi: Json): void;
	/** cover takes in a session's registry of models; again it does nothing. */
	cover(registry: Json): void;
	/** follow is called when the mode has changed. */
	follow(): void;
	/** whole tells whether every provider is under the switch. */
	whole(): boolean;
	residuals: string[];
}

/** ModelSwitch answers model requests while models are denied. There is one in a process. */
class ModelSwitch {
	denied = true; // until something says otherwise
	private patterns: { text: string; fits: RegExp }[] = [];
	private inFlight = new AbortController();
	private waiting: Refused[] = [];
	/** registry is the session's model registry, whose addresses are models' too. */
	registry: Json;
	providers: Providers | undefined;
	/** tell takes a refusal to the agent, or returns false while it cannot. */
	tell: (r: Refused) => boolean = () => false;

	/** load takes over what the agent saved last: deny where that cannot be read. */
	load(s: Settings) {
		try {
			const file = join(dirname((s.endpoint ?? "").replace(/^~(?=\/)/, homedir())), "host-llm.json");
			const saved = JSON.parse(readFileSync(file, "utf8"));
			this.patterns = saved.model_hosts.map((text: string) => ({ text, fits: pattern(text) }));
			this.set(saved.v === 1 && saved.mode === "allow" ? "allow" : "deny");
		} catch {
			this.set("deny");
		}
	}

	/** set puts a mode in force, and tells what is; requests under way end at deny. */
	set(mode: string): Json {
		const denied = mode !== "allow";
		if (!denied && this.denied) this.inFlight = new AbortController();
		const ends = denied && !this.denied;
		this.denied = denied;
		this.providers?.follow();
		// Last: what ends is tried again at once, and must find the shadows.
		if (ends) this.inFlight.abort(new Error(REFUSAL));
		const whole = this.providers?.whole() ?? false;
		return {
			mode: denied ? "deny" : "allow",
			covers: whole ? ["providers", "fetch"] : ["fetch"],
			residuals: [...(whole ? (this.providers?.residuals ?? []) : [NO_PROVIDERS]), ...NOT_COVERED],
		};
	}

	/** ending returns a signal that also fires when models are denied. */
	ending(given?: AbortSignal): AbortSignal {
		return given ? AbortSignal.any([given, this.inFlight.signal]) : this.inFlight.signal;
	}

	/** wrap puts a fetch before the one that is there. */
	wrap() {
		const real = globalThis.fetch;
		const wrapped = async (input: Json, init?: Json): Promise<Response> => {
			const url = destination(input);
			const model = url && this.model(url);
			if (!model) return real(input, init);
			if (this.denied) {
				this.refused({ layer: "fetch", provider: model, destination: url.host });
				return refusal(url.hostname);
			}
			return real(input, { ...init, signal: this.ending(init?.signal ?? (input instanceof Request ? input.signal : undefined)) });
		};
		Object.assign(wrapped, real);
		// Bun's can connect in advance, which omp does to its model before there is a
		// registry to know it by. It only saves time, so at deny it does nothing.
		const preconnect = (real as Json).preconnect;
		if (preconnect) {
			(wrapped as Json).preconnect = (...args: Json[]) => (this.denied ? undefined : preconnect(...args));
		}
		globalThis.fetch = wrapped as typeof fetch;
	}

	/** model names what makes a destination a model's: a pattern, or an address in the registry. */
	private model(url: URL): string | undefined {
		if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
		const name = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
		const known = this.patterns.find((p) => p.fits.test(name));
		if (known) return known.text;
		for (const m of all(this.registry)) {
			try {
				if (m.baseUrl && new URL(m.baseUrl).host === url.host) return String(m.provider ?? url.host);
			} catch {} // no address: it cannot be this one
		}
		return undefined;
	}

	/** refuseProvider counts a request to a provider that a shadow refuses, and returns what the shadow answers. */
	refuseProvider(model: Json): Json {
		this.refused({ layer: "providers", provider: String(model?.provider ?? ""), destination: destination(model?.baseUrl ?? "")?.host ?? "" });
		return {
			api: model?.api,
			provider: model?.provider,
			model: model?.id,
			stopReason: "error",
			errorMessage: `400 ${REFUSAL}`,
			errorStatus: 400,
			timestamp: Date.now(),
		};
	}

	private refused(r: Refused) {
		if (!this.tell(r) && this.waiting.length < MOST_WAITING) this.waiting.push(r);
	}

	/** flush tells what was refused while the agent could not be told. */
	flush() {
		const waiting = this.waiting;
		this.waiting = [];
		for (const r of waiting) this.refused(r);
	}
}

/** refusedStream is what a shadow answers to a chat: one message that is an error. */
function refusedStream(error: Json): Json {
	const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
	const message = { role: "assistant", content: [], usage, ...error };
	return {
		async *[Symbol.asyncIterator]() {
			yield { type: "error", reason: "error", error: message };
		},
		result: async () => message,
	};
}

const DENIED = "drawbridge-denied"; // an api of omp's models, by which nothing is sent
const ORIGINAL = Symbol("original"); // of a shadow

/**
 * OmpProviders shadows the models of omp. A model says by its api how it is asked,
 * and omp asks it itself, wherever it got it. So whatever hands out a model hands
 * out its shadow while models are denied: the same model, with an api that refuses.
 * Nothing in the registry is changed, so that nothing has to be put back.
 */
class OmpProviders implements Providers {
	private readonly shadows = new WeakMap<object, Json>();
	private readonly covered = new WeakSet<object>();
	private registry: Json;
	residuals = [
		"a request that is under way when models are denied, and is not made by fetch (omp's Cursor provider): it comes to its end",
		"a model that a part of omp took before models were denied and keeps (an advisor, the list of --models): its requests are refused at fetch only",
	];

	constructor(
		private readonly models: ModelSwitch,
		private readonly host: Json,
	) {
		// Before there is a session, so that it begins with a shadow.
		this.wrap(host.ModelRegistry?.prototype);
	}

	cover(registry: Json) {
		this.registry = registry;
		if (registry) this.wrap(Object.getPrototypeOf(registry));
		this.follow();
	}

	/** load gives omp the api that refuses. omp forgets it when it loads extensions for another session. */
	load(pi: Json) {
		pi.registerProvider("drawbridge", { api: DENIED, streamSimple: (m: Json) => refusedStream(this.models.refuseProvider(m[ORIGINAL] ?? m)) });
	}

	/** wrap has every method of a class of registries hand out models as present says. */
	private wrap(proto: Json) {
		if (!proto || proto === Object.prototype || this.covered.has(proto)) return;
		this.covered.add(proto);
		const present = (v: Json) => this.present(v);
		for (const [name, d] of Object.entries(Object.getOwnPropertyDescriptors(proto))) {
			const method = d.value;
			if (name === "constructor" || typeof method !== "function") continue;
			proto[name] = function (this: Json, ...args: Json[]) {
				return present(method.apply(this, args.map((a) => a?.[ORIGINAL] ?? a)));
			};
		}
	}

	/** present returns models as the mode wants them, and everything else as it is. */
	private present(value: Json): Json {
		if (value instanceof Promise) return value.then((v) => this.present(v));
		if (Array.isArray(value)) return value.some((v) => this.one(v) !== v) ? value.map((v) => this.one(v)) : value;
		return this.one(value);
	}

	private one(value: Json): Json {
		if (!isModel(value) || (value.api === DENIED) === this.models.denied) return value;
		if (!this.models.denied) return value[ORIGINAL] ?? value;
		let shadow = this.shadows.get(value);
		if (!shadow) {
			const fixed = (v: Json) => ({ value: v, writable: true, enumerable: true, configurable: true });
			shadow = Object.create(Object.getPrototypeOf(value), {
				...Object.getOwnPropertyDescriptors(value),
				api: fixed(DENIED),
				// These lead past the api.
				transport: fixed(undefined),
				remoteCompaction: fixed(undefined),
				resolveHeaders: fixed(undefined),
				[ORIGINAL]: fixed(value), // also in copies that omp makes of it
			});
			this.shadows.set(value, shadow);
		}
		return shadow;
	}

	private sessions(): Json[] {
		return this.host.AgentRegistry.global().list().map((ref: Json) => ref.session).filter((s: Json) => s?.model);
	}

	/** follow gives every session its model anew. The public setModel would also write it into the session's history. */
	follow() {
		try {
			for (const session of this.sessions()) {
				const model = this.one(session.model);
				if (model !== session.model) session.agent.setModel(model);
			}
		} catch {} // whole tells
	}

	whole(): boolean {
		try {
			const models = [...all(this.registry), ...this.sessions().map((s) => s.model)];
			return this.registry !== undefined && this.covered.has(Object.getPrototypeOf(this.registry)) && models.every((m) => (m.api === DENIED) === this.models.denied);
		} catch {
			return false;
		}
	}
}

function isModel(v: Json): boolean {
	return typeof v === "object" && v !== null && typeof v.api === "string" && typeof v.provider === "string" && typeof v.id === "string";
}

/**
 * PiProviders shadows the providers of pi. pi looks a model's provider up for each
 * request, in one place; what it finds there is the provider's shadow, which asks
 * the switch.
 */
class PiProviders implements Providers {
	private readonly shadows = new WeakMap<object, Json>();
	private readonly covered = new WeakSet<object>();
	private found = false;
	residuals = [];

	constructor(private readonly models: ModelSwitch) {}

	load() {} // nothing is needed before there is a registry

	cover(registry: Json) {
		const list = registry?.runtime?.models;
		this.found = typeof list?.getProvider === "function" && typeof list.getProviders === "function";
		if (!this.found || this.covered.has(list)) return;
		this.covered.add(list);
		const { getProvider, getProviders } = list;
		list.getProvider = (id: string) => this.shadow(getProvider.call(list, id));
		list.getProviders = () => getProviders.call(list).map((p: Json) => this.shadow(p));
	}

	follow() {} // each request asks

	whole(): boolean {
		return this.found;
	}

	private shadow(provider: Json): Json {
		if (!provider) return provider;
		let shadow = this.shadows.get(provider);
		if (!shadow) {
			const ask =
				(method: string, answer: (error: Json) => Json, options: number) =>
				(...args: Json[]) => {
					if (this.models.denied) return answer(this.models.refuseProvider(args[0]));
					args[options] = { ...args[options], signal: this.models.ending(args[options]?.signal) };
					return provider[method](...args);
				};
			const requests: Record<string, Json> = {
				stream: ask("stream", refusedStream, 2),
				streamSimple: ask("streamSimple", refusedStream, 2),
				fetchDeferred: ask("fetchDeferred", refusedStream, 2),
				generateImages: ask("generateImages", async (error) => ({ output: [], ...error }), 2),
				classify: ask("classify", async (error) => ({ answers: {}, ...error }), 2),
			};
			shadow = new Proxy(provider, {
				get(target, name) {
					const value = target[name];
					if (typeof value !== "function") return value;
					return (typeof name === "string" && Object.hasOwn(requests, name) && requests[name]) || value.bind(target);
				},
			});
			this.shadows.set(provider, shadow);
		}
		return shadow;
	}
}

function destination(input: Json): URL | undefined {
	try {
		return new URL(typeof input === "string" ? input : input instanceof URL ? input.href : input.url);
	} catch {
		return undefined; // fetch itself says what is wrong
	}
}

/** all returns the models of a registry, of either kind of host. */
function all(registry: Json): Json[] {
	try {
		return registry?.getAll?.() ?? [];
	} catch {
		return [];
	}
}

/** pattern reads a pattern of model hosts: *. at the start is one part or more, * any characters but a dot. */
function pattern(text: string): RegExp {
	const more = text.startsWith("*.");
	const rest = (more ? text.slice(2) : text).replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", "[^.]*");
	return new RegExp(`^${more ? "([^.]+\\.)+" : ""}${rest}$`, "i");
}

/** refusal is the one answer after which every known client ends at once. */
function refusal(host: string): Response {
	const body = host.endsWith(".googleapis.com")
		? { error: { code: 400, message: REFUSAL, status: "FAILED_PRECONDITION" } }
		: { type: "error", error: { type: "invalid_request_error", message: REFUSAL, param: null, code: "host_llm_denied" } };
	return new Response(JSON.stringify(body), { status: 400, headers: { "content-type": "application/json", "x-should-retry": "false" } });
}

// ---- The attachment --------------------------------------------------------

/** Attachment keeps the session attached to the agent. */
class Attachment {
	private ws: WebSocket | undefined;
	private timer: ReturnType<typeof setTimeout> | undefined;
	private wait = FIRST_WAIT;
	private ended = false;
	private main: boolean;
	private readonly session = `${process.pid}-${Math.random().toString(36).slice(2)}`;
	private readonly running = new Map<string, AbortController>();

	constructor(
		private readonly s: Settings,
		private readonly backend: Backend,
		private readonly models: ModelSwitch,
		private readonly ctx: Json,
	) {
		this.main = s.main ?? true;
	}

	dial() {
		if (this.ended) return;
		const url = address(this.s);
		if (!url) return this.again();
		// A browser's WebSocket cannot set headers, and neither can every host's: the
		// token goes as a second subprotocol.
		const ws = new WebSocket(url, ["mcp-host", `bearer.${this.s.token}`]);
		this.ws = ws;
		ws.onopen = () =>
			this.send({
				jsonrpc: "2.0",
				method: "drawbridge/hello",
				params: {
					v: 1,
					kind: this.backend.kind,
					pid: process.pid,
					cwd: this.ctx.cwd,
					mode: String(this.ctx.mode ?? ""),
					session: this.session,
					main: this.main,
					...(this.s.name ? { name: this.s.name } : {}),
				},
			});
		ws.onmessage = (event: Json) => void this.receive(String(event.data));
		ws.onerror = () => {}; // onclose follows, and says more
		ws.onclose = (event: Json) => {
			for (const ac of this.running.values()) ac.abort();
			this.running.clear();
			if (event.code === REPLACED) return;
			if (event.code === REFUSED && this.main) {
				this.main = false; // another session is Main: come as one beside it
				this.wait = FIRST_WAIT;
			}
			this.again();
		};
	}

	private again() {
		if (this.ended) return;
		this.timer = setTimeout(() => this.dial(), this.wait);
		this.timer.unref?.();
		this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
	}

	private send(frame: Json) {
		if (this.ws?.readyState === WebSocket.OPEN) this.ws.send(JSON.stringify(frame));
	}

	private async receive(text: string) {
		let m: Json;
		try {
			m = JSON.parse(text);
		} catch {
			return;
		}
		if (m.method === "notifications/cancelled") {
			this.running.get(String(m.params?.requestId))?.abort();
			return;
		}
		if (m.method === undefined || m.id === undefined) return;
		try {
			const result = await this.answer(m);
			// A call that was cancelled is not answered.
			if (result !== undefined) this.send({ jsonrpc: "2.0", id: m.id, result });
		} catch (e: Json) {
			this.send({ jsonrpc: "2.0", id: m.id, error: { code: e instanceof RpcError ? e.code : -32603, message: String(e?.message ?? e) } });
		}
	}

	private async answer(m: Json): Promise<Json> {
		switch (m.method) {
			case "initialize":
				this.wait = FIRST_WAIT;
				return {
					protocolVersion: "2025-11-25",
					capabilities: {
						tools: { listChanged: true },
						...(this.backend.willAsk ? { experimental: { "drawbridge/willAsk": {} } } : {}),
					},
					serverInfo: { name: this.backend.kind, version: "1" },
				};
			case "ping":
				return {};
			case "tools/list":
				return { tools: await this.backend.list() };
			case "tools/call":
				return this.call(m);
			case "drawbridge/hostLlm": {
				const now = this.models.set(String(m.params?.mode));
				this.models.flush();
				return now;
			}
			case "drawbridge/willAsk":
				return { asks: (await this.backend.willAsk?.(m.params?.name, m.params?.arguments ?? {})) ?? false };
		}
		throw new RpcError(-32601, `no method ${m.method}`);
	}

	private async call(m: Json): Promise<Json> {
		const ac = new AbortController();
		const id = String(m.id);
		this.running.set(id, ac);
		const progressToken = m.params?._meta?.progressToken;
		let n = 0;
		const update = (u: Json) => {
			if (progressToken === undefined) return;
			const text = (u?.content ?? []).findLast?.((c: Json) => c.type === "text")?.text;
			this.send({
				jsonrpc: "2.0",
				method: "notifications/progress",
				params: { progressToken, progress: ++n, ...(text ? { message: String(text).slice(-500) } : {}) },
			});
		};
		try {
			const r = await this.backend.run(callId(id), m.params?.name, m.params?.arguments ?? {}, ac.signal, update);
			if (ac.signal.aborted) return undefined;
			return { content: r?.content ?? [], ...(r?.isError ? { isError: true } : {}) };
		} catch (e: Json) {
			if (ac.signal.aborted) return undefined;
			if (e instanceof RpcError) throw e;
			// Refusals and arguments that do not fit are for the model to read.
			return { content: [{ type: "text", text: String(e?.message ?? e) }], isError: true };
		} finally {
			this.running.delete(id);
		}
	}

	/** asking tells the agent that the host itself waits for somebody, or no longer does. */
	asking(toolCallId: string, what: string) {
		const id = ownCall(toolCallId);
		if (id !== undefined && this.running.has(id)) {
			this.send({ jsonrpc: "2.0", method: "drawbridge/asking", params: { requestId: Number(id), what } });
		}
	}

	/** refused tells the agent of a model request that was refused here. */
	refused(r: Refused): boolean {
		if (this.ws?.readyState !== WebSocket.OPEN) return false;
		this.send({ jsonrpc: "2.0", method: "drawbridge/hostLlmRefused", params: r });
		return true;
	}

	changed() {
		this.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
	}

	end() {
		this.ended = true;
		clearTimeout(this.timer);
		for (const ac of this.running.values()) ac.abort();
		this.ws?.close(1000);
	}
}

const CALL = "drawbridge_";
const callId = (id: string) => CALL + id;
const ownCall = (toolCallId: string) => (toolCallId?.startsWith(CALL) ? toolCallId.slice(CALL.length) : undefined);

const SWITCH = Symbol.for("drawbridge.model-switch");

/** theSwitch returns the process's one: the host calls this extension again for each session that it starts. */
function theSwitch(s: Settings, pi: Json): ModelSwitch {
	const shared = globalThis as Json;
	if (!shared[SWITCH]) {
		const models: ModelSwitch = new ModelSwitch();
		models.load(s);
		models.wrap();
		models.providers = pi.pi?.AgentRegistry ? new OmpProviders(models, pi.pi) : new PiProviders(models);
		shared[SWITCH] = models;
	}
	return shared[SWITCH];
}

/** beside tells whether a session is one that omp's Main session has started. */
function beside(pi: Json, ctx: Json): boolean {
	const main = pi.pi?.AgentRegistry?.global().get("Main")?.session;
	return main !== undefined && main !== null && main.sessionManager !== ctx.sessionManager;
}

export default function (pi: Json) {
	const s = settings();
	if (!s) return;
	let attachment: Attachment | undefined;
	const models = theSwitch(s, pi);
	models.providers?.load(pi);
	pi.on("session_start", (_event: Json, ctx: Json) => {
		models.providers?.cover(ctx.modelRegistry);
		if (beside(pi, ctx)) return;
		models.registry = ctx.modelRegistry;
		attachment?.end();
		const mine = new Attachment(s, pi.pi?.AgentRegistry ? ompBackend(pi) : piBackend(ctx), models, ctx);
		attachment = mine;
		models.tell = (r) => mine.refused(r);
		mine.dial();
	});
	pi.on("session_shutdown", () => attachment?.end());
	if (pi.pi?.AgentRegistry) {
		pi.on("tool_approval_requested", (e: Json) => attachment?.asking(e.toolCallId, `${e.toolName}${e.reason ? `: ${e.reason}` : ""}`));
		pi.on("tool_approval_resolved", (e: Json) => attachment?.asking(e.toolCallId, ""));
	}
}

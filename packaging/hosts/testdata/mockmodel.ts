// A provider that omp and pi can start with: they do not without a model. Where
// MOCK_BASE is not set, nothing answers for it. MOCK_SPARE is the address of a
// second one, MOCK_LATE that of one that comes late, when the session has begun.
import { existsSync, rmSync } from "node:fs";

export default function (pi: any) {
	const provider = {
		baseUrl: process.env.MOCK_BASE ?? "http://127.0.0.1:9/v1",
		apiKey: "none",
		api: "openai-completions",
		models: [
			{
				id: "m",
				name: "m",
				reasoning: false,
				input: ["text"],
				cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
				contextWindow: 128000,
				maxTokens: 4096,
			},
		],
	};
	pi.registerProvider("mock", provider);
	if (process.env.MOCK_SPARE) pi.registerProvider("spare", { ...provider, baseUrl: process.env.MOCK_SPARE });
	if (process.env.MOCK_LATE) {
		pi.on("session_start", async (_event: any, ctx: any) => {
			pi.registerProvider("late", { ...provider, baseUrl: process.env.MOCK_LATE });
			const model = ctx.modelRegistry.find("late", "m");
			if (model) await pi.setModel(model);
		});
	}
	// Has pi keep its providers in another place than it does.
	if (process.env.MOCK_HIDE) {
		pi.on("session_start", (_event: any, ctx: any) => {
			const hidden = (runtime: any, name: string) => (typeof runtime[name] === "function" ? runtime[name].bind(runtime) : runtime[name]);
			ctx.modelRegistry.runtime = new Proxy(ctx.modelRegistry.runtime, { get: (runtime, name: string) => (name === "models" ? undefined : hidden(runtime, name)) });
		});
	}
	// Wakes an idle session when a file appears, as an extension with jobs of its own does.
	const file = process.env.MOCK_WAKE;
	if (file) {
		const seen = setInterval(() => {
			if (!existsSync(file)) return;
			rmSync(file);
			pi.sendMessage({ customType: "job", content: "the job has finished", display: true }, { triggerTurn: true });
		}, 50);
		seen.unref();
		pi.on("session_shutdown", () => clearInterval(seen));
	}
}

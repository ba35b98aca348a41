// A provider that omp and pi can start with: they do not without a model. Where
// MOCK_BASE is not set, nothing answers for it. A second one comes late, when the
// session has begun.
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
	if (process.env.MOCK_LATE) {
		pi.on("session_start", async (_event: any, ctx: any) => {
			pi.registerProvider("late", { ...provider, baseUrl: process.env.MOCK_LATE });
			const model = ctx.modelRegistry.find("late", "m");
			if (model) await pi.setModel(model);
		});
	}
}

// A provider that nothing answers for: omp and pi do not start without a model,
// and these tests call none.
export default function (pi: any) {
	pi.registerProvider("mock", {
		baseUrl: "http://127.0.0.1:9/v1",
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
	});
}

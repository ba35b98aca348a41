package hostllm

// modelHosts are the known places where models answer. More can be named in the
// configuration. Only names that serve models stand here: refusing a vendor's
// whole domain would break logins and downloads. Last gone through on 2026-11-30.
var modelHosts = []string{
	// Anthropic
	"api.anthropic.com", "*.api.anthropic.com",
	// OpenAI; Codex with a ChatGPT account talks to chatgpt.com
	"api.openai.com", "*.api.openai.com", "chatgpt.com",
	// Google
	"generativelanguage.googleapis.com", "aiplatform.googleapis.com", "*-aiplatform.googleapis.com",
	"cloudcode-pa.googleapis.com", "*-cloudcode-pa.googleapis.com", "*-cloudcode-pa.sandbox.googleapis.com",
	// Amazon
	"bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com", "bedrock-runtime.*.api.aws", "bedrock-mantle.*.api.aws",
	// Microsoft and GitHub
	"*.openai.azure.com", "*.services.ai.azure.com", "*.cognitiveservices.azure.com", "*.inference.ai.azure.com", "*.models.ai.azure.com",
	"models.inference.ai.azure.com", "models.github.ai", "api.githubcopilot.com", "*.githubcopilot.com", "copilot-proxy.githubusercontent.com",
	// Routers
	"openrouter.ai", "*.openrouter.ai", "ai-gateway.vercel.sh", "gateway.ai.cloudflare.com", "router.huggingface.co",
	"api-inference.huggingface.co", "*.endpoints.huggingface.cloud", "opencode.ai", "api.kilo.ai", "nano-gpt.com", "api.requesty.ai", "router.requesty.ai",
	// Others
	"api.deepseek.com", "api.mistral.ai", "codestral.mistral.ai", "api.groq.com", "api.x.ai", "*.api.x.ai",
	"api.cohere.com", "api.cohere.ai", "api.together.xyz", "api.together.ai", "api.fireworks.ai", "api.perplexity.ai",
	"api.cerebras.ai", "api.sambanova.ai", "integrate.api.nvidia.com", "api.deepinfra.com", "api.novita.ai", "api.hyperbolic.xyz",
	"inference.baseten.co", "api.venice.ai", "api.synthetic.new", "api.ai21.com", "api.inceptionlabs.ai",
	"api.moonshot.ai", "api.moonshot.cn", "api.kimi.com", "api.minimax.io", "api.minimaxi.com", "api.z.ai", "open.bigmodel.cn",
	"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "coding.dashscope.aliyuncs.com",
	"ark.*.volces.com", "ark.*.bytepluses.com", "qianfan.baidubce.com", "api.siliconflow.cn", "api.siliconflow.com", "api.stepfun.com",
	"api.xiaomimimo.com", "api.hunyuan.cloud.tencent.com",
	"*.cursor.sh", "ollama.com",
}

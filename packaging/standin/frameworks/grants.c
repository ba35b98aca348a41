/* What a process may do (CGEvent.h, CGWindow.h's neighbour CGDirectDisplay.h,
 * AXUIElement.h): to look asks nobody; to request prompts the person, where the
 * grant is missing, and reports whether it is there, at once.
 *
 * The grant for pictures may count although macOS does not say so yet, to a process
 * that was there before it (stablyai/orca#10372): the setting preflight plays it. */
#include "standin.h"

static bool setting(bool *b) {
	pthread_mutex_lock(&standin_lock);
	bool v = *b;
	pthread_mutex_unlock(&standin_lock);
	return v;
}
static bool request(const char *name, bool *b) {
	pthread_mutex_lock(&standin_lock);
	bool v = *b;
	if (!v) standin_note("prompt %s", name);
	pthread_mutex_unlock(&standin_lock);
	return v;
}
API bool CGPreflightPostEventAccess(void) { return setting(&standin.post); }
API bool CGRequestPostEventAccess(void) { return request("post", &standin.post); }
API bool CGPreflightListenEventAccess(void) { return setting(&standin.listen); }
API bool CGRequestListenEventAccess(void) { return request("listen", &standin.listen); }
API bool CGPreflightScreenCaptureAccess(void) { return setting(&standin.screen) && setting(&standin.preflight); }
API bool CGRequestScreenCaptureAccess(void) { return request("screen", &standin.screen); }
API unsigned char AXIsProcessTrusted(void) { return setting(&standin.trusted); }

API const void *CFDictionaryGetValue(const void *dict, const void *key);
API unsigned char CFBooleanGetValue(const void *b);
API const void *kAXTrustedCheckOptionPrompt;
__attribute__((constructor)) static void keys(void) { kAXTrustedCheckOptionPrompt = standin_string("AXTrustedCheckOptionPrompt"); }
/* AXUIElement.h: the person is asked only where the options say so. */
API unsigned char AXIsProcessTrustedWithOptions(const void *options) {
	const void *prompt = options ? CFDictionaryGetValue(options, kAXTrustedCheckOptionPrompt) : NULL;
	return prompt && CFBooleanGetValue(prompt) ? request("trusted", &standin.trusted) : setting(&standin.trusted);
}

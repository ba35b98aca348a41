/* The Keychain as far as it is used: generic passwords by service and account,
 * with the rule of who may reach them.
 *
 * The rule is that of "Access Control Lists" in Apple's documentation of
 * Keychain Services: an item that SecItemAdd makes trusts the program that made
 * it and no other; before another one reads it, the person is asked. Where
 * SecKeychainSetUserInteractionAllowed(false) forbids the question, the answer is
 * errSecInteractionNotAllowed (SecKeychain.h); otherwise the person here says no,
 * which is errSecAuthFailed (SecBase.h). Another program may see that an item is
 * there and what it is called, and no more: the list of who is trusted guards what
 * an item holds, not its attributes. SecItem.h: for kSecReturnAttributes with
 * kSecMatchLimitAll the result is an array of dictionaries. A program is known by its code, as one is that is signed ad
 * hoc. Whether a Mac lets another program delete an item is not known here; it is
 * refused like the rest. */
#define _GNU_SOURCE
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { success = 0, param = -50, auth_failed = -25293, duplicate = -25299, not_found = -25300, not_allowed = -25308 };

#define NAMES(X) X(kSecClass) X(kSecClassGenericPassword) X(kSecAttrService) X(kSecAttrAccount) X(kSecAttrLabel) \
	X(kSecValueData) X(kSecReturnData) X(kSecReturnAttributes) X(kSecMatchLimit) X(kSecMatchLimitAll)
#define DECLARE(name) API const void *name;
NAMES(DECLARE)
__attribute__((constructor)) static void names(void) {
#define SET(name) name = standin_string(#name);
	NAMES(SET)
}

static bool interaction = true;
API int32_t SecKeychainSetUserInteractionAllowed(unsigned char allowed) {
	interaction = allowed;
	return success;
}

API const void *SecCopyErrorMessageString(int32_t status, void *reserved) {
	const char *text = status == auth_failed ? "The user name or passphrase you entered is not correct."
		: status == duplicate ? "The specified item already exists in the keychain."
		: status == not_found ? "The specified item could not be found in the keychain."
		: status == not_allowed ? "User interaction is not allowed." : "One or more parameters passed to the function were not valid.";
	return CFStringCreateWithCString(NULL, text, 0);
}

/* The code of this program, as a hash (FNV-1a over words). */
static uint64_t self(void) {
	static uint64_t code;
	if (code) return code;
	FILE *f = fopen("/proc/self/exe", "re");
	if (!f) abort();
	uint64_t h = 14695981039346656037u, words[1024];
	for (size_t n; (n = fread(words, 1, sizeof words, f)) > 0;) {
		memset((char *)words + n, 0, sizeof words - n);
		for (size_t i = 0; i * sizeof *words < n; i++) h = (h ^ words[i]) * 1099511628211u;
	}
	fclose(f);
	return code = h ? h : 1;
}

struct item { char service[256], account[1024], data[512]; uint64_t owner; };
struct items { struct item *all; int n; FILE *f; };

/* The items are in the file of the setting keychain, one a line, so that they
 * outlive the program; without one they are gone with it. */
static struct items kept;
static struct items *items(void) {
	if (!*standin.keychain) return &kept;
	struct items *s = calloc(1, sizeof *s);
	if (!(s->f = fopen(standin.keychain, "a+e"))) abort();
	flock(fileno(s->f), LOCK_EX);
	rewind(s->f);
	struct item it;
	while (fscanf(s->f, "%255[^\t]\t%1023[^\t]\t%511[^\t]\t%lu\n", it.service, it.account, it.data, &it.owner) == 4) {
		s->all = realloc(s->all, (s->n + 1) * sizeof it);
		s->all[s->n++] = it;
	}
	return s;
}
static void done(struct items *s, bool changed) {
	if (!s->f) return;
	if (changed) {
		if (ftruncate(fileno(s->f), 0)) abort();
		for (int i = 0; i < s->n; i++)
			fprintf(s->f, "%s\t%s\t%s\t%lu\n", s->all[i].service, s->all[i].account, s->all[i].data, s->all[i].owner);
	}
	fclose(s->f); /* and the lock is gone */
	free(s->all);
	free(s);
}

static struct item *find(struct items *s, const void *query) {
	const char *service = standin_chars(CFDictionaryGetValue(query, kSecAttrService));
	const char *account = standin_chars(CFDictionaryGetValue(query, kSecAttrAccount));
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->all[i].service, service) && !strcmp(s->all[i].account, account)) return &s->all[i];
	return NULL;
}
static bool query_ok(const void *query) {
	return CFDictionaryGetValue(query, kSecClass) == kSecClassGenericPassword && CFDictionaryGetValue(query, kSecAttrService) &&
		CFDictionaryGetValue(query, kSecAttrAccount);
}
static int32_t may(const struct item *it) {
	if (!standin.keylock && it->owner == self()) return success;
	return interaction ? auth_failed : not_allowed;
}

API int32_t SecItemAdd(const void *attributes, const void **result) {
	const void *data = CFDictionaryGetValue(attributes, kSecValueData);
	if (!query_ok(attributes) || !data || CFDataGetLength(data) > 255) return param;
	pthread_mutex_lock(&standin_lock);
	struct items *s = items();
	int32_t status = standin.keylock ? not_allowed : find(s, attributes) ? duplicate : success;
	if (status == success) {
		struct item it = {.owner = self()};
		snprintf(it.service, sizeof it.service, "%s", standin_chars(CFDictionaryGetValue(attributes, kSecAttrService)));
		snprintf(it.account, sizeof it.account, "%s", standin_chars(CFDictionaryGetValue(attributes, kSecAttrAccount)));
		char *to = it.data;
		*to++ = '.'; /* so that there is something to scan */
		for (long i = 0; i < CFDataGetLength(data); i++) to += sprintf(to, "%02x", ((const unsigned char *)CFDataGetBytePtr(data))[i]);
		s->all = realloc(s->all, (s->n + 1) * sizeof it);
		s->all[s->n++] = it;
	}
	done(s, status == success);
	pthread_mutex_unlock(&standin_lock);
	return status;
}

/* All of a service, by what they are called. */
static int32_t list(const void *query, const void **result) {
	const void *service = CFDictionaryGetValue(query, kSecAttrService);
	if (CFDictionaryGetValue(query, kSecClass) != kSecClassGenericPassword || !service || CFDictionaryGetValue(query, kSecAttrAccount) ||
		CFDictionaryGetValue(query, kSecReturnAttributes) != kCFBooleanTrue) return param;
	void *found = standin_array();
	int n = 0;
	pthread_mutex_lock(&standin_lock);
	struct items *s = items();
	for (int i = 0; i < s->n; i++) {
		if (strcmp(s->all[i].service, standin_chars(service))) continue;
		void *d = CFDictionaryCreateMutable(NULL, 0, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
		CFDictionarySetValue(d, kSecAttrAccount, CFStringCreateWithCString(NULL, s->all[i].account, 0));
		standin_append(found, d);
		n++;
	}
	done(s, false);
	pthread_mutex_unlock(&standin_lock);
	*result = found;
	return n ? success : not_found;
}

API int32_t SecItemCopyMatching(const void *query, const void **result) {
	if (CFDictionaryGetValue(query, kSecMatchLimit) == kSecMatchLimitAll) return list(query, result);
	if (!query_ok(query)) return param;
	pthread_mutex_lock(&standin_lock);
	struct items *s = items();
	struct item *it = find(s, query);
	int32_t status = it ? success : not_found;
	if (it && CFDictionaryGetValue(query, kSecReturnData) == kCFBooleanTrue && (status = may(it)) == success) {
		long n = (strlen(it->data) - 1) / 2;
		unsigned char *bytes = malloc(n + 1);
		for (long i = 0; i < n; i++) sscanf(it->data + 1 + 2 * i, "%2hhx", &bytes[i]);
		*result = CFDataCreate(NULL, bytes, n);
		free(bytes);
	}
	done(s, false);
	pthread_mutex_unlock(&standin_lock);
	return status;
}

API int32_t SecItemDelete(const void *query) {
	if (!query_ok(query)) return param;
	pthread_mutex_lock(&standin_lock);
	struct items *s = items();
	struct item *it = find(s, query);
	int32_t status = it ? may(it) : not_found;
	if (status == success) *it = s->all[--s->n];
	done(s, status == success);
	pthread_mutex_unlock(&standin_lock);
	return status;
}

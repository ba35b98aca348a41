/* Power management as far as it is used: assertions that keep the display awake.
 *
 * Semantics are those of IOPMLib.h: an assertion has a type, a level and a name, and
 * an id that is never 0 (kIOPMNullAssertionID); one that is made is held until it
 * is released as often as it was made; the level off asks for nothing. The errors
 * are those of IOReturn.h. That powerd drops what a dead process held needs nothing
 * here: the assertions are this process's and end with it. Each that is made and
 * released is noted. The setting power=0 has them refused. */
#include "standin.h"
#include <string.h>

enum { success = 0, bad_argument = 0xe00002c2, not_permitted = 0xe00002e2, not_found = 0xe00002f0, level_on = 255 };

static uint32_t ids[64]; /* of those that are held; guarded by standin_lock */
static uint32_t last = 0x8000;

API int32_t IOPMAssertionCreateWithName(const void *type, uint32_t level, const void *name, uint32_t *id) {
	if (!type || !name || !id || (level != 0 && level != level_on) || strcmp(standin_chars(type), "PreventUserIdleDisplaySleep")) return bad_argument;
	int32_t status = not_permitted;
	pthread_mutex_lock(&standin_lock);
	for (int i = 0; !standin.unpowered && i < 64 && status; i++) {
		if (ids[i]) continue;
		ids[i] = *id = ++last, status = success;
		standin_note("awake %s: %s", level ? "held" : "not held", standin_chars(name));
	}
	pthread_mutex_unlock(&standin_lock);
	return status;
}

API int32_t IOPMAssertionRelease(uint32_t id) {
	int32_t status = not_found;
	pthread_mutex_lock(&standin_lock);
	for (int i = 0; id && i < 64 && status; i++) {
		if (ids[i] != id) continue;
		ids[i] = 0, status = success;
		standin_note("awake given back");
	}
	pthread_mutex_unlock(&standin_lock);
	return status;
}

/* Core Foundation as far as it is used: counted objects, the main loop, and
 * dispatch's main queue. Semantics are those of CFBase.h, CFString.h, CFNumber.h,
 * CFDictionary.h, CFData.h, CFRunLoop.h and dispatch/queue.h. */
#define _GNU_SOURCE
#include "loops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct string { struct object o; char *s; };
struct number { struct object o; int64_t n; double f; };
struct dictionary { struct object o; int n; const void *keys[8], *values[8]; };
struct array { struct object o; long n; const void *values[64]; };
struct rect { struct object o; double r[4]; };
struct data { struct object o; long n; const void *bytes; };

void *standin_new(int kind, unsigned long size) {
	struct object *o = calloc(1, size);
	o->kind = kind, o->refs = 1;
	return o;
}
const char *standin_chars(const void *s) { return s ? ((const struct string *)s)->s : ""; }

/* Constant strings have one address each, as CFSTR's have. */
const void *standin_string(const char *s) {
	static struct string *all[256];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	int i = 0;
	while (all[i] && strcmp(all[i]->s, s)) i++;
	if (!all[i]) {
		all[i] = standin_new(KIND_STRING, sizeof *all[i]);
		all[i]->s = strdup(s);
	}
	pthread_mutex_unlock(&lock);
	return all[i];
}

API const void *CFRetain(const void *p) {
	__atomic_add_fetch(&((struct object *)p)->refs, 1, __ATOMIC_SEQ_CST);
	return p;
}
/* CFBase.h: to release NULL crashes, and so does to release too often. */
API void CFRelease(const void *p) {
	struct object *o = (struct object *)p;
	int refs = __atomic_sub_fetch(&o->refs, 1, __ATOMIC_SEQ_CST);
	if (refs < 0) fprintf(stderr, "standin: an object of kind %d was released too often\n", o->kind), abort();
	if (refs > 0) return;
	if (o->kind == KIND_IMAGE) free(((struct image *)o)->pixels);
	if (o->kind == KIND_STRING) free(((struct string *)o)->s);
	if (o->kind == KIND_DICTIONARY)
		for (int i = 0; i < ((struct dictionary *)o)->n; i++) CFRelease(((struct dictionary *)o)->values[i]);
	if (o->kind == KIND_ARRAY)
		for (long i = 0; i < ((struct array *)o)->n; i++) CFRelease(((struct array *)o)->values[i]);
	o->refs = -1000; /* kept, so that a second release is seen */
}
API unsigned long CFGetTypeID(const void *p) { return ((const struct object *)p)->kind; }
API unsigned long CFBooleanGetTypeID(void) { return KIND_BOOLEAN; }
API unsigned long CFNumberGetTypeID(void) { return KIND_NUMBER; }

API const void *CFStringCreateWithCString(const void *alloc, const char *s, uint32_t encoding) {
	struct string *o = standin_new(KIND_STRING, sizeof *o);
	o->s = strdup(s);
	return o;
}
API unsigned char CFStringGetCString(const void *s, char *buf, long size, uint32_t encoding) {
	if ((long)strlen(standin_chars(s)) >= size) return 0;
	strcpy(buf, standin_chars(s));
	return 1;
}
API unsigned char CFEqual(const void *a, const void *b) {
	return a == b || (a && b && CFGetTypeID(a) == KIND_STRING && CFGetTypeID(b) == KIND_STRING && !strcmp(standin_chars(a), standin_chars(b)));
}
static void *number(int kind, int64_t n) {
	struct number *o = standin_new(kind, sizeof *o);
	o->n = n, o->f = n;
	return o;
}
API const void *kCFBooleanTrue;
__attribute__((constructor)) static void booleans(void) { kCFBooleanTrue = number(KIND_BOOLEAN, 1); }
void *standin_double(double n) {
	struct number *o = standin_new(KIND_NUMBER, sizeof *o);
	o->n = n, o->f = n;
	return o;
}
API unsigned long CFStringGetTypeID(void) { return KIND_STRING; }
/* In UTF-16 units. */
API long CFStringGetLength(const void *s) {
	long n = 0;
	for (const unsigned char *c = (const unsigned char *)standin_chars(s); *c; c++) n += (*c & 0xc0) != 0x80 ? 1 + (*c >= 0xf0) : 0;
	return n;
}
API unsigned char CFBooleanGetValue(const void *b) { return ((const struct number *)b)->n != 0; }
API unsigned char CFNumberGetValue(const void *n, long type, void *value) {
	if (type == 13) { /* kCFNumberDoubleType */
		*(double *)value = ((const struct number *)n)->f;
		return 1;
	}
	if (type != 4) return 0; /* kCFNumberSInt64Type */
	*(int64_t *)value = ((const struct number *)n)->n;
	return 1;
}
API const void *CFDictionaryGetValue(const void *dict, const void *key) {
	const struct dictionary *d = dict;
	for (int i = 0; i < d->n; i++)
		if (CFEqual(d->keys[i], key)) return d->values[i];
	return NULL;
}
/* CFDictionary.h: with the callbacks for objects a dictionary keeps what is in it.
 * The keys that are used are constants, which last for ever. */
API int kCFTypeDictionaryKeyCallBacks, kCFTypeDictionaryValueCallBacks;
API void *CFDictionaryCreateMutable(const void *alloc, long capacity, const void *keys, const void *values) {
	if (keys != &kCFTypeDictionaryKeyCallBacks || values != &kCFTypeDictionaryValueCallBacks) abort();
	return standin_new(KIND_DICTIONARY, sizeof(struct dictionary));
}
API void CFDictionarySetValue(void *dict, const void *key, const void *value) {
	struct dictionary *d = dict;
	if (d->n == 8 || CFDictionaryGetValue(d, key)) abort();
	d->keys[d->n] = key, d->values[d->n++] = CFRetain(value);
}
API void *CFDictionaryCreate(const void *alloc, const void **keys, const void **values, long n, const void *key_calls, const void *value_calls) {
	if (n > 8 || key_calls != &kCFTypeDictionaryKeyCallBacks || value_calls != &kCFTypeDictionaryValueCallBacks) abort();
	struct dictionary *d = standin_new(KIND_DICTIONARY, sizeof *d);
	for (; d->n < n; d->n++) d->keys[d->n] = keys[d->n], d->values[d->n] = CFRetain(values[d->n]);
	return d;
}
API long CFArrayGetCount(const void *a) { return ((const struct array *)a)->n; }
API const void *CFArrayGetValueAtIndex(const void *a, long i) { return ((const struct array *)a)->values[i]; }
void *standin_array(void) { return standin_new(KIND_ARRAY, sizeof(struct array)); }
void standin_append(void *array, const void *value) {
	struct array *a = array;
	if (a->n == 64) abort();
	a->values[a->n++] = value;
}

/* CGWindow.h: from front to back; the name is missing without the grant for
 * screen recording. CGGeometry.h: a dictionary that stands for a rectangle. */
API const void *kCGWindowOwnerName, *kCGWindowOwnerPID, *kCGWindowName, *kCGWindowLayer, *kCGWindowBounds;
__attribute__((constructor)) static void window_keys(void) {
	kCGWindowOwnerName = standin_string("kCGWindowOwnerName"), kCGWindowName = standin_string("kCGWindowName");
	kCGWindowOwnerPID = standin_string("kCGWindowOwnerPID");
	kCGWindowLayer = standin_string("kCGWindowLayer"), kCGWindowBounds = standin_string("kCGWindowBounds");
}
void *standin_windows(void) { return standin_array(); }
void standin_window(void *list, const char *owner, int pid, const char *name, int layer, double x, double y, double w, double h) {
	struct array *a = list;
	if (a->n == 64) return;
	struct dictionary *d = standin_new(KIND_DICTIONARY, sizeof *d);
	struct rect *r = standin_new(KIND_OTHER, sizeof *r);
	memcpy(r->r, (double[]){x, y, w, h}, sizeof r->r);
	d->keys[d->n] = kCGWindowOwnerName, d->values[d->n++] = CFStringCreateWithCString(NULL, owner, 0);
	d->keys[d->n] = kCGWindowOwnerPID, d->values[d->n++] = number(KIND_NUMBER, pid);
	if (name) d->keys[d->n] = kCGWindowName, d->values[d->n++] = CFStringCreateWithCString(NULL, name, 0);
	d->keys[d->n] = kCGWindowLayer, d->values[d->n++] = number(KIND_NUMBER, layer);
	d->keys[d->n] = kCGWindowBounds, d->values[d->n++] = r;
	a->values[a->n++] = d;
}
API bool CGRectMakeWithDictionaryRepresentation(const void *dict, double *rect) {
	memcpy(rect, ((const struct rect *)dict)->r, 4 * sizeof *rect);
	return true;
}
API const void *CFDataGetBytePtr(const void *data) { return ((const struct data *)data)->bytes; }
API long CFDataGetLength(const void *data) { return ((const struct data *)data)->n; }
void *standin_data(const void *bytes, long n) {
	struct data *o = standin_new(KIND_DATA, sizeof *o);
	o->bytes = bytes, o->n = n;
	return o;
}
API const void *CFDataCreate(const void *alloc, const unsigned char *bytes, long n) {
	unsigned char *copy = malloc(n + 1); /* kept, as data is that has been given back */
	if (n) memcpy(copy, bytes, n);
	return standin_data(copy, n);
}

/* CGSession.h: the dictionary of the session, NULL where there is none. The lock
 * and the holder of secure input have the names that the window server gives
 * them (ioreg -n Root -d1 lists both under IOConsoleUsers). */
API void *CGSessionCopyCurrentDictionary(void) {
	pthread_mutex_lock(&standin_lock);
	struct settings s = standin;
	pthread_mutex_unlock(&standin_lock);
	if (!s.graphic) return NULL;
	struct dictionary *d = standin_new(KIND_DICTIONARY, sizeof *d);
	d->keys[d->n] = standin_string("kCGSSessionOnConsoleKey"), d->values[d->n++] = number(KIND_BOOLEAN, s.console);
	if (s.locked) d->keys[d->n] = standin_string("CGSSessionScreenIsLocked"), d->values[d->n++] = number(KIND_BOOLEAN, 1);
	if (s.secure) d->keys[d->n] = standin_string("kCGSSessionSecureInputPID"), d->values[d->n++] = number(KIND_NUMBER, s.secure);
	return d;
}

/* sysctl(3) of macOS: the version and build are strings; -1 where there is no such
 * name, or no room. */
API int sysctlbyname(const char *name, void *old, size_t *size, void *value, size_t length) {
	char text[64] = "24B83";
	if (!strcmp(name, "kern.osproductversion")) {
		pthread_mutex_lock(&standin_lock);
		strcpy(text, standin.macos);
		pthread_mutex_unlock(&standin_lock);
	} else if (strcmp(name, "kern.osversion")) return -1;
	if (strlen(text) >= *size) return -1;
	strcpy(old, text);
	*size = strlen(text) + 1;
	return 0;
}

/* libproc.h: the name's length, or 0. */
API int proc_name(int pid, void *buf, uint32_t size) {
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/comm", pid);
	FILE *f = fopen(path, "re");
	if (!f) return 0;
	int n = fgets(buf, size, f) ? (int)strcspn(buf, "\n") : 0;
	fclose(f);
	return n;
}

/* The main queue is served by the main loop; CFRunLoopRun ends on CFRunLoopStop,
 * and at once where the loop has no source (CFRunLoop.h). NSApplication's loop
 * serves it too: it watches a descriptor. What the queue runs is not entered
 * again from a loop within (dispatch_main(3): the queue is serial). */
struct work { void (*f)(void *); void *context; struct work *next; };
static pthread_mutex_t loop_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loop_cond = PTHREAD_COND_INITIALIZER;
static struct work *first, **last = &first;
static int sources, queue_fd = -1;
static bool stop, draining;
static int the_loop;
API int _dispatch_main_q;
API const void *kCFRunLoopDefaultMode;
__attribute__((constructor)) static void modes(void) { kCFRunLoopDefaultMode = standin_string("kCFRunLoopDefaultMode"); }
static __thread bool in_main_loop;
bool standin_on_main(void) { return in_main_loop; }

API void dispatch_async_f(void *queue, void *context, void (*f)(void *)) {
	if (queue != &_dispatch_main_q) abort();
	struct work *w = calloc(1, sizeof *w);
	w->f = f, w->context = context;
	pthread_mutex_lock(&loop_lock);
	*last = w, last = &w->next;
	pthread_cond_signal(&loop_cond);
	if (queue_fd >= 0) eventfd_write(queue_fd, 1);
	pthread_mutex_unlock(&loop_lock);
}
/* What NSApplication's loop watches, and what it calls when that can be read. */
API int standin_queue_fd(void) {
	pthread_mutex_lock(&loop_lock);
	if (queue_fd < 0) queue_fd = eventfd(first != NULL, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_unlock(&loop_lock);
	return queue_fd;
}
API void standin_drain(void) {
	eventfd_t n;
	eventfd_read(queue_fd, &n);
	if (draining) return;
	draining = in_main_loop = true;
	pthread_mutex_lock(&loop_lock);
	for (struct work *w; (w = first);) {
		if (!(first = w->next)) last = &first;
		pthread_mutex_unlock(&loop_lock);
		w->f(w->context);
		free(w);
		pthread_mutex_lock(&loop_lock);
	}
	pthread_mutex_unlock(&loop_lock);
	draining = in_main_loop = false;
}
API void *CFRunLoopGetMain(void) { return &the_loop; }
API void *CFRunLoopSourceCreate(const void *alloc, long order, void *context) {
	long *c = context;
	if (c[0] != 0) abort(); /* version 0: info is the second field, perform the last of ten */
	return standin_source_new((void (*)(void *))c[9], (void *)c[1]);
}
API void *CFRunLoopGetCurrent(void) { return standin_on_main() ? (void *)&the_loop : standin_thread_loop(); }
API void CFRunLoopAddSource(void *loop, void *source, const void *mode) {
	if (loop != &the_loop) {
		standin_thread_add(loop, source);
		return;
	}
	CFRetain(source);
	pthread_mutex_lock(&loop_lock);
	sources++;
	pthread_mutex_unlock(&loop_lock);
}
API void CFRunLoopStop(void *loop) {
	if (loop != &the_loop) {
		standin_thread_stop(loop);
		return;
	}
	pthread_mutex_lock(&loop_lock);
	stop = in_main_loop; /* of a loop that does not run it is forgotten */
	pthread_cond_signal(&loop_cond);
	pthread_mutex_unlock(&loop_lock);
}
API void CFRunLoopRun(void) {
	if (standin_thread_run()) return;
	in_main_loop = true;
	pthread_mutex_lock(&loop_lock);
	while (sources && !stop) {
		struct work *w = first;
		if (!w) {
			pthread_cond_wait(&loop_cond, &loop_lock);
			continue;
		}
		if (!(first = w->next)) last = &first;
		pthread_mutex_unlock(&loop_lock);
		w->f(w->context);
		free(w);
		pthread_mutex_lock(&loop_lock);
	}
	stop = false;
	pthread_mutex_unlock(&loop_lock);
	in_main_loop = false;
}

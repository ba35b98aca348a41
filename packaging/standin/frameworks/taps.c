/* Who listens to events: taps and the counters of events (CGEvent.h,
 * CGEventSource.h), and what the person at the X display does, on any device that
 * is not XTEST's.
 *
 *   - A tap is told of events by its run loop. What was posted carries its
 *     source's user data, what comes from the hardware carries 0 (CGEventTypes.h,
 *     kCGEventSourceUserData).
 *   - macOS turns a tap off that is slow, or when the user wants it, and tells it
 *     so by an event of no other meaning (CGEventTypes.h,
 *     kCGEventTapDisabledByTimeout); nothing more comes until it is enabled again.
 *   - A tap that may not listen can be there and hear nothing, and to make one
 *     asks the person (Apple's documentation of CGRequestListenEventAccess).
 *   - No tap hears keys while somebody reads the keyboard securely (Technical Note
 *     TN2150).
 *   - Counters need no grant. Whether the hardware's state counts what was posted
 *     is not documented: the setting counted plays either.
 */
#include "events.h"
#include "keyboard.h"
#include "loops.h"
#include <X11/extensions/XInput2.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef void *(*callback)(void *proxy, uint32_t type, struct event *e, void *info);
struct tap {
	struct object o;
	callback call;
	void *info;
	uint64_t mask;
	bool on, valid;
	struct runsource *source;
	struct event *queue[4096];
	unsigned first, last;
	struct tap *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards taps and counters; taken after standin_lock */
static struct tap *taps;
static uint32_t counts[2][64]; /* by state (session, hardware) and type */
static double when[2][64];

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void serve(void *info) {
	struct tap *t = info;
	for (;;) {
		struct event *e = NULL;
		pthread_mutex_lock(&lock);
		if (t->valid && t->first != t->last) e = t->queue[t->first++ % 4096];
		pthread_mutex_unlock(&lock);
		if (!e) return;
		t->call(t, e->type, e, t->info);
		CFRelease(e);
	}
}
static void queue(struct tap *t, const struct event *e) {
	if (!t->source || t->last - t->first == 4096) return;
	struct event *copy = standin_new(KIND_EVENT, sizeof *copy);
	struct object o = copy->o;
	*copy = *e, copy->o = o;
	t->queue[t->last++ % 4096] = copy;
	standin_source_fire(t->source);
}

API struct tap *CGEventTapCreate(uint32_t where, uint32_t place, uint32_t options, uint64_t mask, callback call, void *info) {
	pthread_mutex_lock(&standin_lock);
	bool may = standin.listen, none = !strcmp(standin.tap, "none");
	if (!may) standin_note("prompt listen");
	pthread_mutex_unlock(&standin_lock);
	/* CGEvent.h: where the window server takes in hardware's events only root may. */
	if (where == 0 || none) return NULL;
	struct tap *t = standin_new(KIND_TAP, sizeof *t);
	t->call = call, t->info = info, t->mask = mask, t->on = t->valid = true;
	pthread_mutex_lock(&lock);
	t->next = taps, taps = t;
	pthread_mutex_unlock(&lock);
	return t;
}
API void CGEventTapEnable(struct tap *t, bool on) {
	pthread_mutex_lock(&lock);
	t->on = on;
	pthread_mutex_unlock(&lock);
}
API bool CGEventTapIsEnabled(struct tap *t) {
	pthread_mutex_lock(&lock);
	bool on = t->on;
	pthread_mutex_unlock(&lock);
	return on;
}
API struct runsource *CFMachPortCreateRunLoopSource(const void *alloc, struct tap *t, long order) {
	struct runsource *s = standin_source_new(serve, t);
	pthread_mutex_lock(&lock);
	t->source = s;
	pthread_mutex_unlock(&lock);
	return s;
}
/* CFMachPort.h: its source leaves the loop, and nothing comes any more. */
API void CFMachPortInvalidate(struct tap *t) {
	pthread_mutex_lock(&lock);
	for (struct tap **p = &taps; *p; p = &(*p)->next)
		if (*p == t) {
			*p = t->next;
			break;
		}
	struct runsource *s = t->source;
	t->valid = false, t->source = NULL;
	pthread_mutex_unlock(&lock);
	if (s) standin_source_end(s);
}

void standin_tap_off(uint32_t why) {
	struct event e = {.type = why};
	pthread_mutex_lock(&lock);
	for (struct tap *t = taps; t; t = t->next) {
		if (t->on) queue(t, &e);
		t->on = false;
	}
	pthread_mutex_unlock(&lock);
}

void standin_heard(const struct event *e, bool hardware) {
	bool key = e->type == KEY_DOWN || e->type == KEY_UP || e->type == FLAGS_CHANGED;
	bool deaf = !strcmp(standin.tap, "deaf") || !standin.listen || (standin.secure && key);
	pthread_mutex_lock(&lock);
	if (e->type < 64) {
		counts[0][e->type]++, when[0][e->type] = now();
		if (hardware || standin.counted) counts[1][e->type]++, when[1][e->type] = now();
	}
	for (struct tap *t = taps; t && !deaf; t = t->next)
		if (t->on && e->type < 64 && t->mask >> e->type & 1) queue(t, e);
	pthread_mutex_unlock(&lock);
}

/* CGEventSource.h: how many events of a type there were, and how long ago the last
 * one was; ~0 stands for all types. */
API uint32_t CGEventSourceCounterForEventType(int32_t state, uint32_t type) {
	if (state < 0 || state > 1 || !strcmp(standin.counters, "none")) return 0;
	uint32_t n = 0;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < 64; i++)
		if (i == type || type == ~0u) n += counts[state][i];
	pthread_mutex_unlock(&lock);
	return n;
}
API double CGEventSourceSecondsSinceLastEventType(int32_t state, uint32_t type) {
	double last = 0;
	if (state < 0 || state > 1) return 0;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < 64; i++)
		if (i == type || type == ~0u) last = fmax(last, when[state][i]);
	pthread_mutex_unlock(&lock);
	return now() - last;
}

/* The person, by the raw events of the X display's devices (XInput 2.2). */
static Display *watched;
static pthread_t watcher;
static int quit[2];
static bool held[32];

static bool xtest(int id) {
	static bool known[256], is[256];
	if (id < 0 || id > 255) return false;
	if (!known[id]) {
		int n = 0;
		XIDeviceInfo *d = XIQueryDevice(watched, id, &n);
		known[id] = true, is[id] = n == 1 && strstr(d->name, "XTEST");
		if (d) XIFreeDeviceInfo(d);
	}
	return is[id];
}
static void person(XIRawEvent *r) {
	struct event e = {.o = {KIND_EVENT, 1}};
	bool down = r->evtype == XI_RawButtonPress || r->evtype == XI_RawKeyPress, any = standin_held();
	switch (r->evtype) {
	case XI_RawMotion: {
		double v[2] = {0, 0}, *value = r->valuators.values;
		for (int i = 0; i < r->valuators.mask_len * 8; i++)
			if (XIMaskIsSet(r->valuators.mask, i)) {
				if (i < 2) v[i] = *value;
				value++;
			}
		struct display *d = standin_at(standin_pointer().x, standin_pointer().y);
		double scale = d ? d->scale : 1;
		for (int i = 0; i < 32; i++) any |= held[i];
		e.type = any ? LEFT_DRAGGED : MOVED;
		e.fields[4] = lround(v[0] / scale), e.fields[5] = lround(v[1] / scale);
		break;
	}
	case XI_RawButtonPress: case XI_RawButtonRelease:
		if (r->detail >= 4 && r->detail <= 7) {
			if (!down) return;
			e.type = WHEEL;
			break;
		}
		if (r->detail >= 0 && r->detail < 32) held[r->detail] = down;
		e.type = r->detail == 1 ? (down ? LEFT_DOWN : LEFT_UP) : r->detail == 3 ? (down ? RIGHT_DOWN : RIGHT_UP) : (down ? OTHER_DOWN : OTHER_UP);
		break;
	default:
		e.key = standin_code(r->detail);
		e.type = e.key >= 54 && e.key <= 63 && e.key != 57 ? FLAGS_CHANGED : down ? KEY_DOWN : KEY_UP;
	}
	e.p = standin_pointer();
	standin_heard(&e, true);
}
static void *watch(void *nothing) {
	struct pollfd fds[2] = {{.fd = ConnectionNumber(watched), .events = POLLIN}, {.fd = quit[0], .events = POLLIN}};
	int opcode, event, error;
	XQueryExtension(watched, "XInputExtension", &opcode, &event, &error);
	for (;;) {
		while (XPending(watched)) {
			XEvent x;
			XNextEvent(watched, &x);
			if (x.type != GenericEvent || x.xcookie.extension != opcode || !XGetEventData(watched, &x.xcookie)) continue;
			XIRawEvent *r = x.xcookie.data;
			if (!xtest(r->sourceid)) {
				pthread_mutex_lock(&standin_lock);
				if (standin_x()) person(r);
				pthread_mutex_unlock(&standin_lock);
			}
			XFreeEventData(watched, &x.xcookie);
		}
		poll(fds, 2, -1);
		if (fds[1].revents) return NULL;
	}
}
void standin_watch(const char *display) {
	if (watched) {
		if (write(quit[1], "", 1) == 1) pthread_join(watcher, NULL);
		XCloseDisplay(watched);
		close(quit[0]), close(quit[1]);
		watched = NULL;
	}
	memset(held, 0, sizeof held);
	int major = 2, minor = 2;
	if (!display || !(watched = XOpenDisplay(display))) return;
	if (pipe(quit)) abort();
	XIQueryVersion(watched, &major, &minor);
	unsigned char bits[XIMaskLen(XI_LASTEVENT)] = {0};
	for (int type = XI_RawKeyPress; type <= XI_RawMotion; type++) XISetMask(bits, type);
	XIEventMask mask = {XIAllMasterDevices, sizeof bits, bits};
	XISelectEvents(watched, DefaultRootWindow(watched), &mask, 1);
	XSync(watched, False);
	pthread_create(&watcher, NULL, watch, NULL);
}

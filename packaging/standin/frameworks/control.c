/* Settings of the stand-in, its log, and the X display that events land on. */
#define _GNU_SOURCE
#include "events.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t standin_lock = PTHREAD_MUTEX_INITIALIZER;
struct settings standin = {.trusted = true, .post = true, .screen = true, .preflight = true, .listen = true, .tap = "ok", .ax = "ok", .macos = "15.1", .counters = "ok", .graphic = true, .console = true,
	.source = "com.apple.keylayout.US", .notices = true, .sck = "ok"};
static FILE *logfile;
static Display *x;

static int quiet(Display *d, XErrorEvent *e) { return 0; }

Display *standin_x(void) { return x; }

void standin_note(const char *format, ...) {
	if (!logfile) return;
	va_list a;
	va_start(a, format);
	vfprintf(logfile, format, a);
	va_end(a);
	fputc('\n', logfile);
	fflush(logfile);
}

struct display *standin_display(uint32_t id) {
	for (int i = 0; i < standin.n; i++)
		if (standin.displays[i].id == id) return &standin.displays[i];
	return NULL;
}

struct display *standin_at(double px, double py) {
	struct display *best = NULL;
	double least = 0;
	for (int i = 0; i < standin.n; i++) {
		struct display *d = &standin.displays[i];
		double dx = px < d->x ? d->x - px : px >= d->x + d->w ? px - (d->x + d->w) + 1 : 0;
		double dy = py < d->y ? d->y - py : py >= d->y + d->h ? py - (d->y + d->h) + 1 : 0;
		if (!best || dx * dx + dy * dy < least) best = d, least = dx * dx + dy * dy;
	}
	return best;
}

/* "id:x,y,w,h,scale,px,py" with spaces between; the first one is the main one. */
static bool displays(const char *spec) {
	struct display all[8];
	int n = 0;
	char *copy = strdup(spec), *rest = copy;
	for (char *one; (one = strsep(&rest, " ")) && n < 8;) {
		struct display *d = &all[n];
		if (sscanf(one, "%u:%lf,%lf,%lf,%lf,%lf,%d,%d", &d->id, &d->x, &d->y, &d->w, &d->h, &d->scale, &d->px, &d->py) != 8) break;
		n++;
	}
	bool ok = rest == NULL && n > 0;
	free(copy);
	if (ok) memcpy(standin.displays, all, sizeof all), standin.n = n;
	return ok;
}

/* Sets one thing; returns 0 where there is no such thing or value. */
API int standin_set(const char *name, const char *value) {
	bool on = !strcmp(value, "1"), ok = true;
	if (!strcmp(name, "x")) {
		XInitThreads();
		standin_watch(*value ? value : NULL);
	}
	pthread_mutex_lock(&standin_lock);
	if (!strcmp(name, "x")) {
		XSetErrorHandler(quiet);
		if (x) XCloseDisplay(x);
		x = *value ? XOpenDisplay(value) : NULL;
		ok = !*value || x;
	} else if (!strcmp(name, "xauthority")) setenv("XAUTHORITY", value, 1);
	else if (!strcmp(name, "log")) {
		if (logfile) fclose(logfile);
		logfile = *value ? fopen(value, "ae") : NULL;
		ok = !*value || logfile;
	} else if (!strcmp(name, "displays")) ok = displays(value);
	else if (!strcmp(name, "trusted")) standin.trusted = on;
	else if (!strcmp(name, "post")) standin.post = on;
	else if (!strcmp(name, "screen")) standin.screen = on;
	else if (!strcmp(name, "preflight")) standin.preflight = on;
	else if (!strcmp(name, "listen")) standin.listen = on;
	else if (!strcmp(name, "ax") && strlen(value) < sizeof standin.ax) strcpy(standin.ax, value);
	else if (!strcmp(name, "macos") && strlen(value) < sizeof standin.macos) strcpy(standin.macos, value);
	else if (!strcmp(name, "reversed")) standin.reversed = on;
	else if (!strcmp(name, "counted")) standin.counted = on;
	else if (!strcmp(name, "counters") && strlen(value) < sizeof standin.counters) strcpy(standin.counters, value);
	else if (!strcmp(name, "tap") && (!strcmp(value, "timeout") || !strcmp(value, "user"))) standin_tap_off(*value == 't' ? 0xfffffffe : 0xffffffff);
	else if (!strcmp(name, "tap") && strlen(value) < sizeof standin.tap) strcpy(standin.tap, value);
	else if (!strcmp(name, "person") && (!strcmp(value, "wheel") || !strcmp(value, "momentum"))) {
		struct event e = {.type = WHEEL};
		e.fields[123] = *value == 'm' ? 2 : 0; /* CGEventTypes.h: kCGMomentumScrollPhaseContinue */
		standin_heard(&e, true);
	} else if (!strcmp(name, "graphic")) standin.graphic = on;
	else if (!strcmp(name, "console")) standin.console = on;
	else if (!strcmp(name, "locked")) standin.locked = on;
	else if (!strcmp(name, "asleep")) standin.asleep = on;
	else if (!strcmp(name, "deaf")) standin.deaf = on;
	else if (!strcmp(name, "secure")) standin.secure = atoi(value);
	else if (!strcmp(name, "source") && strlen(value) < sizeof standin.source) strcpy(standin.source, value);
	else if (!strcmp(name, "bundle")) standin.bundle = on;
	else if (!strcmp(name, "notices")) standin.notices = on;
	else if (!strcmp(name, "sck") && strlen(value) < sizeof standin.sck) strcpy(standin.sck, value);
	else if (!strcmp(name, "keychain") && strlen(value) < sizeof standin.keychain) strcpy(standin.keychain, value);
	else if (!strcmp(name, "keylock")) standin.keylock = on;
	else if (!strcmp(name, "power")) standin.unpowered = !on;
	else ok = false;
	pthread_mutex_unlock(&standin_lock);
	return ok;
}

/* A whole program takes its settings from STANDIN_name in the environment. */
__attribute__((constructor)) static void from_environment(void) {
	static const char *names[] = {"xauthority", "x", "log", "displays", "trusted", "post", "screen", "preflight", "ax", "macos", "reversed", "listen", "tap", "counters", "counted", "graphic", "console", "locked", "asleep", "deaf", "secure", "source", "bundle", "notices", "sck", "keychain", "keylock", "power"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		char key[64];
		snprintf(key, sizeof key, "STANDIN_%s", names[i]);
		const char *value = getenv(key);
		if (value && !standin_set(names[i], value)) fprintf(stderr, "standin: %s=%s is no setting\n", key, value), abort();
	}
}

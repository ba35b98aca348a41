/* Run loops of threads other than the main one (CFRunLoop.h): each thread has one,
 * made when it is first asked for; it runs its sources' callbacks until it is
 * stopped, ends at once where it has none, and forgets a stop that comes before it
 * runs. A source that is signalled stays so until its callback runs. */
#include "loops.h"
#include <stdlib.h>

struct loop {
	struct object o;
	pthread_cond_t wake;
	bool running, stop;
	int n;
	struct runsource *sources[8];
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all loops and sources */
static __thread struct loop *mine;

void *standin_thread_loop(void) {
	if (!mine) {
		mine = standin_new(KIND_LOOP, sizeof *mine);
		pthread_cond_init(&mine->wake, NULL);
	}
	return mine;
}
bool standin_is_thread_loop(const void *loop) { return loop && ((const struct object *)loop)->kind == KIND_LOOP; }

struct runsource *standin_source_new(void (*perform)(void *), void *info) {
	struct runsource *s = standin_new(KIND_RUNLOOP_SOURCE, sizeof *s);
	s->perform = perform, s->info = info;
	return s;
}
void standin_thread_add(void *loop, struct runsource *s) {
	struct loop *l = loop;
	pthread_mutex_lock(&lock);
	if (l->n < 8) l->sources[l->n++] = s, s->loop = l, CFRetain(s);
	pthread_mutex_unlock(&lock);
}
static void wake(struct loop *l) { pthread_cond_broadcast(&l->wake); }
API void CFRunLoopSourceSignal(struct runsource *s) {
	pthread_mutex_lock(&lock);
	s->signalled = true;
	pthread_mutex_unlock(&lock);
}
/* A loop that sleeps looks at its sources only when it is woken. */
API void CFRunLoopWakeUp(struct loop *l) {
	if (!standin_is_thread_loop(l)) return;
	pthread_mutex_lock(&lock);
	wake(l);
	pthread_mutex_unlock(&lock);
}
void standin_source_fire(struct runsource *s) {
	pthread_mutex_lock(&lock);
	s->signalled = true;
	if (s->loop) wake(s->loop);
	pthread_mutex_unlock(&lock);
}
void standin_thread_stop(void *loop) {
	struct loop *l = loop;
	pthread_mutex_lock(&lock);
	l->stop = l->running;
	wake(l);
	pthread_mutex_unlock(&lock);
}
/* An invalid source leaves its loop (CFRunLoopSourceInvalidate). */
void standin_source_end(struct runsource *s) {
	pthread_mutex_lock(&lock);
	struct loop *l = s->loop;
	s->loop = NULL, s->signalled = false;
	for (int i = 0; l && i < l->n; i++)
		if (l->sources[i] == s) {
			l->sources[i--] = l->sources[--l->n];
			wake(l);
		}
	pthread_mutex_unlock(&lock);
	if (l) CFRelease(s);
}
bool standin_thread_run(void) {
	struct loop *l = mine;
	if (!l) return false;
	pthread_mutex_lock(&lock);
	l->running = true;
	while (l->n && !l->stop) {
		struct runsource *due = NULL;
		for (int i = 0; i < l->n && !due; i++)
			if (l->sources[i]->signalled) due = l->sources[i];
		if (!due) {
			pthread_cond_wait(&l->wake, &lock);
			continue;
		}
		due->signalled = false;
		CFRetain(due);
		pthread_mutex_unlock(&lock);
		due->perform(due->info);
		CFRelease(due);
		pthread_mutex_lock(&lock);
	}
	l->running = l->stop = false;
	for (int i = 0; i < l->n; i++) l->sources[i]->loop = NULL, CFRelease(l->sources[i]);
	l->n = 0; /* the thread ends, and its loop with it */
	pthread_mutex_unlock(&lock);
	CFRelease(l);
	mine = NULL;
	return true;
}

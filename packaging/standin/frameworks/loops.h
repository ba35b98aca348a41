#ifndef LOOPS_H
#define LOOPS_H
#include "standin.h"

/* A source of a run loop: perform is called with info once it is signalled. */
struct loop;
struct runsource {
	struct object o;
	void (*perform)(void *);
	void *info;
	bool signalled;
	struct loop *loop;
};
struct runsource *standin_source_new(void (*perform)(void *), void *info);
void standin_source_fire(struct runsource *s); /* signals it and wakes its loop */
void standin_source_end(struct runsource *s);

void *standin_thread_loop(void); /* the calling thread's */
bool standin_is_thread_loop(const void *loop);
void standin_thread_add(void *loop, struct runsource *s);
void standin_thread_stop(void *loop);
bool standin_thread_run(void); /* false where the calling thread has none */
#endif

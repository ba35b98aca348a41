/* ScreenCaptureKit over GNUstep's Foundation, and Objective-C's blocks.
 *
 * Signatures are those of SCShareableContent.h, SCStream.h and
 * SCScreenshotManager.h. Completion handlers come on a thread of their own; they
 * may come late or never (officialunofficial/polarize#50). Without the grant the
 * error is SCStreamErrorUserDeclined, -3801 (SCError.h). A source rectangle is in
 * points from the display's corner, width and height are in pixels (SCStream.h). */
#import <Foundation/Foundation.h>
#include "standin.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* GNUstep's NSTask takes the signal of children that ended, which macOS's does not, by
 * a handler that runs on whatever stack there is. Go's stacks are too small for that,
 * and get overwritten (os/signal: such handlers need SA_ONSTACK). Go's is put back. */
@interface Signals : NSObject
@end
@implementation Signals
+ (void)load {
	struct sigaction go;
	NSAutoreleasePool *pool = [NSAutoreleasePool new];
	sigaction(SIGCHLD, NULL, &go);
	[NSTask class]; /* takes it, once */
	sigaction(SIGCHLD, &go, NULL);
	[pool release];
}
@end

/* The Block ABI of clang (Block_layout). A block of purego's is a plain object. */
struct block { Class isa; int flags, reserved; void (*invoke)(void *, ...); void *descriptor; };
@interface __NSMallocBlock__ : NSObject
@end
@implementation __NSMallocBlock__
- (id)retain { return self; }
- (oneway void)release {}
- (id)copyWithZone:(NSZone *)z { return self; }
@end
API void *_Block_copy(const void *b) {
	struct block *c = malloc(sizeof *c);
	*c = *(const struct block *)b;
	return c;
}
/* Kept: a handler of ScreenCaptureKit's may come after its caller let go. */
API void _Block_release(const void *b) {}

static struct settings settings(void) {
	pthread_mutex_lock(&standin_lock);
	struct settings s = standin;
	pthread_mutex_unlock(&standin_lock);
	return s;
}

/* What calls a handler back, as the setting sck says. */
@interface Handler : NSObject {
@public
	struct block *block;
	id object;
	struct image *image;
}
@end
@implementation Handler
- (void)run {
	NSAutoreleasePool *pool = [NSAutoreleasePool new];
	struct settings s = settings();
	int ms = 0, code = 0;
	if (sscanf(s.sck, "late:%d", &ms) == 1) usleep(ms * 1000);
	if (!s.screen) code = -3801;
	sscanf(s.sck, "error:%d", &code);
	pthread_mutex_lock(&standin_lock);
	if (!strncmp(standin.sck, "once:", 5)) code = atoi(standin.sck + 5), strcpy(standin.sck, "ok");
	pthread_mutex_unlock(&standin_lock);
	if (!strcmp(s.sck, "nothing")) block->invoke(block, NULL, nil);
	else if (code) {
		NSDictionary *info = [NSDictionary dictionaryWithObject:@"it was refused" forKey:NSLocalizedDescriptionKey];
		block->invoke(block, NULL, [NSError errorWithDomain:@"com.apple.ScreenCaptureKit.SCStreamErrorDomain" code:code userInfo:info]);
	} else if (strcmp(s.sck, "never")) block->invoke(block, image ? (void *)image : (void *)object, nil);
	if (image) CFRelease(image);
	[pool drain];
}
@end
/* No NSThread: where the main thread is not GNUstep's, the end of one ends the
 * process. */
static void *run(void *handler) {
	GSRegisterCurrentThread();
	[(Handler *)handler run];
	GSUnregisterCurrentThread();
	return NULL;
}
static void later(void *block, id object, struct image *image) {
	Handler *h = [[Handler new] autorelease];
	h->block = block, h->object = [object retain], h->image = image;
	[h retain];
	pthread_t thread;
	pthread_create(&thread, NULL, run, h);
	pthread_detach(thread);
}

@interface SCDisplay : NSObject {
@public
	uint32_t id_;
}
@end
@implementation SCDisplay
- (uint32_t)displayID { return id_; }
@end
@interface SCRunningApplication : NSObject {
@public
	pid_t pid;
}
@end
@implementation SCRunningApplication
- (pid_t)processID { return pid; }
@end

@interface SCShareableContent : NSObject
@end
@implementation SCShareableContent
+ (void)getShareableContentExcludingDesktopWindows:(BOOL)d onScreenWindowsOnly:(BOOL)o completionHandler:(void *)h {
	later(h, [[self new] autorelease], NULL);
}
- (NSArray *)displays {
	struct settings s = settings();
	NSMutableArray *all = [NSMutableArray array];
	for (int i = 0; i < s.n; i++) {
		SCDisplay *d = [[SCDisplay new] autorelease];
		d->id_ = s.displays[i].id;
		[all addObject:d];
	}
	return all;
}
- (NSArray *)applications {
	SCRunningApplication *other = [[SCRunningApplication new] autorelease], *ours = [[SCRunningApplication new] autorelease];
	other->pid = 1, ours->pid = getpid();
	return [NSArray arrayWithObjects:other, ours, nil];
}
@end

@interface SCContentFilter : NSObject {
@public
	uint32_t display;
	int ours;
}
@end
@implementation SCContentFilter
- (id)initWithDisplay:(SCDisplay *)d excludingApplications:(NSArray *)apps exceptingWindows:(NSArray *)windows {
	display = d->id_;
	for (NSUInteger i = 0; i < [apps count]; i++) ours += ((SCRunningApplication *)[apps objectAtIndex:i])->pid == getpid();
	return self;
}
@end
@interface SCStreamConfiguration : NSObject {
@public
	size_t w, h;
	BOOL cursor;
	NSInteger resolution;
	NSRect rect;
}
@end
@implementation SCStreamConfiguration
- (void)setWidth:(size_t)x { w = x; }
- (void)setHeight:(size_t)x { h = x; }
- (void)setShowsCursor:(BOOL)b { cursor = b; }
- (void)setCaptureResolution:(NSInteger)r { resolution = r; }
- (void)setSourceRect:(NSRect)r { rect = r; }
@end
@interface SCScreenshotManager : NSObject
@end
@implementation SCScreenshotManager
+ (void)captureImageWithFilter:(SCContentFilter *)f configuration:(SCStreamConfiguration *)c completionHandler:(void *)h {
	pthread_mutex_lock(&standin_lock);
	struct display *d = standin_display(f->display);
	struct image *image = NULL;
	if (d) {
		NSRect r = c->rect;
		if (NSIsEmptyRect(r)) r = NSMakeRect(0, 0, d->w, d->h);
		image = standin_grab(d, r.origin.x, r.origin.y, r.size.width, r.size.height, c->w, c->h);
	}
	standin_note("capture %u %zux%zu ours-left-out=%d cursor=%d", f->display, c->w, c->h, f->ours, c->cursor);
	pthread_mutex_unlock(&standin_lock);
	later(h, nil, image);
}
@end

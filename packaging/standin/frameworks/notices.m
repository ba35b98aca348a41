/* UserNotifications (UNUserNotificationCenter.h, UNNotificationContent.h,
 * UNNotificationRequest.h): what is posted is noted in the log.
 *
 *   - A process without a bundle that asks for the centre is ended by an
 *     exception: "bundleProxyForCurrentProcess is nil" (openclaw/openclaw#123123,
 *     stablyai/orca#7929).
 *   - A handler comes on a thread of its own.
 *   - Nothing is shown where the person does not want any (setting notices=0).
 */
#import <Foundation/Foundation.h>
#include "standin.h"

struct block { Class isa; int flags, reserved; void (*invoke)(void *, ...); void *descriptor; };

static struct settings settings(void) {
	pthread_mutex_lock(&standin_lock);
	struct settings s = standin;
	pthread_mutex_unlock(&standin_lock);
	return s;
}

@implementation NSBundle (Standin)
- (NSString *)bundleIdentifier { return settings().bundle ? @"io.github.drawbridge.Drawbridge" : nil; }
@end

@interface UNMutableNotificationContent : NSObject {
@public
	NSString *title, *body;
}
@end
@implementation UNMutableNotificationContent
- (void)setTitle:(NSString *)s { title = [s copy]; }
- (void)setBody:(NSString *)s { body = [s copy]; }
@end
@interface UNNotificationRequest : NSObject {
@public
	NSString *id_;
	UNMutableNotificationContent *content;
}
@end
@implementation UNNotificationRequest
+ (id)requestWithIdentifier:(NSString *)s content:(UNMutableNotificationContent *)c trigger:(id)t {
	UNNotificationRequest *r = [[self new] autorelease];
	r->id_ = [s copy], r->content = [c retain];
	return r;
}
@end

@interface UNUserNotificationCenter : NSObject
@end
static void *answer(void *block) {
	struct block *b = block;
	b->invoke(b, settings().notices, nil);
	return NULL;
}
@implementation UNUserNotificationCenter
+ (id)currentNotificationCenter {
	static UNUserNotificationCenter *one;
	if (!settings().bundle) [NSException raise:NSInternalInconsistencyException format:@"bundleProxyForCurrentProcess is nil"];
	if (!one) one = [self new];
	return one;
}
- (void)requestAuthorizationWithOptions:(NSUInteger)options completionHandler:(void *)h {
	standin_note("notices requested %lu", (unsigned long)options);
	pthread_t thread;
	pthread_create(&thread, NULL, answer, h);
	pthread_detach(thread);
}
- (void)addNotificationRequest:(UNNotificationRequest *)r withCompletionHandler:(void *)h {
	if (settings().notices) standin_note("notice %s: %s / %s", [r->id_ UTF8String], [r->content->title UTF8String], [r->content->body UTF8String]);
}
- (void)removeDeliveredNotificationsWithIdentifiers:(NSArray *)ids {
	for (NSString *s in ids) standin_note("notice %s removed", [s UTF8String]);
}
@end

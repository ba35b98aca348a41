/* The entry points of Apple's Objective-C runtime that purego calls, over GCC's
 * runtime, on x86-64: messages are looked up by receiver and selector, then
 * jumped to with all argument registers as they were (objc/message.h). */
#include <objc/runtime.h>
#include <objc/message.h>
#include <stdlib.h>

#define SAVE "pushq %rbp\n movq %rsp,%rbp\n subq $208,%rsp\n" \
 "movq %rdi,(%rsp)\n movq %rsi,8(%rsp)\n movq %rdx,16(%rsp)\n movq %rcx,24(%rsp)\n movq %r8,32(%rsp)\n movq %r9,40(%rsp)\n movq %rax,48(%rsp)\n" \
 "movups %xmm0,64(%rsp)\n movups %xmm1,80(%rsp)\n movups %xmm2,96(%rsp)\n movups %xmm3,112(%rsp)\n movups %xmm4,128(%rsp)\n movups %xmm5,144(%rsp)\n movups %xmm6,160(%rsp)\n movups %xmm7,176(%rsp)\n"
#define LOAD "movq %rax,%r11\n movq (%rsp),%rdi\n movq 8(%rsp),%rsi\n movq 16(%rsp),%rdx\n movq 24(%rsp),%rcx\n movq 32(%rsp),%r8\n movq 40(%rsp),%r9\n movq 48(%rsp),%rax\n" \
 "movups 64(%rsp),%xmm0\n movups 80(%rsp),%xmm1\n movups 96(%rsp),%xmm2\n movups 112(%rsp),%xmm3\n movups 128(%rsp),%xmm4\n movups 144(%rsp),%xmm5\n movups 160(%rsp),%xmm6\n movups 176(%rsp),%xmm7\n" \
 "leave\n"
__asm__(".globl objc_msgSend\n.type objc_msgSend,@function\nobjc_msgSend:\n" SAVE "call objc_msg_lookup@PLT\n" LOAD "jmp *%r11\n"
".globl objc_msgSend_stret\n.type objc_msgSend_stret,@function\nobjc_msgSend_stret:\n" SAVE "movq %rsi,%rdi\n movq %rdx,%rsi\n call objc_msg_lookup@PLT\n" LOAD "jmp *%r11\n"
".globl objc_msgSendSuper2\n.type objc_msgSendSuper2,@function\nobjc_msgSendSuper2:\n" SAVE "call shim_super@PLT\n" LOAD "movq (%rdi),%rdi\n jmp *%r11\n"
".globl objc_msgSendSuper2_stret\n.type objc_msgSendSuper2_stret,@function\nobjc_msgSendSuper2_stret:\n" SAVE "movq %rsi,%rdi\n movq %rdx,%rsi\n call shim_super@PLT\n" LOAD "movq (%rsi),%rsi\n jmp *%r11\n");

struct sup2 { id recv; Class cls; };
IMP shim_super(struct sup2 *s, SEL sel) {
	struct objc_super o = { s->recv, class_getSuperclass(s->cls) };
	return objc_msg_lookup_super(&o, sel);
}
Class object_getClass_shim(id o) { return o ? object_getClass(o) : Nil; }
#undef object_getClass
__asm__(".globl object_getClass\n.set object_getClass,object_getClass_shim\n");
void *objc_allocateProtocol(const char *n) { return 0; }
void objc_registerProtocol(void *p) {}
void protocol_addMethodDescription(void *p, SEL s, const char *t, char r, char i) {}
void protocol_addProtocol(void *p, void *q) {}
void protocol_addProperty(void *p, const char *n, void *a, unsigned c, char r, char i) {}
void *protocol_copyPropertyList2(void *p, unsigned *n, char r, char i) { *n = 0; return 0; }

/* The guest's half of the switch: leaves the frame that src/switch.rs describes and jumps to the gate that GS names.
 * The host comes back to the frame's last word.
 *
 * It is inline, and neither calls nor returns: a processor predicts returns from a stack of its own, on which the
 * switch leaves the host's. Every return between here and the guest's next call would be predicted to lead into the
 * host, and one in the host to lead here (Intel's optimization manual, 3.4.1.4: calls and returns are to match).
 * Files that use it are compiled without a red zone, because it pushes.
 */
#ifndef MR_GUEST_YIELD_H
#define MR_GUEST_YIELD_H

/* Lets the host run until there are packets, a signal, nothing (an idle moment), or the end. As a call it keeps the
 * registers that a call keeps (the host pops them), and no others.
 */
static inline __attribute__((always_inline)) void mr_guest_yield(void)
{
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "pushq %%rbp\n\t"
                     "pushq %%rbx\n\t"
                     "pushq %%r12\n\t"
                     "pushq %%r13\n\t"
                     "pushq %%r14\n\t"
                     "pushq %%r15\n\t"
                     "subq $8, %%rsp\n\t"
                     "stmxcsr (%%rsp)\n\t"
                     "fnstcw 4(%%rsp)\n\t"
                     "jmpq *%%gs:0\n"
                     "1:"
                     :
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15", "cc", "memory");
}

#endif

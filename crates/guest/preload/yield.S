/* The guest's half of the switch (src/switch.rs says what the frame is): saves what a call preserves, and jumps
 * to the gate that GS names. The host comes back to the frame's last word, the return address of the call.
 */
    .text
    .globl mr_guest_yield
    .hidden mr_guest_yield
    .type mr_guest_yield, @function
mr_guest_yield:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    subq $8, %rsp
    stmxcsr (%rsp)
    fnstcw 4(%rsp)
    jmpq *%gs:0
    .size mr_guest_yield, . - mr_guest_yield
    .section .note.GNU-stack, "", @progbits

/* The shared object that the kernel gives every program for asking the time (vdso(7)), for guests. The kernel's lies
 * where it likes in each process; this one lies in the guest's slot and jumps through a table behind it, which the
 * host fills with the kernel's functions of its own process (src/vdso.rs). So a guest may keep these addresses
 * when it is moved to another process.
 *
 * Entries of the table, 8 bytes each, in this order; where the kernel has none the host enters the `plain` one.
 */
    .text

    .macro through name, index, number
    .globl __vdso_\name
    .type __vdso_\name, @function
__vdso_\name:
    jmpq *mr_vdso_table + 8 * \index(%rip)
    .size __vdso_\name, . - __vdso_\name
    .globl mr_plain_\name
    .hidden mr_plain_\name
mr_plain_\name:
    movl $\number, %eax
    syscall
    ret
    .endm

    through clock_gettime, 0, 228
    through gettimeofday, 1, 96
    through time, 2, 201
    through getcpu, 3, 309
    through clock_getres, 4, 229

/* Where a thread that comes from a snapshot begins: the host's answer to this call is all of its registers. */
    .globl mr_thaw
    .hidden mr_thaw
mr_thaw:
    syscall
    ud2
    .section .note.GNU-stack, "", @progbits

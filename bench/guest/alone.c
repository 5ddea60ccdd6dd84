/* Stands in for the host, so that a program of DPDK can be run by itself on the very port that guests have: its
 * preload yields to `gate`, which does the port's work and nothing of the host's: it takes back what has become of a
 * burst and puts the next one there, without a switch. After ROUNDS bursts it tells the median of what a burst took, in
 * cycles of the time stamp counter, and ends. Loaded behind the two preloads.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "port.h"

enum { BURST = 32, SET_GS = 0x1001 };

/* What GS names: src/thread.rs. */
static struct {
    void (*gate)(void);
    struct mr_guest_port *port;
} thread;

static _Alignas(64) uint8_t bytes[BURST][2048 + 64]; /* as in the hosted ones */
static struct mr_guest_packet fresh[BURST], packets[BURST];
static uint64_t *took, before;
static unsigned long rounds, round_now, quiet;

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* What has become of the packets, as the host takes it back (src/polling.rs). */
static void collect(const struct mr_guest_port *port)
{
    for (int i = 0; i < BURST; i++) {
        const volatile struct mr_guest_packet *told = &port->packet[i];
        uint16_t fate = told->fate;
        uint32_t length = told->length, wire = told->wire;

        if (fate < MR_GUEST_OUT || fate > MR_GUEST_OUT + 1 || length > packets[i].room) {
            fprintf(stderr, "a packet was not forwarded\n");
            _exit(1);
        }
        packets[i].fate = fate;
        packets[i].length = length;
        packets[i].wire = wire < length ? length : wire;
    }
}

__attribute__((used)) static void refill(void)
{
    struct mr_guest_port *port = thread.port;

    /* Its threads look for packets a few times before they forward: as the host does, they are let settle. */
    if (quiet < 4096) {
        quiet++;
        port->count = port->next = 0;
        return;
    }
    /* Only full rounds count: a program of several ports may ask again before it is through. */
    if (port->next < port->count)
        return;
    if (round_now) {
        collect(port);
        took[round_now - 1] = __rdtsc() - before;
    }
    if (round_now++ == rounds) {
        qsort(took, rounds, sizeof *took, compare);
        fprintf(stderr, "alone %lu\n", (unsigned long)took[rounds / 2]);
        _exit(0);
    }
    memcpy(packets, fresh, sizeof packets);
    before = __rdtsc();
    memcpy(port->packet, packets, sizeof packets);
    port->next = port->kept = 0;
    port->cursor[0] = port->cursor[1] = 0;
    port->turn++;
    port->count = BURST;
    __asm__ volatile("movq %%fs:0, %0" : "=r"(port->running));
}

/* What a yield leaves (preload/yield.h) begins wherever its function's stack was. */
__asm__(".text\n"
        "gate:\n"
        "    movq %rsp, %rbx\n"
        "    andq $-16, %rsp\n"
        "    call refill\n"
        "    movq %rbx, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n"
        "    popq %rcx\n"
        "    jmpq *%rcx\n");
void gate(void);

__attribute__((constructor)) static void start(void)
{
    const char *text = getenv("ROUNDS");

    rounds = text ? strtoul(text, NULL, 10) : 100000;
    took = calloc(rounds + 1, sizeof *took);
    thread.gate = gate;
    thread.port = mmap(NULL, sizeof *thread.port, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!took || thread.port == MAP_FAILED)
        _exit(1);
    for (int i = 0; i < BURST; i++)
        fresh[i] = (struct mr_guest_packet){.data = bytes[i], .length = 64, .wire = 64, .room = 1500};
    syscall(SYS_arch_prctl, SET_GS, &thread);
}

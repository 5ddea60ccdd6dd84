/* What a preload and the host share: a page range in the guest's slot, mirrored by src/port.rs. The host fills a
 * burst and lets the guest run; the preload hands out its packets and yields when there are none left.
 */
#ifndef MR_GUEST_PORT_H
#define MR_GUEST_PORT_H

#include <stdint.h>

#define MR_GUEST_BURST 1024u
#define MR_GUEST_SENT 0x80000u /* a power of two */

enum mr_guest_fate {
    MR_GUEST_ON = 0,   /* goes on to the next element: leaves at the other port than the one it came in at */
    MR_GUEST_DROP = 1, /* does not */
    MR_GUEST_KEEP = 2, /* the guest has taken it, and neither sent nor freed it */
    MR_GUEST_OUT = 3,  /* leaves at port 0; MR_GUEST_OUT + 1: at port 1 */
};

struct mr_guest_packet {
    uint8_t *data;   /* in memory of the host's: valid until the next receive */
    uint64_t time;   /* ns since the epoch */
    uint32_t length; /* bytes at `data`; of a packet that is sent, what it is then, at most `room` */
    uint32_t wire;   /* bytes on the wire, at least `length` */
    uint32_t room;   /* bytes that may be written at `data`, at least `length` */
    uint16_t port;   /* where it came in: 0 or 1 */
    uint16_t fate;   /* enum mr_guest_fate; the host sets MR_GUEST_ON */
};

struct mr_guest_port {
    uint32_t count;     /* packets of this burst */
    uint32_t next;      /* the first that has not been handed out */
    uint32_t ended;     /* 1: no more will come; 2: and the guest is to end; 3: and its interface is gone */
    uint32_t signal;    /* a signal whose handler is to be called now; 0: none */
    uint64_t handler;   /* its handler */
    uint32_t with_info; /* it takes three arguments (SA_SIGINFO) */
    uint32_t begun;     /* the guest has asked for packets at least once */
    /* Of guests that poll several ports and say what becomes of each packet (dpdk_port.c). */
    uint32_t polls;     /* set by the preload: the guest is one */
    uint32_t kept;      /* packets of this burst whose fate is MR_GUEST_KEEP */
    uint32_t turn;      /* the burst's number, never 0 once there was one; it says which burst an mbuf is of */
    uint32_t cursor[2]; /* for each port: what lies before it in `packet` has been handed out */
    uint32_t held;      /* mbufs of packets, of this burst or of earlier ones, that the guest has */
    uint64_t running;   /* FS base of the thread that the worker runs; the others are none of the packets' */
    struct mr_guest_packet packet[MR_GUEST_BURST];
    /* Packets that leave and are none of the burst's, or not in its order: a ring of bytes. What lies between
     * `tail` (the host's) and `head` (the preload's), modulo its size, is whole records, each from a multiple of
     * the size of its header.
     */
    uint32_t head;
    uint32_t tail;
    uint64_t unused;
    uint8_t sent[MR_GUEST_SENT];
};

/* A packet in that ring; its bytes follow. */
struct mr_guest_sent {
    uint32_t length; /* bytes that follow */
    uint16_t port;   /* where it leaves: 0 or 1 */
    uint16_t after;  /* 0: before what leaves of the burst at that port; 1: behind it */
    uint64_t unused;
};

/* GS of every thread that runs a guest: gate at 0, this port at 8 (src/thread.rs). */
static inline struct mr_guest_port *mr_guest_port(void)
{
    struct mr_guest_port *port;

    __asm__ volatile("movq %%gs:8, %0" : "=r"(port));
    return port;
}

/* The interface for programs written for it: the next packet, NULL when there is none now; `*ended` is set once
 * none will come any more. A program may set the packet's fate until its next call.
 */
struct mr_guest_packet *millrace_receive(int *ended);

#endif

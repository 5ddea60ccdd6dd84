/* What the interposed libraries receive by. */
#ifndef MR_GUEST_RECEIVE_H
#define MR_GUEST_RECEIVE_H

#include <stddef.h>

#include "port.h"

enum mr_guest_got {
    MR_GUEST_PACKETS, /* there are some to take */
    MR_GUEST_NOTHING, /* none for now */
    MR_GUEST_SIGNAL,  /* a handler was called; the program may have changed its mind */
    MR_GUEST_END,     /* none will come any more */
};

/* Not for programs: calls from here to here need no table. */
#pragma GCC visibility push(hidden)

/* Makes packets be there, if need be by yielding once. */
enum mr_guest_got mr_guest_wait(void);

/* The next packet of the burst, NULL when it is empty. */
static inline struct mr_guest_packet *mr_guest_take(void)
{
    struct mr_guest_port *port = mr_guest_port();
    uint32_t next = port->next;

    if (next >= port->count || next >= MR_GUEST_BURST)
        return NULL;
    port->next = next + 1;
    return &port->packet[next];
}

#pragma GCC visibility pop

#endif

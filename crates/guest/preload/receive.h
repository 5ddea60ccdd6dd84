/* What the interposed libraries receive and send by. */
#ifndef MR_GUEST_RECEIVE_H
#define MR_GUEST_RECEIVE_H

#include <stddef.h>

#include "port.h"
#include "yield.h"

enum mr_guest_got {
    MR_GUEST_PACKETS, /* there are some to take */
    MR_GUEST_NOTHING, /* none for now */
    MR_GUEST_SIGNAL,  /* a handler was called; the program may have changed its mind */
    MR_GUEST_END,     /* none will come any more */
};

/* Calls the handler of the signal that has become due. */
void mr_guest_deliver(void);

/* Makes packets be there, if need be by yielding once. */
static inline enum mr_guest_got mr_guest_wait(void)
{
    struct mr_guest_port *port = mr_guest_port();

    port->begun = 1;
    if (port->next < port->count)
        return MR_GUEST_PACKETS;
    mr_guest_yield();
    /* Another thread may have gone on with this context: the port is asked for again. */
    port = mr_guest_port();
    if (port->signal) {
        mr_guest_deliver();
        return MR_GUEST_SIGNAL;
    }
    if (port->next < port->count)
        return MR_GUEST_PACKETS;
    return port->ended ? MR_GUEST_END : MR_GUEST_NOTHING;
}

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

/* For libraries that poll: yields, and calls the handler of a signal that has become due. */
static inline void mr_guest_pause(void)
{
    mr_guest_yield();
    if (mr_guest_port()->signal)
        mr_guest_deliver();
}

/* Bytes of a packet that is sent. */
struct mr_guest_part {
    const void *data;
    uint32_t length;
};

/* Sends a packet that is none of the burst's, at port 0 or 1, before or `after` what leaves of the burst there;
 * false when there is no room for it. At most 65535 bytes.
 */
int mr_guest_send(uint16_t port, int after, const struct mr_guest_part *part, uint32_t parts);

#endif

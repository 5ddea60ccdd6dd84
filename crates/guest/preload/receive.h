/* What the interposed libraries receive and send by. */
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

/* For libraries that poll: yields, and calls the handler of a signal that has become due. */
void mr_guest_pause(void);

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

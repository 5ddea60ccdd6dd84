/* What the interposed libraries receive by. */
#ifndef MR_GUEST_RECEIVE_H
#define MR_GUEST_RECEIVE_H

#include "port.h"

enum mr_guest_got {
    MR_GUEST_PACKETS, /* there are some to take */
    MR_GUEST_NOTHING, /* none for now */
    MR_GUEST_SIGNAL,  /* a handler was called; the program may have changed its mind */
    MR_GUEST_END,     /* none will come any more */
};

/* Makes packets be there, if need be by yielding once. */
enum mr_guest_got mr_guest_wait(void);

/* For libraries that poll: yields, and calls the handler of a signal that has become due. */
void mr_guest_pause(void);

/* The next packet of the burst, NULL when it is empty. */
struct mr_guest_packet *mr_guest_take(void);

#endif

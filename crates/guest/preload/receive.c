/* Receiving, for all libraries that are interposed: hands out a burst, yields when it is empty, and calls the
 * handlers of signals that have become due.
 */
#include "receive.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

/* Handlers run here and not where the program happens to be: between two packets every lock of the program's that
 * a handler might want is free.
 */
static void deliver(struct mr_guest_port *port)
{
    int number = (int)port->signal;
    uint64_t handler = port->handler;

    port->signal = 0;
    if (!handler)
        return;
    if (port->with_info) {
        siginfo_t info;
        char context[1024]; /* nobody can tell a handler what registers it has interrupted: zeros */

        memset(&info, 0, sizeof info);
        memset(context, 0, sizeof context);
        info.si_signo = number;
        ((void (*)(int, siginfo_t *, void *))(uintptr_t)handler)(number, &info, context);
    } else {
        ((void (*)(int))(uintptr_t)handler)(number);
    }
}

enum mr_guest_got mr_guest_wait(void)
{
    struct mr_guest_port *port = mr_guest_port();

    port->begun = 1;
    if (port->next < port->count)
        return MR_GUEST_PACKETS;
    mr_guest_yield();
    /* Another thread may have gone on with this context: the port is asked for again. */
    port = mr_guest_port();
    if (port->signal) {
        deliver(port);
        return MR_GUEST_SIGNAL;
    }
    if (port->next < port->count)
        return MR_GUEST_PACKETS;
    return port->ended ? MR_GUEST_END : MR_GUEST_NOTHING;
}

/* Apart, so that the usual way through the function below saves no registers. */
static __attribute__((noinline)) struct mr_guest_packet *receive_more(int *ended)
{
    enum mr_guest_got got;

    do
        got = mr_guest_wait();
    while (got == MR_GUEST_SIGNAL);
    *ended = got == MR_GUEST_END;
    return mr_guest_take();
}

struct mr_guest_packet *millrace_receive(int *ended)
{
    struct mr_guest_packet *packet = mr_guest_take();

    if (!packet)
        return receive_more(ended);
    *ended = 0;
    return packet;
}

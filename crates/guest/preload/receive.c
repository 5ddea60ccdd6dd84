/* What is rare in receiving, for all libraries that are interposed: handlers of signals that have become due. And the
 * interface of programs that are written for it.
 */
#include "receive.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

/* Handlers run here and not where the program happens to be: between two packets every lock of the program's that
 * a handler might want is free.
 */
void mr_guest_deliver(void)
{
    struct mr_guest_port *port = mr_guest_port();
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

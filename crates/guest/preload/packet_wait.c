/* Waiting for packets on sockets of packets: where a program waits for one of them, the host runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/select.h>
#include <time.h>

#include "packet.h"

int mr_socket_ready(struct mr_socket *socket)
{
    uint32_t length;

    return socket->ring.asked.tp_block_nr ? mr_ring_fill(socket) : mr_socket_look(socket, &length) != NULL;
}

enum waited { READY, SILENT, INTERRUPTED, GONE };
enum patience { GLANCE, ONCE, EVER };

/* So often in a row a program may look in vain before it is one that polls, and the host runs: some look once, to empty a
 * new socket of what came before it was bound (scapy).
 */
#define GLANCES 4

/* Waits until one of these sockets has something. */
static enum waited wait_for(struct mr_socket *const *sockets, int count, enum patience patience)
{
    static int glances;
    int once = patience != EVER;

    for (;;) {
        for (int i = 0; i < count; i++)
            if (mr_socket_ready(sockets[i]))
                return READY;
        if (patience == GLANCE && glances++ < GLANCES)
            return SILENT;
        glances = 0;
        switch (mr_guest_wait()) {
        case MR_GUEST_SIGNAL:
            return INTERRUPTED;
        case MR_GUEST_END:
            /* As an interface that falls silent; then a signal; then one that is gone. */
            return mr_guest_port()->ended > 2 ? GONE : once ? SILENT : INTERRUPTED;
        case MR_GUEST_NOTHING:
            if (once)
                return SILENT;
            break;
        case MR_GUEST_PACKETS:
            break;
        }
    }
}

#define MOST 64

/* With other descriptors beside its own a program waits for those, too. */
static enum patience patience(const struct timespec *timeout, int others)
{
    if (timeout && !timeout->tv_sec && !timeout->tv_nsec)
        return GLANCE;
    return timeout || others ? ONCE : EVER;
}

static int poll_packets(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    static const struct timespec now;
    struct mr_socket *sockets[MOST];
    int ours = 0, ready;
    enum waited waited;

    for (nfds_t i = 0; i < count && ours < MOST; i++)
        if ((fds[i].events & POLLIN) && (sockets[ours] = mr_socket(fds[i].fd)))
            ours++;
    if (!ours)
        return REAL(ppoll)(fds, count, timeout, mask);
    waited = wait_for(sockets, ours, patience(timeout, (nfds_t)ours < count));
    if (waited == INTERRUPTED) {
        errno = EINTR;
        return -1;
    }
    if (REAL(ppoll)(fds, count, &now, mask) < 0)
        return -1;
    ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        struct mr_socket *socket = mr_socket(fds[i].fd);

        if (socket && waited == GONE)
            fds[i].revents = POLLERR | (fds[i].events & POLLIN);
        else if (socket && (waited != READY || !(fds[i].events & POLLIN)))
            fds[i].revents &= (short)~POLLIN;
        ready += fds[i].revents != 0;
    }
    return ready;
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    return poll_packets(fds, count, timeout, mask);
}

int poll(struct pollfd *fds, nfds_t count, int ms)
{
    struct timespec timeout = {ms / 1000, ms % 1000 * 1000000L};

    for (nfds_t i = 0; i < count; i++)
        if (mr_socket(fds[i].fd))
            return poll_packets(fds, count, ms < 0 ? NULL : &timeout, NULL);
    return REAL(poll)(fds, count, ms);
}

/* What a program calls that is compiled with _FORTIFY_SOURCE. */
int __poll_chk(struct pollfd *fds, nfds_t count, int ms, size_t size)
{
    (void)size;
    return poll(fds, count, ms);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t size)
{
    (void)size;
    return ppoll(fds, count, timeout, mask);
}

/* For select() and pselect(): waits, and gives the sockets that are not readable; -1 when it was interrupted. */
static int select_packets(int count, const fd_set *reads, int writes, const struct timespec *timeout,
                          struct mr_socket **silent)
{
    struct mr_socket *sockets[MOST];
    int ours = 0, others = 0;

    for (int fd = 0; reads && fd < count && fd < FD_SETSIZE && ours < MOST; fd++) {
        if (!FD_ISSET(fd, reads))
            continue;
        if ((sockets[ours] = mr_socket(fd)))
            ours++;
        else
            others++;
    }
    if (!ours)
        return 0;
    enum waited waited = wait_for(sockets, ours, patience(timeout, others || writes));
    if (waited == INTERRUPTED) {
        errno = EINTR;
        return -1;
    }
    int left = 0;
    for (int i = 0; i < ours && waited != GONE; i++)
        if (!mr_socket_ready(sockets[i]))
            silent[left++] = sockets[i];
    return ours | left << 16;
}

static int without(fd_set *reads, int ready, struct mr_socket *const *silent, int count)
{
    for (int i = 0; i < count && ready > 0; i++)
        if (FD_ISSET(silent[i]->number - 1, reads)) {
            FD_CLR(silent[i]->number - 1, reads);
            ready--;
        }
    return ready;
}

int select(int count, fd_set *reads, fd_set *writes, fd_set *excepts, struct timeval *timeout)
{
    struct mr_socket *silent[MOST];
    struct timeval now = {0, 0};
    struct timespec limit = {timeout ? timeout->tv_sec : 0, timeout ? timeout->tv_usec * 1000 : 0};
    int ours = select_packets(count, reads, writes != NULL, timeout ? &limit : NULL, silent);

    if (ours <= 0)
        return ours < 0 ? -1 : REAL(select)(count, reads, writes, excepts, timeout);
    return without(reads, REAL(select)(count, reads, writes, excepts, &now), silent, ours >> 16);
}

int pselect(int count, fd_set *reads, fd_set *writes, fd_set *excepts, const struct timespec *timeout,
            const sigset_t *mask)
{
    static const struct timespec now;
    struct mr_socket *silent[MOST];
    int ours = select_packets(count, reads, writes != NULL, timeout, silent);

    if (ours <= 0)
        return ours < 0 ? -1 : REAL(pselect)(count, reads, writes, excepts, timeout, mask);
    return without(reads, REAL(pselect)(count, reads, writes, excepts, &now, mask), silent, ours >> 16);
}

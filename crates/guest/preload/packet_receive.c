/* Receiving from sockets of packets without a ring: recv() and its relatives, all over one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_ether.h>

#include "packet.h"

/* The next packet for a socket, NULL with errno where there is none. */
static struct mr_guest_packet *next(struct mr_socket *one, int flags, uint32_t *length)
{
    for (;;) {
        struct mr_guest_packet *packet = mr_socket_look(one, length);
        int silent = 0;

        if (packet)
            return packet;
        switch (mr_guest_wait()) {
        case MR_GUEST_PACKETS:
            continue;
        case MR_GUEST_SIGNAL:
            errno = EINTR;
            return NULL;
        case MR_GUEST_END:
            if (mr_guest_port()->ended > 2) {
                errno = ENETDOWN;
                return NULL;
            }
            errno = EINTR;
            silent = 1;
            break;
        case MR_GUEST_NOTHING:
            break;
        }
        if ((flags & MSG_DONTWAIT) || one->limited || (fcntl(one->number - 1, F_GETFL) & O_NONBLOCK)) {
            errno = EAGAIN;
            return NULL;
        }
        if (silent)
            return NULL;
    }
}

/* Control messages: the stamp, and what the kernel has said of the packet. */
static void control(const struct mr_socket *one, const struct mr_guest_packet *packet, uint32_t length,
                    struct msghdr *message)
{
    size_t room = message->msg_control ? message->msg_controllen : 0, used = 0;
    struct tpacket_auxdata told = {
        .tp_status = TP_STATUS_USER,
        .tp_len = packet->wire,
        .tp_snaplen = length,
        .tp_net = ETH_HLEN,
    };
    struct timespec exact = {(time_t)(packet->time / 1000000000), (long)(packet->time % 1000000000)};
    struct timeval coarse = {exact.tv_sec, exact.tv_nsec / 1000};
    int nano = one->stamps == SO_TIMESTAMPNS;
    const struct {
        int wanted, level, type;
        const void *data;
        size_t length;
    } parts[] = {
        {one->stamps != 0, SOL_SOCKET, one->stamps, nano ? (const void *)&exact : (const void *)&coarse, 16},
        {one->auxdata, SOL_PACKET, PACKET_AUXDATA, &told, sizeof told},
    };

    for (unsigned i = 0; i < 2; i++) {
        struct cmsghdr *head = (void *)((char *)message->msg_control + used);

        if (!parts[i].wanted)
            continue;
        if (room - used < CMSG_SPACE(parts[i].length)) {
            message->msg_flags |= MSG_CTRUNC;
            break;
        }
        head->cmsg_level = parts[i].level;
        head->cmsg_type = parts[i].type;
        head->cmsg_len = CMSG_LEN(parts[i].length);
        memcpy(CMSG_DATA(head), parts[i].data, parts[i].length);
        used += CMSG_SPACE(parts[i].length);
    }
    message->msg_controllen = used;
}

static ssize_t receive(struct mr_socket *one, struct msghdr *message, int flags)
{
    uint32_t length, at = 0;
    struct mr_guest_packet *packet = next(one, flags, &length);

    if (!packet)
        return -1;
    for (size_t i = 0; i < message->msg_iovlen && at < length; i++) {
        size_t part = message->msg_iov[i].iov_len < length - at ? message->msg_iov[i].iov_len : length - at;

        memcpy(message->msg_iov[i].iov_base, packet->data + at, part);
        at += (uint32_t)part;
    }
    message->msg_flags = at < length ? MSG_TRUNC : 0;
    if (message->msg_name) {
        struct sockaddr_ll name;

        mr_socket_name(packet, &name);
        memcpy(message->msg_name, &name, message->msg_namelen < sizeof name ? message->msg_namelen : sizeof name);
        message->msg_namelen = sizeof name;
    }
    control(one, packet, length, message);
    if (!(flags & MSG_PEEK))
        mr_socket_taken(one, packet);
    return flags & MSG_TRUNC ? (ssize_t)length : (ssize_t)at;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    struct mr_socket *one = mr_socket(fd);

    return one ? receive(one, message, flags) : REAL(recvmsg)(fd, message, flags);
}

ssize_t recvfrom(int fd, void *data, size_t size, int flags, struct sockaddr *name, socklen_t *length)
{
    struct mr_socket *one = mr_socket(fd);
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_name = name};

    if (!one)
        return REAL(recvfrom)(fd, data, size, flags, name, length);
    message.msg_namelen = name && length ? *length : 0;
    ssize_t got = receive(one, &message, flags);
    if (name && length && got >= 0)
        *length = message.msg_namelen;
    return got;
}

ssize_t recv(int fd, void *data, size_t size, int flags)
{
    return mr_socket(fd) ? recvfrom(fd, data, size, flags, NULL, NULL) : REAL(recv)(fd, data, size, flags);
}

ssize_t read(int fd, void *data, size_t size)
{
    return mr_socket(fd) ? recvfrom(fd, data, size, 0, NULL, NULL) : REAL(read)(fd, data, size);
}

/* What a program calls that is compiled with _FORTIFY_SOURCE; where it asks for more than it has room for, the C
 * library's own ends it.
 */
ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *name,
                       socklen_t *length);
ssize_t __read_chk(int fd, void *data, size_t size, size_t room);

ssize_t __recv_chk(int fd, void *data, size_t size, size_t room, int flags)
{
    return size <= room && mr_socket(fd) ? recv(fd, data, size, flags) : REAL(__recv_chk)(fd, data, size, room, flags);
}

ssize_t __recvfrom_chk(int fd, void *data, size_t size, size_t room, int flags, struct sockaddr *name,
                       socklen_t *length)
{
    if (size <= room && mr_socket(fd))
        return recvfrom(fd, data, size, flags, name, length);
    return REAL(__recvfrom_chk)(fd, data, size, room, flags, name, length);
}

ssize_t __read_chk(int fd, void *data, size_t size, size_t room)
{
    return size <= room && mr_socket(fd) ? read(fd, data, size) : REAL(__read_chk)(fd, data, size, room);
}

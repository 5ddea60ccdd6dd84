/* Sockets of packets: made, bound, their options. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/sockios.h>

#include "packet.h"

#define MOST 16
/* The most instructions of a filter (linux/bpf_common.h). */
#define FILTER 4096

static struct mr_socket sockets[MOST];
/* Whether there have been any: a program without pays one comparison. */
static int begun;

struct mr_socket *mr_socket(int fd)
{
    if (!begun || fd < 0)
        return NULL;
    for (int i = 0; i < MOST; i++)
        if (__atomic_load_n(&sockets[i].number, __ATOMIC_ACQUIRE) == fd + 1)
            return &sockets[i];
    return NULL;
}

void mr_socket_name(const struct mr_guest_packet *packet, struct sockaddr_ll *name)
{
    static const uint8_t all[6] = {255, 255, 255, 255, 255, 255};
    uint16_t type = 0;

    memset(name, 0, sizeof *name);
    name->sll_family = AF_PACKET;
    name->sll_ifindex = 1;
    name->sll_hatype = 1; /* ARPHRD_ETHER */
    if (packet->length < ETH_HLEN)
        return;
    memcpy(&type, packet->data + 12, sizeof type);
    name->sll_protocol = ntohs(type) < ETH_P_802_3_MIN ? htons(ETH_P_802_2) : type;
    name->sll_pkttype = !memcmp(packet->data, all, 6) ? PACKET_BROADCAST
                        : packet->data[0] & 1         ? PACKET_MULTICAST
                                                      : PACKET_HOST;
    name->sll_halen = 6;
    memcpy(name->sll_addr, packet->data + 6, 6);
}

struct mr_guest_packet *mr_socket_look(struct mr_socket *socket, uint32_t *length)
{
    struct mr_guest_port *port = mr_guest_port();

    while (port->next < port->count && port->next < MR_GUEST_BURST) {
        struct mr_guest_packet *packet = &port->packet[port->next];
        struct sockaddr_ll name;
        uint32_t wanted = packet->length;

        mr_socket_name(packet, &name);
        if (socket->protocol != htons(ETH_P_ALL) && socket->protocol != name.sll_protocol)
            wanted = 0;
        else if (socket->filtered)
            wanted = mr_filter(socket->filter, socket->filtered, packet);
        if (wanted) {
            *length = wanted < packet->length ? wanted : packet->length;
            return packet;
        }
        mr_guest_take();
    }
    return NULL;
}

int socket(int family, int type, int protocol)
{
    int fd = REAL(socket)(family, type, protocol);

    for (int i = 0; fd >= 0 && family == AF_PACKET && i < MOST; i++) {
        struct mr_socket *one = &sockets[i];
        int free_one = 0;

        if (!__atomic_compare_exchange_n(&one->number, &free_one, -1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        free(one->filter);
        memset(&one->protocol, 0, sizeof *one - offsetof(struct mr_socket, protocol));
        one->protocol = (uint16_t)protocol;
        one->ring.version = TPACKET_V1;
        begun = 1;
        __atomic_store_n(&one->number, fd + 1, __ATOMIC_RELEASE);
        break;
    }
    return fd;
}

int close(int fd)
{
    struct mr_socket *one = mr_socket(fd);

    if (one)
        __atomic_store_n(&one->number, 0, __ATOMIC_RELEASE);
    return REAL(close)(fd);
}

int bind(int fd, const struct sockaddr *name, socklen_t length)
{
    struct mr_socket *one = mr_socket(fd);
    int result = REAL(bind)(fd, name, length);

    if (one && !result && length >= sizeof(struct sockaddr_ll)) {
        uint16_t protocol = ((const struct sockaddr_ll *)(const void *)name)->sll_protocol;

        if (protocol)
            one->protocol = protocol;
    }
    return result;
}

static int wrong(int error)
{
    errno = error;
    return -1;
}

static int attach(struct mr_socket *one, const void *value, socklen_t length)
{
    const struct sock_fprog *program = value;
    struct sock_filter *copy;

    if (length < sizeof *program || !program->len || program->len > FILTER)
        return wrong(EINVAL);
    copy = malloc(program->len * sizeof *copy);
    if (!copy)
        return wrong(ENOMEM);
    memcpy(copy, program->filter, program->len * sizeof *copy);
    free(one->filter);
    one->filter = copy;
    one->filtered = program->len;
    return 0;
}

static int set_ring(struct mr_socket *one, const void *value, socklen_t length)
{
    struct mr_ring ring = {.version = one->ring.version};
    size_t wanted = ring.version == TPACKET_V3 ? sizeof ring.asked : sizeof(struct tpacket_req);

    if (length < wanted)
        return wrong(EINVAL);
    memcpy(&ring.asked, value, wanted);
    if (ring.asked.tp_block_nr && !mr_ring_sane(&ring))
        return wrong(EINVAL);
    if (one->ring.memory && ring.asked.tp_block_nr)
        return wrong(EBUSY);
    one->ring = ring;
    return 0;
}

/* Of the options of a socket of packets those that change what is received; -2: for the host to judge. */
static int set(struct mr_socket *one, int level, int option, const void *value, socklen_t length)
{
    int number = 0;

    if (value && length >= sizeof number)
        memcpy(&number, value, sizeof number);
    if (level == SOL_SOCKET) {
        switch (option) {
        case SO_ATTACH_FILTER: return attach(one, value, length);
        case SO_DETACH_FILTER: return one->filtered = 0;
        case SO_TIMESTAMP:
        case SO_TIMESTAMPNS: return one->stamps = number ? option : 0, 0;
        case SO_RCVTIMEO: return one->limited = 1, 0;
        }
        return -2;
    }
    if (level != SOL_PACKET)
        return -2;
    switch (option) {
    case PACKET_VERSION:
        if (!mr_ring_header(number))
            return wrong(EINVAL);
        if (one->ring.asked.tp_block_nr)
            return wrong(EBUSY);
        one->ring.version = number;
        return 0;
    case PACKET_RX_RING: return set_ring(one, value, length);
    case PACKET_AUXDATA: return one->auxdata = number != 0, 0;
    /* What concerns memory, a card, or packets that this interface does not have. */
    case PACKET_COPY_THRESH:
    case PACKET_DROP_MEMBERSHIP:
    case PACKET_LOSS:
    case PACKET_TIMESTAMP:
    case PACKET_IGNORE_OUTGOING: return 0;
    }
    return -2;
}

int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
    struct mr_socket *one = mr_socket(fd);
    int result = one ? set(one, level, option, value, length) : -2;

    return result == -2 ? REAL(setsockopt)(fd, level, option, value, length) : result;
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
    struct mr_socket *one = mr_socket(fd);
    struct tpacket_stats_v3 told = {0};
    int number;

    if (!one || level != SOL_PACKET || !value || *length < sizeof number)
        return REAL(getsockopt)(fd, level, option, value, length);
    switch (option) {
    case PACKET_STATISTICS:
        told.tp_packets = __atomic_exchange_n(&one->packets, 0, __ATOMIC_RELAXED);
        if (*length > sizeof told)
            *length = sizeof told;
        memcpy(value, &told, *length);
        return 0;
    case PACKET_VERSION:
        number = one->ring.version;
        break;
    case PACKET_HDRLEN:
        memcpy(&number, value, sizeof number);
        switch (number) {
        case TPACKET_V1: number = sizeof(struct tpacket_hdr); break;
        case TPACKET_V2: number = sizeof(struct tpacket2_hdr); break;
        case TPACKET_V3: number = sizeof(struct tpacket3_hdr); break;
        default: return wrong(EINVAL);
        }
        break;
    default: return REAL(getsockopt)(fd, level, option, value, length);
    }
    memcpy(value, &number, sizeof number);
    *length = sizeof number;
    return 0;
}

/* A ring is the guest's own memory. */
static void *map(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    struct mr_socket *one = flags & MAP_ANONYMOUS ? NULL : mr_socket(fd);
    size_t whole = one ? (size_t)one->ring.asked.tp_block_size * one->ring.asked.tp_block_nr : 0;

    if (!one)
        return REAL(mmap)(address, length, protection, flags, fd, offset);
    if (!whole || length != whole || offset || one->ring.memory) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    flags = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) | MAP_PRIVATE | MAP_ANONYMOUS;
    void *memory = REAL(mmap)(address, length, protection | PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory != MAP_FAILED)
        one->ring.memory = memory;
    return memory;
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return map(address, length, protection, flags, fd, offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    return map(address, length, protection, flags, fd, offset);
}

/* A ring that is unmapped is not filled. */
int munmap(void *address, size_t length)
{
    for (int i = 0; begun && i < MOST; i++) {
        uintptr_t memory = (uintptr_t)sockets[i].ring.memory, from = (uintptr_t)address;

        if (memory && memory >= from && memory - from < length)
            sockets[i].ring.memory = NULL;
    }
    return REAL(munmap)(address, length);
}

int ioctl(int fd, unsigned long command, ...)
{
    struct mr_socket *one = mr_socket(fd);
    va_list rest;

    va_start(rest, command);
    void *value = va_arg(rest, void *);
    va_end(rest);
    if (!one || !value || (command != SIOCGSTAMP && command != SIOCGSTAMPNS))
        return REAL(ioctl)(fd, command, value);
    if (!one->last)
        return wrong(ENOENT);
    long stamp[2] = {(long)(one->last / 1000000000), (long)(one->last % 1000000000)};
    if (command == SIOCGSTAMP)
        stamp[1] /= 1000;
    memcpy(value, stamp, sizeof stamp);
    return 0;
}

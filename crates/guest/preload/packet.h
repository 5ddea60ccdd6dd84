/* A guest's own sockets of packets (packet(7)): the chain is the interface that they receive from. The host has a
 * socket behind each, which sends; what is received comes by the guest's port, as for libpcap.
 */
#ifndef MR_GUEST_PACKET_SOCKET_H
#define MR_GUEST_PACKET_SOCKET_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/filter.h>
#include <linux/if_packet.h>

#include "receive.h"

/* The function of this name that would have been called without us. */
#define REAL(name)                                                      \
    ({                                                                  \
        static __typeof__(&name) real;                                  \
        if (!real)                                                      \
            real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);          \
        real;                                                           \
    })

/* A ring that packets are received into (PACKET_RX_RING). */
struct mr_ring {
    int version;               /* TPACKET_V1 to TPACKET_V3 */
    struct tpacket_req3 asked; /* sizes; block_nr is 0 where there is none */
    uint8_t *memory;           /* mapped by the program; NULL before */
    uint32_t next;             /* the frame, or block, that is filled next */
    uint32_t sequence;         /* blocks so far */
};

struct mr_socket {
    int number;        /* its descriptor and 1; 0: free */
    uint16_t protocol; /* what it wants, in network order; 0: nothing */
    int auxdata;       /* PACKET_AUXDATA */
    int stamps;        /* SO_TIMESTAMP or SO_TIMESTAMPNS; 0: neither */
    int limited;       /* SO_RCVTIMEO: it does not wait for ever */
    uint64_t last;     /* stamp of the packet that was received last */
    uint32_t packets;  /* since PACKET_STATISTICS was asked for */
    uint32_t filtered; /* instructions of its filter; 0: none */
    struct sock_filter *filter;
    struct mr_ring ring;
};

/* Ours, or NULL. */
struct mr_socket *mr_socket(int fd);

/* The next packet that it wants, which stays where it is, and how much of it; NULL when the burst is empty. */
struct mr_guest_packet *mr_socket_look(struct mr_socket *socket, uint32_t *length);

/* Says where a packet has come from. */
void mr_socket_name(const struct mr_guest_packet *packet, struct sockaddr_ll *name);

/* Takes the packet that was looked at. */
static inline void mr_socket_taken(struct mr_socket *socket, const struct mr_guest_packet *packet)
{
    socket->last = packet->time;
    socket->packets++;
    mr_guest_take();
}

/* Whether it has something to receive: a packet, or, with a ring, what was filled into that just now. */
int mr_socket_ready(struct mr_socket *socket);

/* Receives into the ring as much as there is and fits; whether the program finds something there. */
int mr_ring_fill(struct mr_socket *socket);

/* Bytes of a packet's header in a ring of this version; 0: there is none such. */
uint32_t mr_ring_header(int version);

/* Whether sizes are sane (packet(7)). */
int mr_ring_sane(const struct mr_ring *ring);

/* How many bytes of a packet a filter wants. It ends whatever it is: jumps lead forward. */
uint32_t mr_filter(const struct sock_filter *filter, uint32_t count, const struct mr_guest_packet *packet);

#endif

/* DPDK as far as it is interposed. Programs receive and transmit by inline functions, which go through the table
 * rte_eth_fp_ops: so its entries are exchanged, when a port is started, for functions of ours. All else is the
 * work of the libraries that the program is linked with, on ports of the null driver: this preload is built for
 * one ABI of DPDK, that of the headers it was compiled with.
 */
#ifndef MR_GUEST_DPDK_H
#define MR_GUEST_DPDK_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "receive.h"

/* An element of a chain has two ports. */
#define MR_PORTS 2

/* A queue of a port: all packets come by queue 0, and all queues send. */
struct queue {
    uint16_t port;
    uint16_t number;
    uint32_t empty;           /* receives in a row that gave nothing */
    struct rte_mempool *pool; /* what packets are received into */
    /* Of the burst `turn`: whether a packet of it has left here, the last one, and whether one has left that it is
     * not in order with: from then on all that leaves does so behind the burst. */
    uint32_t turn;
    uint32_t last;
    uint32_t left;
    uint32_t after;
    uint64_t packets[2];      /* received, sent */
    uint64_t bytes[2];
    uint64_t nombuf; /* packets that no mbuf was free for */
} __rte_cache_aligned;

enum { RECEIVED, SENT };

struct port {
    int started;
    struct queue queue[RTE_MAX_QUEUES_PER_PORT];
};

extern struct port mr_port[MR_PORTS];

/* What stands in an mbuf of a packet of the chain's: the burst and the place in it. Other mbufs have turn 0, or
 * that of a burst that is over.
 */
struct origin {
    uint32_t turn;
    uint32_t index;
};

extern int mr_origin_offset;

static inline struct origin *mr_origin(struct rte_mbuf *mbuf)
{
    return RTE_MBUF_DYNFIELD(mbuf, mr_origin_offset, struct origin *);
}

/* A pool whose mbufs tell when they are freed: the fate of a packet that its guest drops. */
struct rte_mempool *mr_pool(uint16_t port, uint16_t queue, const struct rte_mempool *like);

/* Whether an mbuf is of such a pool. */
int mr_pooled(const struct rte_mempool *pool);

/* Mbufs of a pool that are not in it; 0 where there is no pool. */
uint32_t mr_pool_held(const struct rte_mempool *pool);

/* As rte_eth_rx_burst() and rte_eth_tx_burst() find them in the table. */
uint16_t mr_receive(void *queue, struct rte_mbuf **mbufs, uint16_t most);
uint16_t mr_transmit(void *queue, struct rte_mbuf **mbufs, uint16_t count);

/* The thread that runs is the one that the worker runs: thread pointers are FS base, which the psABI has at fs:0. */
static inline int mr_of_worker(const struct mr_guest_port *port)
{
    uint64_t self;

    __asm__ volatile("movq %%fs:0, %0" : "=r"(self));
    return port->running == self;
}

/* Of a packet in the guest's hands. */
static inline void mr_settle(struct mr_guest_port *port, struct mr_guest_packet *packet, uint16_t fate)
{
    packet->fate = fate;
    port->kept--;
}

/* The packet of the present burst that an mbuf is, if nothing has been decided of it; NULL otherwise. */
static inline struct mr_guest_packet *mr_packet(struct mr_guest_port *port, struct rte_mbuf *mbuf)
{
    const struct origin *origin = mr_origin(mbuf);

    if (origin->turn != port->turn || origin->index >= MR_GUEST_BURST)
        return NULL;
    struct mr_guest_packet *packet = &port->packet[origin->index];
    return packet->fate == MR_GUEST_KEEP ? packet : NULL;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#endif

/* Mbufs of received packets. They are freed by whoever is done with them, which is how a guest drops a packet: so
 * they come from pools without caches whose last word we have.
 */
#include "dpdk.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_mempool.h>
#include <rte_spinlock.h>

#define OPS "millrace"

/* Enough that a guest may hold on to three bursts, each of the largest, and get a fourth. */
#define MBUFS (4 * MR_GUEST_BURST)

struct store {
    rte_spinlock_t lock;
    unsigned count;
    void *free[];
};

static int make(struct rte_mempool *pool)
{
    struct store *store = calloc(1, sizeof *store + pool->size * sizeof store->free[0]);

    if (!store)
        return -ENOMEM;
    rte_spinlock_init(&store->lock);
    pool->pool_data = store;
    return 0;
}

static void unmake(struct rte_mempool *pool)
{
    free(pool->pool_data);
}

static int put(struct rte_mempool *pool, void *const *mbufs, unsigned count)
{
    struct store *store = pool->pool_data;
    struct mr_guest_port *port = mr_guest_port();

    /* Of another thread than the packets' nobody knows whether the burst is still there. */
    if (mr_of_worker(port))
        for (unsigned i = 0; i < count; i++) {
            struct mr_guest_packet *packet = mr_packet(port, mbufs[i]);

            if (packet)
                mr_settle(port, packet, MR_GUEST_DROP);
        }
    rte_spinlock_lock(&store->lock);
    for (unsigned i = 0; i < count; i++)
        store->free[store->count++] = mbufs[i];
    rte_spinlock_unlock(&store->lock);
    return 0;
}

static int get(struct rte_mempool *pool, void **mbufs, unsigned count)
{
    struct store *store = pool->pool_data;
    int result = -ENOBUFS;

    rte_spinlock_lock(&store->lock);
    if (store->count >= count) {
        store->count -= count;
        rte_memcpy(mbufs, &store->free[store->count], count * sizeof *mbufs);
        result = 0;
    }
    rte_spinlock_unlock(&store->lock);
    return result;
}

static unsigned count(const struct rte_mempool *pool)
{
    const struct store *store = pool->pool_data;

    return store->count;
}

static const struct rte_mempool_ops ops = {
    .name = OPS,
    .alloc = make,
    .free = unmake,
    .enqueue = put,
    .dequeue = get,
    .get_count = count,
};

RTE_INIT(mr_pool_register)
{
    rte_mempool_register_ops(&ops);
}

int mr_pooled(const struct rte_mempool *pool)
{
    return rte_mempool_get_ops(pool->ops_index)->enqueue == put;
}

uint32_t mr_pool_held(const struct rte_mempool *pool)
{
    return pool ? pool->size - count(pool) : 0;
}

struct rte_mempool *mr_pool(uint16_t port, uint16_t queue, const struct rte_mempool *like)
{
    char name[RTE_MEMPOOL_NAMESIZE];
    struct rte_mempool *pool;

    snprintf(name, sizeof name, "millrace_%u_%u", port, queue);
    pool = rte_mempool_lookup(name);
    if (pool)
        return pool;
    /* What a program may rely on: the size of its private area and the room for data. */
    struct rte_mempool *theirs = (struct rte_mempool *)(uintptr_t)like;
    return rte_pktmbuf_pool_create_by_ops(name, MBUFS, 0, rte_pktmbuf_priv_size(theirs),
                                          rte_pktmbuf_data_room_size(theirs), like->socket_id, OPS);
}

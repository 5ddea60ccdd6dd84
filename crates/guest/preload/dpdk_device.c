/* Ports: set up by the null driver, then ours. */
#include "dpdk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ether.h>

/* Checksums are what the packets' own are: that a program asks for their check costs nothing here, and is answered
 * with "unknown" in each mbuf, as drivers may.
 */
#define CLAIMED RTE_ETH_RX_OFFLOAD_CHECKSUM

static int ours(uint16_t number)
{
    return number < MR_PORTS;
}

/* The first address stands in the environment; ports count up from it. */
static int address(uint16_t number, struct rte_ether_addr *to)
{
    const char *text = getenv("MILLRACE_DPDK_MAC");

    if (!text || rte_ether_unformat_addr(text, to))
        return 0;
    to->addr_bytes[5] = (uint8_t)(to->addr_bytes[5] + number);
    return 1;
}

int rte_eth_dev_info_get(uint16_t number, struct rte_eth_dev_info *info)
{
    int result = REAL(rte_eth_dev_info_get)(number, info);

    if (!result && ours(number))
        info->rx_offload_capa |= CLAIMED;
    return result;
}

int rte_eth_dev_configure(uint16_t number, uint16_t receive, uint16_t send, const struct rte_eth_conf *wanted)
{
    struct rte_eth_conf conf;
    struct rte_ether_addr own;

    if (!ours(number) || !wanted)
        return REAL(rte_eth_dev_configure)(number, receive, send, wanted);
    conf = *wanted;
    conf.rxmode.offloads &= ~(uint64_t)CLAIMED;
    int result = REAL(rte_eth_dev_configure)(number, receive, send, &conf);
    if (!result && address(number, &own))
        result = rte_eth_dev_default_mac_addr_set(number, &own);
    return result;
}

int rte_eth_rx_queue_setup(uint16_t number, uint16_t queue, uint16_t descriptors, unsigned socket,
                           const struct rte_eth_rxconf *wanted, struct rte_mempool *pool)
{
    struct rte_eth_rxconf conf;

    if (!ours(number))
        return REAL(rte_eth_rx_queue_setup)(number, queue, descriptors, socket, wanted, pool);
    if (wanted) {
        conf = *wanted;
        conf.offloads &= ~(uint64_t)CLAIMED;
        wanted = &conf;
    }
    int result = REAL(rte_eth_rx_queue_setup)(number, queue, descriptors, socket, wanted, pool);
    if (result)
        return result;
    mr_port[number].queue[queue].pool = mr_pool(number, queue, pool);
    if (mr_port[number].queue[queue].pool)
        return 0;
    fprintf(stderr, "millrace: port %u has no memory for its packets: give the guest more (option memory)\n", number);
    return -rte_errno;
}

int rte_eth_dev_start(uint16_t number)
{
    /* The table of queues that the inline functions look into. */
    static void *queues[MR_PORTS][RTE_MAX_QUEUES_PER_PORT];
    int result = REAL(rte_eth_dev_start)(number);

    if (result || !ours(number))
        return result;
    for (uint16_t i = 0; i < RTE_MAX_QUEUES_PER_PORT; i++) {
        mr_port[number].queue[i].port = number;
        mr_port[number].queue[i].number = i;
        queues[number][i] = &mr_port[number].queue[i];
    }
    struct rte_eth_fp_ops *table = &rte_eth_fp_ops[number];
    table->rxq.data = queues[number];
    table->txq.data = queues[number];
    table->rx_pkt_burst = mr_receive;
    table->tx_pkt_burst = mr_transmit;
    return 0;
}

int rte_eth_stats_get(uint16_t number, struct rte_eth_stats *stats)
{
    int result = REAL(rte_eth_stats_get)(number, stats);

    if (result || !ours(number))
        return result;
    memset(stats, 0, sizeof *stats);
    for (uint16_t i = 0; i < RTE_MAX_QUEUES_PER_PORT; i++) {
        const struct queue *queue = &mr_port[number].queue[i];

        stats->ipackets += queue->packets[RECEIVED];
        stats->opackets += queue->packets[SENT];
        stats->ibytes += queue->bytes[RECEIVED];
        stats->obytes += queue->bytes[SENT];
        stats->rx_nombuf += queue->nombuf;
    }
    return 0;
}

int rte_eth_stats_reset(uint16_t number)
{
    int result = REAL(rte_eth_stats_reset)(number);

    for (uint16_t i = 0; !result && ours(number) && i < RTE_MAX_QUEUES_PER_PORT; i++) {
        struct queue *queue = &mr_port[number].queue[i];

        memset(queue->packets, 0, sizeof queue->packets);
        memset(queue->bytes, 0, sizeof queue->bytes);
        queue->nombuf = 0;
    }
    return result;
}

/* A device: found, set up, started, asked, removed. Results are 0 or a negative errno. */
#include "shim.h"

#include <errno.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_thash.h>

/* Headroom beyond DPDK's own, so that a packet can grow by 256 bytes as on other ports. */
#define MORE_HEADROOM 128

/*
 * Buffers that each thread keeps at hand, so that most are taken and given back without the pool's ring,
 * whose counters all threads write.
 */
#define CACHE 256

int mr_probe(const char *devargs, const char *name, uint16_t *port)
{
	int status = rte_dev_probe(devargs);
	if (status < 0)
		return status;
	return rte_eth_dev_get_port_by_name(name, port);
}

int mr_remove(uint16_t port)
{
	struct rte_eth_dev_info info;
	int status = rte_eth_dev_info_get(port, &info);
	struct rte_device *device = status == 0 ? info.device : NULL;
	status = rte_eth_dev_close(port);
	if (device != NULL)
		status = rte_dev_remove(device);
	return status;
}

/* The types and modifiers that hash these fields, as far as the device has them; 0 where it cannot. */
static uint64_t types_of(unsigned fields, uint64_t can)
{
	/* Without the types of transports their packets are hashed as IP, by their addresses. */
	const uint64_t transports = RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP;
	uint64_t ip = RTE_ETH_RSS_IP & can, only = 0;
	switch (fields) {
	case MR_ALL:
		return (RTE_ETH_RSS_IP | transports) & can;
	case MR_SOURCE:
		only = RTE_ETH_RSS_L3_SRC_ONLY;
		break;
	case MR_DESTINATION:
		only = RTE_ETH_RSS_L3_DST_ONLY;
		break;
	default:
		break;
	}
	return ip != 0 && (can & only) == only ? ip | only : 0;
}

int mr_limits(uint16_t port, struct mr_limits *limits)
{
	struct rte_eth_dev_info info;
	int status = rte_eth_dev_info_get(port, &info);
	if (status < 0)
		return status;
	*limits = (struct mr_limits){
		.rx_queues = info.max_rx_queues,
		.tx_queues = info.max_tx_queues,
		.table_entries = info.reta_size,
		.key_bytes = info.hash_key_size,
		.hash_types = info.flow_type_rss_offloads,
		.longest = info.max_rx_pktlen,
	};
	for (unsigned fields = 0; fields < MR_FIELDS; fields++)
		limits->hashes[fields] = types_of(fields, info.flow_type_rss_offloads) != 0;
	strncpy(limits->driver, info.driver_name != NULL ? info.driver_name : "", MR_NAME - 1);
	return 0;
}

static int set_up(uint16_t port, struct mr_setup *setup, struct rte_mempool *pool)
{
	struct rte_eth_dev_info info;
	int status = rte_eth_dev_info_get(port, &info);
	if (status < 0)
		return status;
	struct rte_eth_conf conf = { 0 };
	if (setup->rss) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = types_of(setup->fields, info.flow_type_rss_offloads);
		if (setup->key_bytes > 0) {
			conf.rx_adv_conf.rss_conf.rss_key = setup->key;
			conf.rx_adv_conf.rss_conf.rss_key_len = (uint8_t)setup->key_bytes;
		}
	}
	status = rte_eth_dev_configure(port, setup->rx_queues, setup->tx_queues, &conf);
	if (status < 0)
		return status;
	uint16_t rx = setup->descriptors, tx = setup->descriptors;
	status = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
	if (status < 0)
		return status;
	setup->descriptors = rx > tx ? rx : tx;
	int node = rte_eth_dev_socket_id(port);
	for (uint16_t queue = 0; queue < setup->rx_queues; queue++) {
		status = rte_eth_rx_queue_setup(port, queue, rx, node, NULL, pool);
		if (status < 0)
			return status;
	}
	for (uint16_t queue = 0; queue < setup->tx_queues; queue++) {
		status = rte_eth_tx_queue_setup(port, queue, tx, node, NULL);
		if (status < 0)
			return status;
	}
	if (setup->mtu > 0) {
		status = rte_eth_dev_set_mtu(port, setup->mtu);
		/* Devices of software mostly have no MTU of their own. */
		if (status < 0 && status != -ENOTSUP)
			return status;
	}
	status = rte_eth_dev_start(port);
	if (status < 0 || setup->key_bytes == 0)
		return status;
	/* Some drivers take a key only when the device runs; others have it already. */
	status = rte_eth_dev_rss_hash_update(port, &conf.rx_adv_conf.rss_conf);
	return status == -ENOTSUP ? 0 : status;
}

int mr_start(uint16_t port, struct mr_setup *setup, const char *pool_name, void **pool)
{
	int node = rte_eth_dev_socket_id(port);
	struct rte_mempool *made = rte_pktmbuf_pool_create(pool_name, setup->buffers, CACHE, MORE_HEADROOM,
							   (uint16_t)(RTE_PKTMBUF_HEADROOM + setup->room), node);
	if (made == NULL)
		return rte_errno > 0 ? -rte_errno : -ENOMEM;
	int status = set_up(port, setup, made);
	if (status < 0) {
		rte_mempool_free(made);
		return status;
	}
	*pool = made;
	return 0;
}

/* Writes the indirection table. */
int mr_table(uint16_t port, const uint16_t *queues, uint16_t entries)
{
	struct rte_eth_rss_reta_entry64 table[RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE] = { 0 };
	if (entries > RTE_ETH_RSS_RETA_SIZE_512)
		return -EINVAL;
	for (uint16_t i = 0; i < entries; i++) {
		struct rte_eth_rss_reta_entry64 *group = &table[i / RTE_ETH_RETA_GROUP_SIZE];
		group->mask |= UINT64_C(1) << (i % RTE_ETH_RETA_GROUP_SIZE);
		group->reta[i % RTE_ETH_RETA_GROUP_SIZE] = queues[i];
	}
	return rte_eth_dev_rss_reta_update(port, table, entries);
}

/* Reads key, hashed types and table back from the device. */
int mr_rss(uint16_t port, uint8_t *key, uint16_t key_bytes, uint64_t *types, uint16_t *queues, uint16_t entries)
{
	struct rte_eth_rss_conf conf = { .rss_key = key, .rss_key_len = (uint8_t)key_bytes };
	int status = rte_eth_dev_rss_hash_conf_get(port, &conf);
	if (status < 0)
		return status;
	*types = conf.rss_hf;
	struct rte_eth_rss_reta_entry64 table[RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE] = { 0 };
	if (entries > RTE_ETH_RSS_RETA_SIZE_512)
		return -EINVAL;
	for (uint16_t i = 0; i < entries; i++)
		table[i / RTE_ETH_RETA_GROUP_SIZE].mask |= UINT64_C(1) << (i % RTE_ETH_RETA_GROUP_SIZE);
	status = rte_eth_dev_rss_reta_query(port, table, entries);
	for (uint16_t i = 0; i < entries; i++)
		queues[i] = table[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	return status;
}

/* 1 when the link is up, 0 when it is down; with `wait` it may take the device nine seconds to know. */
int mr_link(uint16_t port, int wait)
{
	struct rte_eth_link link = { 0 };
	int status = wait ? rte_eth_link_get(port, &link) : rte_eth_link_get_nowait(port, &link);
	if (status < 0)
		return status;
	return link.link_status == RTE_ETH_LINK_UP;
}

int mr_mtu(uint16_t port, uint16_t *mtu)
{
	return rte_eth_dev_get_mtu(port, mtu);
}

int mr_promiscuous(uint16_t port)
{
	return rte_eth_promiscuous_enable(port);
}

int mr_stats(uint16_t port, struct mr_stats *stats)
{
	struct rte_eth_stats all = { 0 };
	int status = rte_eth_stats_get(port, &all);
	if (status < 0)
		return status;
	*stats = (struct mr_stats){
		.missed = all.imissed + all.rx_nombuf,
		.bad = all.ierrors,
		.refused = all.oerrors,
	};
	return 0;
}

void mr_stop(uint16_t port)
{
	(void)rte_eth_dev_stop(port);
}

/* Frees a pool; 0 when some of its buffers are still elsewhere, and then it stays. */
int mr_free_pool(void *pool)
{
	if (!rte_mempool_full(pool))
		return 0;
	rte_mempool_free(pool);
	return 1;
}

/*
 * DPDK's own software hash, of words in the processor's order and a key of one word more: what tests hold
 * ours against. It reads the key by words.
 */
uint32_t mr_hash(const uint32_t *words, unsigned count, const uint8_t *key)
{
	uint32_t aligned[MR_KEY / sizeof(uint32_t)] = { 0 };
	if (count >= MR_KEY / sizeof(uint32_t))
		return 0;
	memcpy(aligned, key, (count + 1) * sizeof(uint32_t));
	return rte_softrss((uint32_t *)words, count, (const uint8_t *)aligned);
}

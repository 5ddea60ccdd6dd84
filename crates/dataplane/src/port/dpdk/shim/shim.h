/*
 * What Millrace calls of DPDK. The functions that move packets are static inline in DPDK's headers, and
 * struct rte_mbuf is laid out by them, so both stay on this side; raw.rs declares the same in Rust.
 */
#ifndef MILLRACE_DPDK_SHIM_H
#define MILLRACE_DPDK_SHIM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a driver's name that are kept. */
#define MR_NAME 64
/* Bytes of an RSS key that are kept: the longest that a driver of DPDK 22.11 has is 52. */
#define MR_KEY 64

/* What can be hashed: all fields, both addresses, or one of them. */
enum mr_fields { MR_ALL, MR_ADDRESSES, MR_SOURCE, MR_DESTINATION, MR_FIELDS };

/* A device as its driver describes it. */
struct mr_limits {
	uint16_t rx_queues;
	uint16_t tx_queues;
	uint16_t table_entries; /* of its RSS indirection table; 0 without one */
	uint16_t key_bytes; /* of its RSS key; 0 where it takes none */
	uint64_t hash_types; /* RTE_ETH_RSS_* that it can hash */
	uint32_t longest; /* frame, bytes */
	uint8_t hashes[MR_FIELDS]; /* whether it can hash these fields */
	char driver[MR_NAME];
};

/* How a device is set up. */
struct mr_setup {
	uint16_t rx_queues;
	uint16_t tx_queues;
	uint16_t descriptors; /* of each ring, as near as the device can */
	uint16_t mtu; /* 0: as it is */
	uint16_t room; /* bytes of a buffer behind its headroom */
	uint32_t buffers;
	uint16_t rss; /* spread packets by RSS */
	uint16_t fields; /* of enum mr_fields */
	uint16_t key_bytes; /* of `key`; 0 for the driver's own */
	uint8_t key[MR_KEY];
};

/* A received packet; mbuf is the buffer that goes back. */
struct mr_frame {
	void *mbuf;
	uint8_t *data;
	uint8_t *end;
	uint8_t *floor;
	uint8_t *ceiling;
	uint64_t stamp; /* ns since the epoch; 0 for none */
};

/* A packet to send. In: mbuf is the buffer that it lies in, or NULL to have it copied. Out: kept. */
struct mr_packet {
	void *mbuf;
	const uint8_t *data;
	uint32_t length;
	uint32_t kept;
};

/* Counts of a device since it was started. */
struct mr_stats {
	uint64_t missed; /* rings were full, or no buffer was free */
	uint64_t bad; /* came damaged */
	uint64_t refused; /* could not be sent */
};

/* Frames that a device sends, bytes. Drivers lose others without a word, or stop at them for good. */
struct mr_sizes {
	uint32_t shortest;
	uint32_t longest;
	uint32_t tagged; /* the longest that begins with a VLAN tag (802.1Q) */
};

/* Where mbufs carry the time when they came; no flag, no time. */
struct mr_stamps {
	uint64_t flag;
	uint32_t offset;
};

int mr_init(int argc, char **argv);
int mr_register(void);
void mr_unregister(void);
size_t mr_said(char *to, size_t room);
int mr_probe(const char *devargs, const char *name, uint16_t *port);
int mr_remove(uint16_t port);
int mr_limits(uint16_t port, struct mr_limits *limits);
int mr_start(uint16_t port, struct mr_setup *setup, const char *pool_name, void **pool);
int mr_table(uint16_t port, const uint16_t *queues, uint16_t entries);
int mr_rss(uint16_t port, uint8_t *key, uint16_t key_bytes, uint64_t *types, uint16_t *table, uint16_t entries);
int mr_link(uint16_t port, int wait);
int mr_mtu(uint16_t port, uint16_t *mtu);
int mr_promiscuous(uint16_t port);
int mr_stats(uint16_t port, struct mr_stats *stats);
void mr_stop(uint16_t port);
int mr_free_pool(void *pool);
uint32_t mr_hash(const uint32_t *words, unsigned count, const uint8_t *key);

int mr_stamps(struct mr_stamps *stamps);
unsigned mr_receive(uint16_t port, uint16_t queue, void *pool, const struct mr_stamps *stamps, struct mr_frame *to,
		    unsigned most, uint64_t *unfit);
unsigned mr_transmit(uint16_t port, uint16_t queue, void *pool, const struct mr_sizes *sizes,
		     struct mr_packet *packets, unsigned count, uint64_t *refused);
unsigned mr_prepare(void *pool, const struct mr_sizes *sizes, struct mr_packet *packets, unsigned count, void **mbufs,
		    uint64_t *refused);
unsigned mr_send(uint16_t port, uint16_t queue, void **mbufs, unsigned count);
void mr_free(void **mbufs, unsigned count);
int mr_sent(uint16_t port, uint16_t queue, uint16_t descriptors);

#endif

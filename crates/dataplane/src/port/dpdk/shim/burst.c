/* Packets: received, sent, given back, a burst at a time. */
#include "shim.h"

#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

/* The most packets that one call of a driver gets: arrays of this many lie on the stack. */
#define MOST 64

/* Bytes of memory before buf_addr that belong to the buffer too: the pool's private area (device.c). */
static uint8_t *floor_of(struct rte_mbuf *mbuf)
{
	return (uint8_t *)mbuf->buf_addr - rte_pktmbuf_priv_size(mbuf->pool);
}

/*
 * Where drivers of this process put the time when a packet came; 0 when one has asked for a place. Only
 * net_pcap is read: its stamps are microseconds since the epoch, those of other devices count ticks of a
 * clock of theirs.
 */
int mr_stamps(struct mr_stamps *stamps)
{
	int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);
	int offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
	if (bit < 0 || offset < 0)
		return -ENOENT;
	*stamps = (struct mr_stamps){ .flag = UINT64_C(1) << bit, .offset = (uint32_t)offset };
	return 0;
}

static uint64_t stamp_of(const struct rte_mbuf *mbuf, const struct mr_stamps *stamps)
{
	if ((mbuf->ol_flags & stamps->flag) == 0)
		return 0;
	return *RTE_MBUF_DYNFIELD(mbuf, stamps->offset, const rte_mbuf_timestamp_t *) * 1000;
}

/* One segment of memory that is nobody else's, with the tag that the device took out; NULL if it cannot be. */
static struct rte_mbuf *present(struct rte_mbuf *mbuf, struct rte_mempool *pool)
{
	if (unlikely(!RTE_MBUF_DIRECT(mbuf) || rte_mbuf_refcnt_read(mbuf) != 1)) {
		struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, pool, 0, UINT32_MAX);
		rte_pktmbuf_free(mbuf);
		if (copy == NULL)
			return NULL;
		mbuf = copy;
	}
	if (unlikely(mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf) < 0)) {
		rte_pktmbuf_free(mbuf);
		return NULL;
	}
	if (unlikely((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0 && rte_vlan_insert(&mbuf) < 0)) {
		rte_pktmbuf_free(mbuf);
		return NULL;
	}
	return mbuf;
}

unsigned mr_receive(uint16_t port, uint16_t queue, void *pool, const struct mr_stamps *stamps, struct mr_frame *to,
		    unsigned most, uint64_t *unfit)
{
	struct rte_mbuf *mbufs[MOST];
	unsigned count = 0;
	uint16_t got = rte_eth_rx_burst(port, queue, mbufs, (uint16_t)(most < MOST ? most : MOST));
	for (uint16_t i = 0; i < got; i++)
		rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
	for (uint16_t i = 0; i < got; i++) {
		uint64_t stamp = stamp_of(mbufs[i], stamps);
		struct rte_mbuf *mbuf = present(mbufs[i], pool);
		if (mbuf == NULL) {
			(*unfit)++;
			continue;
		}
		to[count++] = (struct mr_frame){
			.mbuf = mbuf,
			.data = rte_pktmbuf_mtod(mbuf, uint8_t *),
			.end = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, mbuf->data_len),
			.floor = floor_of(mbuf),
			.ceiling = (uint8_t *)mbuf->buf_addr + mbuf->buf_len,
			.stamp = stamp,
		};
	}
	return count;
}

/* Puts a packet into the buffer that it already lies in; 0 where it begins before what DPDK calls the buffer. */
static int in_place(struct rte_mbuf *mbuf, const struct mr_packet *packet)
{
	const uint8_t *base = mbuf->buf_addr;
	if (packet->data < base || packet->data + packet->length > base + mbuf->buf_len)
		return 0;
	mbuf->data_off = (uint16_t)(packet->data - base);
	mbuf->data_len = (uint16_t)packet->length;
	mbuf->pkt_len = packet->length;
	/* Nothing is left to the device: checksums are in the packet. */
	mbuf->ol_flags = 0;
	mbuf->tx_offload = 0;
	return 1;
}

/* A copy of a packet that fits; NULL when no buffer is free. */
static struct rte_mbuf *copied(struct rte_mempool *pool, const struct mr_packet *packet)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	if (mbuf == NULL)
		return NULL;
	/* A long packet needs the headroom that a fresh buffer keeps free. */
	if (packet->length > rte_pktmbuf_tailroom(mbuf))
		mbuf->data_off = 0;
	mbuf->data_len = (uint16_t)packet->length;
	mbuf->pkt_len = packet->length;
	memcpy(rte_pktmbuf_mtod(mbuf, void *), packet->data, packet->length);
	return mbuf;
}

/* Whether the device sends a packet of this length. */
static int sends(const struct mr_sizes *sizes, const struct mr_packet *packet)
{
	if (packet->length < sizes->shortest || packet->length > sizes->tagged)
		return 0;
	return packet->length <= sizes->longest || (packet->data[12] == 0x81 && packet->data[13] == 0x00);
}

/*
 * Puts a packet into a buffer, its own where it may be kept. *mbuf is NULL where none is free; 0 where no buffer
 * would do: the packet is none that the device sends, or longer than a buffer, its headroom included.
 */
static int buffered(struct rte_mempool *pool, const struct mr_sizes *sizes, struct mr_packet *packet,
		    struct rte_mbuf **mbuf)
{
	*mbuf = NULL;
	packet->kept = 0;
	if (!sends(sizes, packet))
		return 0;
	packet->kept = packet->mbuf != NULL && in_place(packet->mbuf, packet);
	if (!packet->kept && packet->length > rte_pktmbuf_data_room_size(pool))
		return 0;
	*mbuf = packet->kept ? packet->mbuf : copied(pool, packet);
	return 1;
}

/* Takes packets from the front and says how many. Buffers of the others are as they were. */
unsigned mr_transmit(uint16_t port, uint16_t queue, void *pool, const struct mr_sizes *sizes,
		     struct mr_packet *packets, unsigned count, uint64_t *refused)
{
	struct rte_mbuf *mbufs[MOST];
	unsigned of[MOST]; /* which packet each one is */
	unsigned done = 0;
	while (done < count) {
		uint16_t ready = 0;
		unsigned next = done;
		for (; ready < MOST && next < count; next++) {
			struct rte_mbuf *mbuf;
			if (!buffered(pool, sizes, &packets[next], &mbuf))
				continue;
			if (mbuf == NULL)
				break;
			of[ready] = next;
			mbufs[ready++] = mbuf;
		}
		uint16_t taken = ready > 0 ? rte_eth_tx_burst(port, queue, mbufs, ready) : 0;
		for (uint16_t i = taken; i < ready; i++) {
			if (!packets[of[i]].kept)
				rte_pktmbuf_free(mbufs[i]);
			packets[of[i]].kept = 0;
		}
		unsigned end = taken < ready ? of[taken] : next;
		*refused += end - done - taken;
		if (end == done || taken < ready)
			return end;
		done = end;
	}
	return done;
}

/*
 * The first half of a transmit: puts packets into buffers, which are the caller's then. `mbufs` has a place for each
 * packet, which is NULL for one that cannot be sent. The packets taken.
 */
unsigned mr_prepare(void *pool, const struct mr_sizes *sizes, struct mr_packet *packets, unsigned count, void **mbufs,
		    uint64_t *refused)
{
	unsigned done = 0;
	for (; done < count; done++) {
		struct rte_mbuf *mbuf;
		int possible = buffered(pool, sizes, &packets[done], &mbuf);
		mbufs[done] = mbuf;
		if (!possible)
			(*refused)++;
		else if (mbuf == NULL)
			break;
	}
	return done;
}

/* The second half: the buffers taken, from the front. */
unsigned mr_send(uint16_t port, uint16_t queue, void **mbufs, unsigned count)
{
	return rte_eth_tx_burst(port, queue, (struct rte_mbuf **)mbufs, (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX));
}

void mr_free(void **mbufs, unsigned count)
{
	rte_pktmbuf_free_bulk((struct rte_mbuf **)mbufs, count);
}

/* Whether the descriptor that was written last is done with; 1 where the device does not say. */
int mr_sent(uint16_t port, uint16_t queue, uint16_t descriptors)
{
	int status = rte_eth_tx_descriptor_status(port, queue, (uint16_t)(descriptors - 1));
	return status != RTE_ETH_TX_DESC_FULL;
}

/*
 * Drives src/port/dpdk/shim under AddressSanitizer and UndefinedBehaviorSanitizer, over devices of software:
 * packets that fit, that grow in place, that are too long, that come in several segments; rings full and empty.
 * DPDK itself is not instrumented, and its buffers lie in memory that the sanitizers do not know: what they see is
 * the shim's own arrays, strings and arithmetic. Threads meet in Rust only (port/dpdk/hub), by locks and rings of the
 * libraries there, so that there is nothing here for ThreadSanitizer.
 */
#include "../src/port/dpdk/shim/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                           \
	do {                                                                  \
		if (!(what)) {                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
			exit(1);                                              \
		}                                                             \
	} while (0)

#define BURST 100 /* more than the shim gives a driver at once */
#define ROOM 2048
#define LONGEST 9000

static const struct mr_sizes any = { 0, UINT32_MAX, UINT32_MAX };

struct device {
	uint16_t port;
	void *pool;
	struct mr_setup setup;
};

static struct device opened(const char *devargs, const char *name)
{
	struct device device = { .setup = { .rx_queues = 1, .tx_queues = 1, .descriptors = 64, .room = ROOM, .buffers = 4096 } };
	struct mr_limits limits;
	static int pools;
	char pool[32];
	snprintf(pool, sizeof(pool), "test-%d", pools++);
	CHECK(mr_probe(devargs, name, &device.port) == 0);
	CHECK(mr_limits(device.port, &limits) == 0);
	CHECK(limits.rx_queues >= 1 && limits.tx_queues >= 1);
	CHECK(memchr(limits.driver, 0, sizeof(limits.driver)) != NULL);
	if (limits.hash_types != 0) {
		device.setup.rss = 1;
		device.setup.key_bytes = 40;
		memset(device.setup.key, 0x5a, 40);
	}
	CHECK(mr_start(device.port, &device.setup, pool, &device.pool) == 0);
	mr_promiscuous(device.port);
	return device;
}

static void closed(struct device *device)
{
	char said[64];
	mr_stop(device->port);
	CHECK(mr_remove(device->port) == 0);
	CHECK(mr_free_pool(device->pool) == 1);
	CHECK(mr_said(said, sizeof(said)) <= sizeof(said));
}

static unsigned receive(const struct device *device, struct mr_frame *frames, unsigned most, uint64_t *unfit)
{
	struct mr_stamps stamps = { 0 };
	return mr_receive(device->port, 0, device->pool, &stamps, frames, most, unfit);
}

static void free_all(struct mr_frame *frames, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		mr_free(&frames[i].mbuf, 1);
}

/* Bytes of nobody's buffer go out, come in again, grow into the headroom and go out in place. */
static void around_a_ring(void)
{
	static uint8_t bytes[BURST][LONGEST];
	struct mr_packet packets[BURST];
	struct mr_frame frames[BURST];
	uint64_t refused = 0, unfit = 0;
	struct device ring = opened("net_ring0", "net_ring0");

	for (unsigned i = 0; i < BURST; i++) {
		memset(bytes[i], (int)i, sizeof(bytes[i]));
		/* Every seventh is too long for any buffer. */
		packets[i] = (struct mr_packet){ .data = bytes[i], .length = i % 7 == 6 ? LONGEST : 14 + i };
	}
	CHECK(mr_transmit(ring.port, 0, ring.pool, &any, packets, BURST, &refused) == BURST);
	CHECK(refused == BURST / 7);
	unsigned came = 0;
	for (unsigned got; (got = receive(&ring, frames + came, BURST - came, &unfit)) > 0; came += got)
		CHECK(came + got <= BURST);
	CHECK(came == BURST - refused && unfit == 0);
	for (unsigned i = 0; i < came; i++) {
		CHECK(frames[i].data - frames[i].floor >= 256 && frames[i].ceiling - frames[i].end >= 256);
		/* In place, from the lowest byte that DPDK takes for the buffer, or before it, which is copied. */
		unsigned grown = i % 3 == 0 ? 256 : 128;
		memset(frames[i].data - grown, 0xee, grown);
		packets[i] = (struct mr_packet){ .mbuf = frames[i].mbuf,
						 .data = frames[i].data - grown,
						 .length = (uint32_t)(frames[i].end - frames[i].data) + grown };
	}
	CHECK(mr_transmit(ring.port, 0, ring.pool, &any, packets, came, &refused) == came);
	for (unsigned i = 0; i < came; i++) {
		CHECK(packets[i].kept == (i % 3 != 0));
		if (!packets[i].kept)
			mr_free(&frames[i].mbuf, 1);
	}

	/* The same in two halves, as workers do that share a queue. */
	void *mbufs[BURST];
	unsigned again = receive(&ring, frames, 64, &unfit);
	CHECK(again > 0);
	for (unsigned i = 0; i < again; i++)
		packets[i] = (struct mr_packet){ .mbuf = frames[i].mbuf,
						 .data = frames[i].data,
						 .length = (uint32_t)(frames[i].end - frames[i].data) };
	packets[again - 1] = (struct mr_packet){ .data = bytes[0], .length = LONGEST };
	uint64_t before = refused;
	CHECK(mr_prepare(ring.pool, &any, packets, again, mbufs, &refused) == again);
	CHECK(refused == before + 1 && mbufs[again - 1] == NULL);
	CHECK(mr_send(ring.port, 0, mbufs, again - 1) == again - 1);
	mr_free(&frames[again - 1].mbuf, 1);

	while ((again = receive(&ring, frames, BURST, &unfit)) > 0)
		free_all(frames, again);
	/* Frames of a wire: 13 bytes, 14, 64, 65, and 65 and 69 with a tag. */
	const struct mr_sizes wire = { 14, 64, 68 };
	const uint32_t lengths[6] = { 13, 14, 64, 65, 65, 69 };
	for (unsigned i = 0; i < 6; i++) {
		bytes[i][12] = i < 4 ? 0x08 : 0x81;
		bytes[i][13] = 0;
		packets[i] = (struct mr_packet){ .data = bytes[i], .length = lengths[i] };
	}
	before = refused;
	CHECK(mr_transmit(ring.port, 0, ring.pool, &wire, packets, 6, &refused) == 6);
	CHECK(refused == before + 3);
	again = receive(&ring, frames, BURST, &unfit);
	CHECK(again == 3 && frames[2].end - frames[2].data == 65);
	free_all(frames, again);
	/* A ring that is full takes some, and the rest are as they were. */
	unsigned taken = 0;
	for (unsigned i = 0; i < BURST; i++)
		packets[i] = (struct mr_packet){ .data = bytes[i], .length = 60 };
	for (unsigned i = 0; i < 20; i++)
		taken += mr_transmit(ring.port, 0, ring.pool, &any, packets, BURST, &refused);
	CHECK(taken < 20 * BURST);
	while ((again = receive(&ring, frames, BURST, &unfit)) > 0) {
		CHECK(again <= 64);
		taken -= again;
		free_all(frames, again);
	}
	CHECK(taken == 0 && mr_sent(ring.port, 0, ring.setup.descriptors) != 0);
	closed(&ring);
}

static void record(FILE *file, uint32_t length)
{
	uint32_t head[4] = { 1, 2, length, length };
	fwrite(head, sizeof(head), 1, file);
	for (uint32_t i = 0; i < length; i++)
		fputc((int)(i & 0xff), file);
}

/* A packet in several segments is put into one, or counted where it does not fit. */
static void segments(const char *folder)
{
	char path[512], devargs[600];
	struct mr_frame frames[8];
	struct mr_stats stats;
	uint64_t unfit = 0;
	snprintf(path, sizeof(path), "%s/long.pcap", folder);
	snprintf(devargs, sizeof(devargs), "net_pcap0,rx_pcap=%s", path);
	FILE *file = fopen(path, "w");
	CHECK(file != NULL);
	const uint32_t header[6] = { 0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1 };
	fwrite(header, sizeof(header), 1, file);
	record(file, 60);
	record(file, ROOM + 100); /* in two segments, and longer than a buffer */
	record(file, 14);
	CHECK(fclose(file) == 0);
	struct device pcap = opened(devargs, "net_pcap0");
	unsigned count = receive(&pcap, frames, 8, &unfit);
	CHECK(count == 2 && unfit == 1);
	CHECK(frames[0].end - frames[0].data == 60 && frames[1].end - frames[1].data == 14);
	CHECK(frames[1].data[13] == 13);
	free_all(frames, count);
	CHECK(receive(&pcap, frames, 8, &unfit) == 0);
	CHECK(mr_stats(pcap.port, &stats) == 0);
	CHECK(mr_link(pcap.port, 0) == 1);
	closed(&pcap);
}

/* Key and table are told and read back. */
static void settings(void)
{
	struct device null = opened("net_null0", "net_null0");
	uint8_t key[40];
	uint16_t table[600];
	uint64_t types;
	for (unsigned i = 0; i < 600; i++)
		table[i] = 0;
	CHECK(mr_table(null.port, table, 128) == 0);
	CHECK(mr_table(null.port, table, 600) < 0);
	CHECK(mr_rss(null.port, key, sizeof(key), &types, table, 128) == 0);
	CHECK(key[0] == 0x5a && key[39] == 0x5a && types != 0);
	CHECK(mr_rss(null.port, key, sizeof(key), &types, table, 600) < 0);
	const uint32_t words[3] = { 1, 2, 4 };
	CHECK(mr_hash(words, 3, null.setup.key) != 0 && mr_hash(words, 100, null.setup.key) == 0);
	closed(&null);
}

int main(int argc, char **argv)
{
	char *arguments[] = { "test", "--no-huge", "--no-shconf", "--no-telemetry", "--no-pci", "--iova-mode=va",
			      "--log-level=warning", "-m128", "--file-prefix=millrace-shim", "--lcores=0@(0)", NULL };
	uint16_t port;
	char said[4096];
	CHECK(argc == 2);
	CHECK(mr_init(sizeof(arguments) / sizeof(*arguments) - 1, arguments) == 0);
	CHECK(mr_probe("net_unheard0", "net_unheard0", &port) < 0);
	CHECK(mr_said(said, 8) <= 8);
	around_a_ring();
	segments(argv[1]);
	settings();
	puts("the shim holds");
	return 0;
}

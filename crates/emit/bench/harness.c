/* Times modules against each other on the same packets, interleaved, in one process.
 *
 * Usage: harness FLOWS ROUNDS NAME=MODULE…
 * Packets are 64-byte IPv4 TCP, one flow a source address. A pass over one packet of each flow, in
 * order, fills the tables; what is timed is as many packets again of flows drawn at random. Prints for each module the median of nanoseconds a packet with and without the
 * prefetching passes, and the ratio to the first module's, round by round, as median and range.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi.h"

enum { BURST = 32, MODULES = 8, ROUNDS = 101, FRAME = 64 };

struct subject {
	const char *name;
	const struct mr_module *module;
	struct mr_instance *self;
	double ns[2][ROUNDS];
};

static u64 state = 88172645463325252ull;

/* Marsaglia's xorshift64. */
static u64 draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* This thread's processor time: what else the machine does costs at most cache. */
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *of, int n)
{
	double sorted[ROUNDS];

	memcpy(sorted, of, (size_t)n * sizeof(*of));
	qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

static void build_frame(u8 *frame, u32 source)
{
	u32 sum = 0;

	memset(frame, 0, FRAME);
	frame[12] = 8;
	frame[14] = 0x45;
	frame[17] = FRAME - 14;
	frame[22] = 64;
	frame[23] = 6;
	source = __builtin_bswap32(source);
	memcpy(frame + 26, &source, 4);
	memcpy(frame + 30, "\xc0\x00\x02\x01", 4);
	frame[34] = 0x10;
	frame[37] = 100;
	frame[46] = 0x50;
	for (int i = 14; i < 34; i += 2)
		sum += (u32)frame[i] << 8 | frame[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	frame[24] = (u8)(~sum >> 8);
	frame[25] = (u8)~sum;
}

static struct mr_packet *make_packets(u8 *frames, u32 flows, u32 packets)
{
	struct mr_packet *packet = calloc(packets, sizeof(*packet));

	for (u32 i = 0; i < packets; i++) {
		u32 flow = i < flows ? i : (u32)(draw() % flows);

		build_frame(frames + (u64)i * FRAME, 0x0a000000 + flow);
		packet[i] = (struct mr_packet){ .data = frames + (u64)i * FRAME, .ports = 2, .time = 1, .number = i };
		packet[i].meta = packet[i].floor = packet[i].data;
		packet[i].end = packet[i].ceiling = packet[i].data + FRAME;
	}
	return packet;
}

static double pass(struct subject *s, struct mr_packet **pointers, u32 packets, int plain)
{
	void (*burst)(struct mr_instance *, struct mr_packet *const *, u32) =
		(plain ? s->module->burst_plain : s->module->burst)[0];
	double begin = now();

	for (u32 i = 0; i < packets; i += BURST)
		burst(s->self, pointers + i, packets - i < BURST ? packets - i : BURST);
	return (now() - begin) / packets;
}

/* What became of the packets, in one number: subjects that differ are not the same function. */
static u64 fates(struct subject *s, struct mr_packet **pointers, u32 packets)
{
	u64 sum = 0;

	pass(s, pointers, packets, 0);
	for (u32 i = 0; i < packets; i++)
		sum = sum * 31 + pointers[i]->fate * 7 + pointers[i]->out;
	return sum;
}

static int load(struct subject *s, char *argument)
{
	struct mr_config config = { .hash_seed = 11, .sketch_seed = 22, .time = 1 };
	const struct mr_module *(*entry)(void);
	char *path = strchr(argument, '=');
	void *library;

	if (!path)
		return -1;
	*path++ = 0;
	s->name = argument;
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return -1;
	}
	*(void **)&entry = dlsym(library, "millrace_module");
	s->module = entry();
	s->self = aligned_alloc(64, (s->module->instance_bytes + 63) / 64 * 64);
	return s->module->create(s->self, &config);
}

int main(int argc, char **argv)
{
	static struct subject subjects[MODULES];
	int rounds = argc > 2 ? atoi(argv[2]) : 0, count = argc - 3;
	u32 flows = argc > 1 ? (u32)atoi(argv[1]) : 0, packets = flows + (flows < 65536 ? 65536 : flows);
	struct mr_packet **pointers = calloc(packets, sizeof(*pointers));
	struct mr_packet *packet;

	if (rounds < 1 || rounds > ROUNDS || count < 1 || count > MODULES || flows < 1) {
		fprintf(stderr, "usage: %s FLOWS ROUNDS NAME=MODULE...\n", argv[0]);
		return 2;
	}
	packet = make_packets(malloc((u64)packets * FRAME), flows, packets);
	for (u32 i = 0; i < packets; i++)
		pointers[i] = &packet[i];
	for (int i = 0; i < count; i++) {
		if (load(&subjects[i], argv[3 + i]))
			return 1;
		pass(&subjects[i], pointers, flows, 1);
	}
	for (int i = 1; i < count; i++)
		if (fates(&subjects[i], pointers, packets) != fates(&subjects[0], pointers, packets)) {
			fprintf(stderr, "%s and %s do not agree\n", subjects[0].name, subjects[i].name);
			return 1;
		}
	for (int round = 0; round < rounds; round++)
		for (int plain = 0; plain < 2; plain++)
			for (int i = 0; i < count; i++)
				subjects[i].ns[plain][round] = pass(&subjects[i], pointers + flows, packets - flows, plain);
	for (int plain = 0; plain < 2; plain++)
		for (int i = 0; i < count; i++) {
			double ratio[ROUNDS], sorted[ROUNDS];

			for (int round = 0; round < rounds; round++)
				ratio[round] = subjects[i].ns[plain][round] / subjects[0].ns[plain][round];
			memcpy(sorted, ratio, sizeof(ratio));
			qsort(sorted, (size_t)rounds, sizeof(*sorted), by_value);
			printf("%-12s %-9s %7.2f ns  ratio %.3f [%.3f, %.3f]\n", subjects[i].name,
			       plain ? "plain" : "prefetch", median(subjects[i].ns[plain], rounds),
			       sorted[rounds / 2], sorted[0], sorted[rounds - 1]);
		}
	return 0;
}

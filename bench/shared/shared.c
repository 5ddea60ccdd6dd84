/* What a person would run in place of replicas: one of the five programs, compiled as it is for this machine, on K threads.
 *
 * shared MODE K FLOWS ZIPF NS
 *
 * MODE: `atomic`, one table for all threads, in which the program's own atomic addition is the only write to what is there;
 * `lock`, the same with a spin lock in each entry, held from the lookup to the packet's end; both with packets sprayed over the
 * threads. `rss`: a table for each thread, which gets the flows of its buckets of an indirection table of 128; `rss++`: the same
 * after the buckets were dealt anew by their load, the largest first (which RSS++ does every 100 ms; moving state is free here).
 *
 * FLOWS are drawn with equal probability, or by Zipf's law with this exponent. NS a packet are spun in place of dispatch. Packets
 * are written outside of what is timed, 32 at a time. Prints a rate in Mpps: with locks and atomics the sum over threads; else the
 * highest at which the busiest thread keeps up.
 */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <x86intrin.h>

#include PROGRAM

#define GROUP 32u
#define LENGTH 60u
#define STRIDE 192u
#define PACKETS (1u << 16)
#define BUCKETS 128u
#define PLACES (1u << 17) /* twice the most entries */
#define THREADS 64u
#define SECONDS 0.3

enum mode { ATOMIC, LOCK, RSS };

struct entry {
	_Atomic uint32_t lock;
	_Atomic uint32_t full;
	uint8_t key[24];
	_Alignas(8) uint8_t value[64];
} __attribute__((aligned(128)));

struct table {
	struct entry place[PLACES];
	_Atomic uint32_t lock; /* who inserts */
	uint32_t used;
};

static enum mode mode;
static _Thread_local struct table *table;
static _Thread_local struct entry *held;
static _Thread_local uint64_t now;
static double ns_per_tick;

static void take(_Atomic uint32_t *lock)
{
	while (atomic_exchange_explicit(lock, 1, memory_order_acquire))
		while (atomic_load_explicit(lock, memory_order_relaxed))
			_mm_pause();
}

static void release(_Atomic uint32_t *lock) { atomic_store_explicit(lock, 0, memory_order_release); }

static struct entry *find(const void *key, size_t bytes, struct entry **empty)
{
	uint64_t word[3] = { 0 }, hash = 0;

	memcpy(word, key, bytes);
	for (int i = 0; i < 3; i++)
		hash = _mm_crc32_u64(hash, word[i]) ^ hash << 32;
	for (uint32_t at = hash;; at++) {
		struct entry *e = &table->place[at & (PLACES - 1)];

		if (!atomic_load_explicit(&e->full, memory_order_acquire)) {
			*empty = e;
			return NULL;
		}
		if (!memcmp(e->key, key, bytes))
			return e;
	}
}

void *shared_lookup(const void *key, size_t bytes)
{
	struct entry *empty, *e = find(key, bytes, &empty);

	if (e && mode == LOCK && held != e) {
		take(&e->lock);
		held = e;
	}
	return e ? e->value : NULL;
}

int shared_update(const void *key, size_t key_bytes, const void *value, size_t value_bytes, uint64_t flags)
{
	struct entry *empty, *e;
	int error = 0;

	if (mode != RSS)
		take(&table->lock);
	e = find(key, key_bytes, &empty);
	if (e && flags == BPF_NOEXIST) {
		error = -1;
	} else if (!e && table->used == PLACES / 2) {
		error = -1;
	} else {
		memcpy(e ? e->value : empty->value, value, value_bytes);
		if (!e) {
			memcpy(empty->key, key, key_bytes);
			table->used++;
			atomic_store_explicit(&empty->full, 1, memory_order_release);
		}
	}
	if (mode != RSS)
		release(&table->lock);
	return error;
}

/* Connections of these packets do not end. */
int shared_delete(const void *key, size_t bytes)
{
	(void)key;
	(void)bytes;
	fprintf(stderr, "shared: an entry is deleted, which no traffic here asks for\n");
	exit(1);
}

uint64_t shared_now(void) { return now; }

/* ---- packets ---- */

static uint8_t *put(uint8_t *at, uint64_t value, int bytes)
{
	while (bytes--)
		*at++ = value >> 8 * bytes;
	return at;
}

/* Packet `kind` of a flow: UDP of a source; or TCP, where kinds 0 to 2 open and others are bare acknowledgements. */
static void frame(uint8_t *to, uint32_t flow, int kind)
{
	uint32_t host = 0x0a000000 + flow, server = 0xc0000201;
	int back = TCP == 2 && (kind == 1 || kind == 4), flags = 16, port = 80;
	uint32_t seq = 1001, ack = 5001;

	memset(to, 0, LENGTH);
	put(to + 12, 0x0800, 2);
	put(to + 14, 0x4500, 2);
	put(to + 16, TCP ? 40 : 46, 2);
	put(to + 22, TCP ? 0x4006 : 0x4011, 2);
	put(to + 26, back ? server : host, 4);
	put(to + 30, back ? host : server, 4);
	if (TCP == 1 && kind < 3)
		port = 100 + kind; /* knocks */
	if (TCP == 2 && kind < 2)
		flags = kind ? 18 : 2;
	if (TCP == 2 && kind == 0)
		seq = 1000, ack = 0;
	if (back)
		seq = kind == 1 ? 5000 : 5001, ack = 1001;
	put(to + 34, back ? port : 40000, 2);
	put(to + 36, back ? 40000 : port, 2);
	if (!TCP) {
		put(to + 38, 26, 2);
		return;
	}
	put(to + 38, seq, 4);
	put(to + 42, ack, 4);
	put(to + 46, 0x5000 | flags, 2);
	put(to + 48, 0x2000, 2);
}

struct thread {
	pthread_t id;
	int cpu;
	struct table *table;
	uint32_t *flows, count; /* its packets */
	double ns;              /* a packet */
};

static pthread_barrier_t ready;
static double spun;

static void run(struct xdp_md *context, uint8_t *buffers, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		context->data = (uint32_t)(uintptr_t)(buffers + i * STRIDE);
		context->data_end = context->data + LENGTH;
		ENTRY(context);
		if (held) {
			release(&held->lock);
			held = NULL;
		}
	}
}

static void *work(void *argument)
{
	struct thread *t = argument;
	uint8_t *buffers = mmap(NULL, GROUP * STRIDE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	uint64_t ticks = 0, packets = 0, begin;
	struct xdp_md context = { 0 };
	uint32_t at = 0, seed = 1 + t->cpu;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(t->cpu, &set);
	if (buffers == MAP_FAILED || sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "shared: processor %d or its buffers cannot be had\n", t->cpu);
		exit(1);
	}
	table = t->table;
	now = 1;
	for (uint32_t i = 0; i < t->count; i++)
		for (int kind = 0; kind < 3; kind++) {
			frame(buffers, t->flows[i], kind);
			run(&context, buffers, 1);
		}
	pthread_barrier_wait(&ready);
	begin = __rdtsc();
	while (t->count && (__rdtsc() - begin) * ns_per_tick < SECONDS * 1e9) {
		uint64_t from, until;

		for (uint32_t i = 0; i < GROUP; i++) {
			seed = seed * 1664525 + 1013904223;
			frame(buffers + i * STRIDE, t->flows[at], 3 + (seed >> 31));
			at = at + 1 == t->count ? 0 : at + 1;
		}
		from = __rdtsc();
		until = from + (uint64_t)(spun * GROUP / ns_per_tick);
		while (__rdtsc() < until)
			;
		now = from * ns_per_tick;
		run(&context, buffers, GROUP);
		ticks += __rdtsc() - from;
		packets += GROUP;
	}
	t->ns = packets ? ticks * ns_per_tick / packets : 0;
	pthread_barrier_wait(&ready);
	return NULL;
}

static struct table *tables(void)
{
	struct table *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (t == MAP_FAILED) {
		perror("shared: a table");
		exit(1);
	}
	return t;
}

static uint32_t bucket(uint32_t flow) { return _mm_crc32_u32(0, flow) % BUCKETS; }

/* The thread of each bucket: in turn, or the largest first to who has least. */
static void deal(uint32_t *owner, const uint32_t *load, uint32_t k, int balanced)
{
	uint32_t has[THREADS] = { 0 }, done[BUCKETS] = { 0 };

	for (uint32_t n = 0; n < BUCKETS; n++) {
		uint32_t largest = BUCKETS, least = 0;

		for (uint32_t b = 0; b < BUCKETS; b++)
			if (!done[b] && (largest == BUCKETS || load[b] > load[largest]))
				largest = b;
		for (uint32_t t = 1; t < k; t++)
			if (has[t] < has[least])
				least = t;
		done[largest] = 1;
		owner[largest] = balanced ? least : largest % k;
		has[owner[largest]] += load[largest];
	}
}

static void calibrate(void)
{
	struct timespec a, b;
	uint64_t from = __rdtsc();

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec < 5e7);
	ns_per_tick = ((b.tv_sec - a.tv_sec) * 1e9 + b.tv_nsec - a.tv_nsec) / (__rdtsc() - from);
}

int main(int argc, char **argv)
{
	static uint32_t drawn[PACKETS], load[BUCKETS], owner[BUCKETS];
	static struct thread threads[THREADS];
	uint32_t k, flows;
	double zipf, all = 0, *sum, rate = 0;
	int balanced;

	if (argc != 6 || (k = atoi(argv[2])) < 1 || k > THREADS || (flows = atoi(argv[3])) < 1 || flows > PLACES / 2) {
		fprintf(stderr, "usage: shared atomic|lock|rss|rss++ K FLOWS ZIPF NS\n");
		return 2;
	}
	balanced = !strcmp(argv[1], "rss++");
	mode = balanced || !strcmp(argv[1], "rss") ? RSS : !strcmp(argv[1], "lock") ? LOCK : ATOMIC;
	zipf = atof(argv[4]);
	spun = atof(argv[5]);
	calibrate();

	sum = malloc(flows * sizeof(*sum));
	for (uint32_t f = 0; f < flows; f++)
		sum[f] = all += pow(f + 1, -zipf);
	srand48(7);
	for (uint32_t i = 0; i < PACKETS; i++) {
		double at = drand48() * all;
		uint32_t low = 0, high = flows - 1;

		while (low < high) {
			uint32_t middle = (low + high) / 2;

			if (sum[middle] < at)
				low = middle + 1;
			else
				high = middle;
		}
		drawn[i] = low;
		load[bucket(low)]++;
	}
	deal(owner, load, k, balanced);

	pthread_barrier_init(&ready, NULL, k);
	for (uint32_t t = 0; t < k; t++) {
		struct thread *one = &threads[t];

		one->cpu = t;
		one->table = mode == RSS || t == 0 ? tables() : threads[0].table;
		one->flows = malloc(sizeof(drawn));
		for (uint32_t i = 0; i < PACKETS; i++)
			if (mode == RSS ? owner[bucket(drawn[i])] == t : i / GROUP % k == t)
				one->flows[one->count++] = drawn[i];
	}
	for (uint32_t t = 0; t < k; t++)
		if (pthread_create(&threads[t].id, NULL, work, &threads[t])) {
			perror("shared: a thread");
			return 1;
		}
	for (uint32_t t = 0; t < k; t++) {
		pthread_join(threads[t].id, NULL);
		if (!threads[t].count)
			continue;
		if (mode == RSS) {
			double most = 1e3 / threads[t].ns * PACKETS / threads[t].count;

			rate = rate == 0 || most < rate ? most : rate;
		} else {
			rate += 1e3 / threads[t].ns;
		}
	}
	printf("%.2f\n", rate);
	return 0;
}

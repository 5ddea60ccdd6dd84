/* What replication costs a core: ns of one module alone and of one replica, over the same packets, in turns.
 *
 * turns ALONE REPLICATED FRAMES INITIAL TURNS one KMAX
 * turns ALONE REPLICATED FRAMES INITIAL TURNS two NS...
 * turns ALONE REPLICATED FRAMES INITIAL TURNS recover K
 *
 * FRAMES: u32 opening frames, u32 measured frames, each u32 port and 60 bytes. INITIAL: for each object u32 length, bytes, of
 * the one module and then of the other. A line `VARIANT NS` for each variant and turn: the mean of groups of 32 packets of the
 * 10th to the 50th percentile, a packet of its own (`replay...`: a row). A core's packets come in groups of 32, and its
 * sequencer is hardware that costs nobody anything: rows are put into the ring outside of what is timed, and the ring is larger
 * than the second-level cache.
 *
 * `two`: on two processors, two processes that have nothing to do with each other, and two replicas of which each finds the
 * rows of the other's packets in a ring, written by the other's core. NS a packet are spun, in place of dispatch.
 *
 * `recover`: the prefix form, K rows a carrier, with and without loss recovery.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "sync/recover.h"

#define GROUP 32u
#define LENGTH 60u
#define STRIDE 192u
#define POOL 256u          /* buffers: several groups, as a receive queue has */
#define GAP 100u           /* ns from one packet to the next */
#define COUNTED 200u
#define RING (1u << 14)
#define KMOST 16u
#define LONGEST 20         /* s, after which two processors begin no other turn */

static double ns_per_tick;

static void *must(void *p, const char *what)
{
	if (!p || p == MAP_FAILED) {
		fprintf(stderr, "turns: %s: %s\n", what, dlerror());
		exit(1);
	}
	return p;
}

static void sure(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "turns: %s\n", what);
		exit(1);
	}
}

struct frame {
	u32 port;
	u8 bytes[LENGTH];
};

static struct frame *frames;
static u32 opening, measured;

static u8 *read_all(const char *path, long *length)
{
	FILE *f = must(fopen(path, "rb"), path);
	u8 *bytes;

	sure(!fseek(f, 0, SEEK_END) && (*length = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET), path);
	bytes = must(malloc((size_t)*length + 1), "memory");
	sure(fread(bytes, 1, (size_t)*length, f) == (size_t)*length, path);
	fclose(f);
	return bytes;
}

/* ---- a running copy ---- */

struct running {
	const struct mr_module *module;
	const struct mr_history *history;
	struct mr_instance *self;
	const u8 **initial;
	u8 *buffers;
	struct mr_packet packet[POOL];
	struct mr_packet *pointer[POOL];
	u32 at;      /* the next frame */
	u64 number;  /* of the next packet, or row */
	u64 applied; /* of the ring */
};

static const struct mr_module *load(const char *path)
{
	const struct mr_module *(*entry)(void);
	void *library = must(dlopen(path, RTLD_NOW | RTLD_LOCAL), path);

	*(void **)&entry = must(dlsym(library, "millrace_module"), path);
	return entry();
}

static void initials(struct running *r, const u8 **bytes)
{
	r->initial = must(calloc(r->module->objects + 1, sizeof(*r->initial)), "memory");
	for (u32 i = 0; i < r->module->objects; i++) {
		u32 length;

		memcpy(&length, *bytes, 4);
		r->initial[i] = length ? *bytes + 4 : NULL;
		*bytes += 4 + length;
	}
}

static void create(struct running *r)
{
	struct mr_config config = { .hash_seed = 1, .sketch_seed = 2, .initial = r->initial, .workers = 1 };
	struct mr_packet none = { .ports = 2 };

	r->history = r->module->history;
	r->self = must(aligned_alloc(64, (r->module->instance_bytes + 63) / 64 * 64), "memory");
	memset(r->self, 0, r->module->instance_bytes);
	sure(r->module->create(r->self, &config) == 0, "an instance cannot be created");
	if (r->module->start)
		r->module->start(r->self, &none);
	r->buffers = must(aligned_alloc(4096, POOL * STRIDE), "memory");
	for (u32 i = 0; i < POOL; i++)
		r->pointer[i] = &r->packet[i];
	r->number = 1;
}

/* Packet `n` of a replica, or of a copy that is alone, from `f`, into a buffer. */
static void fill(struct running *r, u32 buffer, const struct frame *f, u64 n)
{
	u8 *floor = r->buffers + buffer * STRIDE;
	struct mr_packet *p = &r->packet[buffer];

	*p = (struct mr_packet){
		.data = floor + 64, .end = floor + 64 + LENGTH, .meta = floor + 64, .floor = floor, .ceiling = floor + STRIDE,
		.bared = floor + 64, .time = n * GAP, .number = n, .port = f->port, .ports = 2,
	};
	memcpy(p->data, f->bytes, LENGTH);
}

static const struct frame *next(struct running *r)
{
	const struct frame *f = &frames[opening + r->at];

	r->at = r->at + 1 == measured ? 0 : r->at + 1;
	return f;
}

/* The row of a frame as packet `n`; every measured packet has one. */
static void row_of(struct running *r, u8 *row, const struct frame *f, u64 n)
{
	fill(r, POOL - 1, f, n);
	sure(r->history->extract(r->self, 0, &r->packet[POOL - 1], row), "a measured packet has no row");
}

static void open_flows(struct running *r)
{
	u8 row[64];

	for (u32 i = 0; i < opening; i++, r->number++) {
		fill(r, 0, &frames[i], r->number);
		if (!r->history)
			r->module->burst[0](r->self, r->pointer, 1);
		else if (r->history->extract(r->self, 0, &r->packet[0], row))
			r->history->process(r->self, 0, &r->packet[0], row, r->number);
		else
			r->history->process(r->self, 0, &r->packet[0], NULL, 0);
	}
}

/* ---- time ---- */

static u64 now(void)
{
	u32 aux;
	u64 t = __rdtscp(&aux);

	_mm_lfence();
	return t;
}

static void spin(u64 ticks)
{
	u64 start = __rdtsc();

	while (__rdtsc() - start < ticks)
		;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* Groups of `rows` rows that each variant and turn begins with, uncounted: what it looks up has then been in the cache. */
static u32 warming(u32 rows)
{
	return (opening > 1000 ? 100000u : 1280u) / rows + 1;
}

static void count_in(u64 *ticks, u32 group, u32 warm, u64 took)
{
	if (group >= warm)
		ticks[group - warm] = took;
}

/* The mean of the 10th to the 50th percentile, ns. */
static double calm(u64 *ticks, u32 n)
{
	double sum = 0;

	qsort(ticks, n, sizeof(*ticks), by_value);
	for (u32 i = n / 10; i < n / 2; i++)
		sum += (double)ticks[i];
	return sum / (n / 2 - n / 10) * ns_per_tick;
}

/* ---- one processor ---- */

static struct history *ring;

/* Puts `n` rows of the next frames into the ring. */
static void put(struct running *r, u32 n)
{
	u8 row[64];

	for (u32 i = 0; i < n; i++) {
		row_of(r, row, next(r), r->number);
		history_put(ring, r->number, HISTORY_ROW, r->number * GAP, row, ROW_BYTES);
		r->number++;
	}
	history_publish(ring, r->number - 1);
}

/* Takes `n` rows out of it, side by side. */
static void take(struct running *r, u32 n, u8 *rows)
{
	u64 time, upto = r->applied + n;

	if (history_take(ring, &r->applied, upto, n, rows, ROW_BYTES, &time) != n)
		exit(2);
	/* The next ones, while these are replayed. */
	history_fetch(ring, upto, upto + n);
}

static void replayed(struct running *r, const u8 *rows, u32 n, u64 number, int passes)
{
	u64 near = (number + n) * GAP;

	if ((passes ? r->history->replay : r->history->replay_plain)(r->self, rows, n, number, near, number))
		exit(3);
}

static u8 batch[GROUP * KMOST * 64 + 8];

/* One core without rows. */
static double alone(struct running *r, int passes)
{
	static u64 ticks[COUNTED];
	const u32 warm = warming(GROUP);

	for (u32 g = 0; g < warm + COUNTED; g++) {
		u32 first = g % (POOL / GROUP - 1) * GROUP;
		u64 start;

		if (first == 0)
			for (u32 i = 0; i < POOL - GROUP; i++)
				fill(r, i, next(r), r->number++);
		start = now();
		(passes ? r->module->burst : r->module->burst_plain)[0](r->self, r->pointer + first, GROUP);
		count_in(ticks, g, warm, now() - start);
	}
	return calm(ticks, COUNTED) / GROUP;
}

/* Rows that are at hand: ns a row. */
static double rows_only(struct running *r, int passes, int from_ring)
{
	static u64 ticks[COUNTED];
	const u32 warm = warming(GROUP), bytes = ROW_BYTES;

	for (u32 g = 0; g < warm + COUNTED; g++) {
		u64 number = r->number, start;

		if (from_ring) {
			if (g % (RING / GROUP / 2) == 0)
				put(r, RING / 2);
			number = r->applied + 1;
		} else {
			for (u32 i = 0; i < GROUP; i++)
				row_of(r, batch + i * bytes, next(r), r->number++);
			r->applied = r->number - 1;
		}
		start = now();
		if (from_ring)
			take(r, GROUP, batch);
		replayed(r, batch, GROUP, number, passes);
		count_in(ticks, g, warm, now() - start);
	}
	if (from_ring)
		while (r->applied + 1 < r->number) {
			take(r, 1, batch);
			replayed(r, batch, 1, r->applied, 0);
		}
	return calm(ticks, COUNTED) / GROUP;
}

/* How a replica's own packets lie among the rows. */
enum dealt { GROUPS, SINGLY, SINGLY_MIXED, GROUPS_PLAIN };

/* A replica of k: its rows and its own packets, ns a packet of its own. */
static double replica(struct running *r, u32 k, enum dealt dealt)
{
	static u64 ticks[COUNTED];
	static const struct frame *mine[POOL];
	static const u8 *pointer[GROUP * KMOST];
	static struct mr_packet *among[GROUP * KMOST];
	const u32 warm = warming(GROUP * k), bytes = ROW_BYTES, ahead = RING / (GROUP * k);
	u32 count = 0;
	u32 held = POOL / GROUP - 1 < ahead ? POOL / GROUP - 1 : ahead;

	for (u32 g = 0; g < warm + COUNTED; g++) {
		u32 first;
		u64 start;

		if (count == 0) {
			/* Some groups ahead, the oldest row the first one. */
			for (count = 0; count < held; count++) {
				u64 n = r->number;

				for (u32 i = 0; i < GROUP * k; i++) {
					int own = dealt == SINGLY || dealt == SINGLY_MIXED ? i % k == k - 1 : i >= GROUP * (k - 1);
					u32 which = dealt == SINGLY || dealt == SINGLY_MIXED ? i / k : i - GROUP * (k - 1);
					u32 at = r->at;

					put(r, 1);
					if (own)
						mine[count * GROUP + which] = &frames[opening + at];
				}
				for (u32 i = 0; i < GROUP; i++)
					fill(r, count * GROUP + i, mine[count * GROUP + i], n + (dealt == SINGLY || dealt == SINGLY_MIXED ? i * k + k - 1 : GROUP * (k - 1) + i));
			}
		}
		first = (held - count) * GROUP;
		count--;
		start = now();
		switch (dealt) {
		case GROUPS:
		case GROUPS_PLAIN:
			for (u32 i = 0; i < k - 1; i++) {
				u64 number = r->applied + 1;

				take(r, GROUP, batch);
				replayed(r, batch, GROUP, number, dealt == GROUPS);
			}
			take(r, GROUP, batch);
			for (u32 i = 0; i < GROUP; i++)
				pointer[i] = batch + i * bytes;
			if (dealt == GROUPS) {
				if (r->history->burst(r->self, 0, r->pointer + first, pointer, GROUP, r->applied - GROUP + 1, r->applied * GAP, r->applied))
					exit(3);
			} else {
				for (u32 i = 0; i < GROUP; i++)
					r->history->process(r->self, 0, r->pointer[first + i], pointer[i], r->applied - GROUP + 1 + i);
			}
			break;
		case SINGLY:
			for (u32 i = 0; i < GROUP; i++) {
				u64 number = r->applied + 1;

				take(r, k, batch);
				if (k > 1)
					replayed(r, batch, k - 1, number, 1);
				r->history->process(r->self, 0, r->pointer[first + i], batch + (k - 1) * bytes, r->applied);
			}
			break;
		case SINGLY_MIXED:
			for (u32 i = 0; i < k; i++) {
				u64 number = r->applied + 1;

				take(r, GROUP, batch);
				for (u32 j = 0; j < GROUP; j++) {
					u32 place = i * GROUP + j;

					among[j] = place % k == k - 1 ? r->pointer[first + place / k] : NULL;
					pointer[j] = batch + j * bytes;
				}
				if (r->history->burst(r->self, 0, among, pointer, GROUP, number, r->applied * GAP, r->applied))
					exit(3);
			}
			break;
		}
		count_in(ticks, g, warm, now() - start);
		for (u32 i = 0; i < GROUP; i++)
			if (r->packet[first + i].fate == MR_ABORTED)
				exit(4);
	}
	while (r->applied + 1 < r->number) {
		take(r, 1, batch);
		replayed(r, batch, 1, r->applied, 0);
	}
	return calm(ticks, COUNTED) / GROUP;
}

static struct history *make_ring(void)
{
	struct history *h = must(mmap(NULL, history_bytes(RING), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), "ring");

	memset(h, 0, history_bytes(RING));
	history_create(h, RING);
	return h;
}

static void one(struct running *a, struct running *b, u32 turns, u32 most)
{
	static const u32 singly[] = { 2, 8, 16 };

	ring = make_ring();
	b->applied = b->number - 1;
	for (u32 t = 0; t < turns; t++) {
		printf("alone %f\n", alone(a, 1));
		printf("alone-plain %f\n", alone(a, 0));
		printf("replay %f\n", rows_only(b, 1, 0));
		printf("replay-plain %f\n", rows_only(b, 0, 0));
		printf("replay-ring %f\n", rows_only(b, 1, 1));
		printf("replay-ring-plain %f\n", rows_only(b, 0, 1));
		for (u32 k = 1; k <= most; k++)
			printf("T%u %f\n", k, replica(b, k, GROUPS));
		for (u32 i = 0; i < 3 && singly[i] <= most; i++) {
			printf("P%u %f\n", singly[i], replica(b, singly[i], GROUPS_PLAIN));
			printf("S%u %f\n", singly[i], replica(b, singly[i], SINGLY));
			printf("M%u %f\n", singly[i], replica(b, singly[i], SINGLY_MIXED));
		}
		fflush(stdout);
	}
}

/* ---- two processors ---- */

struct meeting {
	u64 arrived[2] __attribute__((aligned(64)));
	double result[2];
	u64 over; /* no more turns */
	u64 said[2][8];
};

static void wait_for(const u64 *what, u64 least)
{
	for (u32 i = 0; __atomic_load_n(what, __ATOMIC_ACQUIRE) < least; i++)
		if (i % 64 == 63)
			sched_yield();
}

static void meet(struct meeting *m, u32 self, u64 *round)
{
	__atomic_store_n(&m->arrived[self], ++*round, __ATOMIC_RELEASE);
	wait_for(&m->arrived[!self], *round);
}

/* Two that have nothing to do with each other. */
static double unrelated(struct running *r, struct meeting *m, u32 self, u64 *round, u64 dispatch)
{
	static u64 ticks[COUNTED];
	const u32 warm = 40;

	for (u32 g = warming(GROUP); g > 0; g--) {
		for (u32 i = 0; i < GROUP; i++)
			fill(r, i, next(r), r->number++);
		r->module->burst[0](r->self, r->pointer, GROUP);
	}
	for (u32 g = 0; g < warm + COUNTED; g++) {
		u64 start;

		for (u32 i = 0; i < GROUP; i++)
			fill(r, i, next(r), r->number++);
		/* Both at once, as the replicas are. */
		meet(m, self, round);
		start = now();
		spin(dispatch * GROUP);
		r->module->burst[0](r->self, r->pointer, GROUP);
		count_in(ticks, g, warm, now() - start);
	}
	return calm(ticks, COUNTED) / GROUP;
}

/* BOTH: group g of the order is that of core g mod 2. The others are what that is made of, each core with a ring of its own and its own
 * rows: its packets alone, or their rows as if another's. */
enum part { BOTH, OWN, ROWS };

static double related(struct running *r, struct meeting *m, u32 self, u64 *round, u64 dispatch, enum part part)
{
	static u64 ticks[COUNTED];
	static const u8 *pointer[GROUP];
	const u32 bytes = ROW_BYTES, warm = 40, sides = part == BOTH ? 2 : 1;

	/* The same number of rows at both, with times that are over. */
	for (u32 g = warming(GROUP); g > 0; g--) {
		for (u32 i = 0; i < GROUP; i++)
			row_of(r, batch + i * bytes, next(r), r->number - 1);
		replayed(r, batch, GROUP, 0, 1);
	}
	for (u32 g = 0; g < warm + COUNTED; g++) {
		u64 base = r->number, own = base + (part == BOTH ? self * GROUP : 0), start;
		u8 row[64];

		/* The sequencer's work, by the core whose packets these are. */
		for (u32 i = 0; i < GROUP; i++) {
			const struct frame *f = next(r);

			row_of(r, row, f, own + i);
			history_put(ring, own + i, HISTORY_ROW, (own + i) * GAP, row, bytes);
			fill(r, i, f, own + i);
		}
		meet(m, self, round);
		if (part != BOTH || self == 0)
			history_publish(ring, base + sides * GROUP - 1);
		meet(m, self, round);
		r->number += sides * GROUP;
		start = now();
		history_fetch(ring, base - 1, base + sides * GROUP - 1);
		spin(dispatch * GROUP);
		for (u32 side = 0; side < sides; side++) {
			take(r, GROUP, batch);
			if (part == ROWS || (part == BOTH && side != self)) {
				replayed(r, batch, GROUP, base + side * GROUP, 1);
				continue;
			}
			for (u32 i = 0; i < GROUP; i++)
				pointer[i] = batch + i * bytes;
			if (r->history->burst(r->self, 0, r->pointer, pointer, GROUP, own, own * GAP, own))
				exit(3);
		}
		count_in(ticks, g, warm, now() - start);
		for (u32 i = 0; i < GROUP && part != ROWS; i++)
			if (r->packet[i].fate == MR_ABORTED)
				exit(4);
		/* Nobody overwrites what the other has still to read. */
		meet(m, self, round);
	}
	return calm(ticks, COUNTED) / GROUP;
}

static void pin(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sure(sched_setaffinity(0, sizeof(set), &set) == 0, "cannot be pinned");
}

static void two(struct running *a, struct running *b, u32 turns, char **words, int count)
{
	struct meeting *m = must(mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), "memory");
	struct history *common;
	time_t began;
	cpu_set_t set;
	int processors[2], found = 0, status;
	pid_t child;

	sure(sched_getaffinity(0, sizeof(set), &set) == 0, "which processors?");
	for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &set))
			processors[found++] = i;
	sure(found == 2, "there are no two processors");
	ring = common = make_ring();
	fflush(stdout);
	child = fork();
	sure(child >= 0, "fork");
	{
		u32 self = child == 0;
		u64 round = 0;

		pin(processors[self]);
		create(a);
		create(b);
		open_flows(a);
		open_flows(b);
		b->applied = b->number - 1;
		/* Different packets. */
		a->at = b->at = self * (measured / 2);
		time(&began);
		/* Both have to run at once for each group: where other work has the processors, that takes long. */
		for (u32 t = 0; t < turns && !m->over; t++) {
			struct history *mine = make_ring();

			for (int i = 0; i < count; i++) {
				u64 dispatch = (u64)(atof(words[i]) / ns_per_tick);
				static const char *names[] = { "unrelated", "own", "rows", "related" };

				for (u32 p = 0; p < 4; p++) {
					double ns;

					ring = p == 3 ? common : mine;
					meet(m, self, &round);
					if (p == 0)
						ns = unrelated(a, m, self, &round, dispatch);
					else
						ns = related(b, m, self, &round, p == 2 ? 0 : dispatch, p == 1 ? OWN : p == 2 ? ROWS : BOTH);
					m->result[self] = ns;
					meet(m, self, &round);
					if (self == 0)
						printf("%s-%s %f\n", names[p], words[i], (m->result[0] + m->result[1]) / 2);
				}
			}
			munmap(mine, history_bytes(RING));
			fflush(stdout);
			if (self == 0)
				m->over = time(NULL) - began > LONGEST;
			meet(m, self, &round);
		}
		for (u32 o = 0; o < b->module->objects && o < 8; o++) {
			const struct mr_object *object = &b->module->object[o];

			m->said[self][o] = object->count ? object->count(b->self, b->number * GAP) : 0;
		}
		meet(m, self, &round);
		if (self)
			_exit(0);
	}
	sure(waitpid(child, &status, 0) == child && status == 0, "the other replica ended");
	sure(!memcmp(m->said[0], m->said[1], sizeof(m->said[0])), "the replicas differ");
}

/* ---- recovery ---- */

/* Carriers of a burst: k rows each, the newest that of the core's own packet. */
static void carry(struct running *r, const struct carrier_shape *s, u8 (*bytes)[2048], u64 *seq, u8 (*recent)[64], u32 k)
{
	u32 row_bytes = ROW_BYTES;

	for (u32 i = 0; i < GROUP; i++) {
		u8 *p = bytes[i];
		u64 last = *seq + k;

		memset(p, 0, 64);
		for (u64 n = *seq + 1; n <= last; n++) {
			const struct frame *f = next(r);

			row_of(r, recent[(n - 1) % k], f, n);
			if (n == last)
				fill(r, i, f, n);
		}
		*seq = last;
		p[0] = 0x02, p[1] = 0x4d, p[2] = 0x52, p[6] = 0x02, p[7] = 0x4d, p[8] = 0x52, p[9] = 0x01;
		p[12] = 0x88, p[13] = 0xb5, p[14] = 0x11, p[15] = s->slots, p[16] = s->row_bytes, p[17] = (u8)(last % k);
		mr_store64(p + 18, __builtin_bswap64(last));
		mr_store64(p + 26, __builtin_bswap64(last * GAP));
		for (u32 j = 0; j < k; j++)
			memcpy(p + CARRIER_FIXED + (k + 7) / 8 + j * row_bytes, recent[j], row_bytes);
	}
}

struct recovering {
	struct recover_group *group;
	struct recover core;
	struct carrier_shape shape;
	u64 seq;
	u32 k;
};

/* A burst of carriers of which some are lost, through the log; the core's own packets come with those that are not. */
static void by_log(struct running *b, struct recovering *r, u8 (*bytes)[2048], const u8 *gone, u64 *own_at)
{
	static const u8 *pointer[RECOVER_ROWS];
	static struct mr_packet *among[RECOVER_ROWS];
	static u8 single[HISTORY_ROW_BYTES];
	struct history_row e;
	u32 own = 0, owned = 0, run;

	for (u32 j = 0; j < GROUP; j++) {
		struct carrier c;

		if (gone[j])
			continue;
		if (carrier_read(&c, &r->shape, bytes[j], 1600) != CARRIER_TAKEN ||
		    recover_put(r->group, &r->core, &r->shape, &c) != RECOVER_TAKEN)
			exit(5);
		own_at[owned++] = c.seq;
	}
	own_at[owned] = 0;
	recover_publish(r->group, &r->core);
	for (u32 j = 0;;) {
		enum recover_next next;

		while ((run = recover_run(r->group, &r->core, RECOVER_ROWS))) {
			u64 number = r->core.applied + 1;

			for (u32 i = 0; i < run; i++) {
				pointer[i] = (const u8 *)recover_entry(r->group, 0, number + i)->word;
				among[i] = NULL;
				if (number + i != own_at[own])
					continue;
				/* Carrier j is the next one that came. */
				while (gone[j])
					j++;
				among[i] = &b->packet[j++];
				own++;
			}
			if (b->history->burst(b->self, 0, among, pointer, run, number, r->seq * GAP, r->seq))
				exit(3);
			recover_applied(&r->core, run);
		}
		next = recover_next(r->group, &r->core, &e);
		if (next == RECOVER_DONE)
			break;
		if (next != RECOVER_APPLY)
			exit(6);
		memcpy(single, e.word, ROW_BYTES);
		replayed(b, single, 1, r->core.applied, 0);
	}
}

/* With rows gathered from the carriers instead, at no loss. */
static void gathered(struct running *b, struct recovering *r, u8 (*bytes)[2048])
{
	static const u8 *pointer[GROUP * KMOST];
	static struct mr_packet *among[GROUP * KMOST];
	u64 first = r->seq - (u64)GROUP * r->k + 1;
	u32 n = 0;

	for (u32 j = 0; j < GROUP; j++) {
		struct carrier c;

		if (carrier_read(&c, &r->shape, bytes[j], 1600) != CARRIER_TAKEN)
			exit(5);
		for (u64 at = first + n; at <= c.seq; at++, n++) {
			pointer[n] = carrier_row(&c, &r->shape, carrier_at(&c, &r->shape, at));
			among[n] = at == c.seq ? &b->packet[j] : NULL;
		}
	}
	if (b->history->burst(b->self, 0, among, pointer, n, first, r->seq * GAP, r->seq))
		exit(3);
}

/* The log of another core, which has received all rows. */
static void other_log(struct recovering *r, u8 (*bytes)[2048])
{
	for (u32 j = 0; j < GROUP; j++) {
		struct carrier c;

		if (carrier_read(&c, &r->shape, bytes[j], 1600) != CARRIER_TAKEN)
			exit(5);
		for (u64 at = c.oldest; at <= c.seq; at++)
			history_write(recover_entry(r->group, 1, at), at, HISTORY_ROW, 0, carrier_row(&c, &r->shape, carrier_at(&c, &r->shape, at)), ROW_BYTES);
	}
	__atomic_store_n(&r->group->log[1].head, r->seq, __ATOMIC_RELEASE);
}

static void recover(struct running *b, u32 turns, u32 k)
{
	static const struct {
		const char *name;
		u32 in; /* one carrier in so many is lost; 0: none */
		int log;
	} variants[] = { { "gather", 0, 0 }, { "recover", 0, 1 }, { "lost-0.01", 10000, 1 }, { "lost-0.1", 1000, 1 }, { "lost-1", 100, 1 } };
	static u8 bytes[GROUP][2048], recent[KMOST][64], gone[GROUP + 1];
	static u64 ticks[COUNTED], own_at[GROUP + 1];
	struct recovering r = { .shape = { .slots = (u8)k, .row_bytes = ROW_BYTES, .time = CARRIER_NO_TIME }, .k = k };
	u64 drawn = 1;

	r.group = must(aligned_alloc(64, (recover_bytes(k, RECOVER_ROWS) + 4095) / 4096 * 4096), "memory");
	memset(r.group, 0, recover_bytes(k, RECOVER_ROWS));
	recover_create(r.group, k, RECOVER_ROWS);
	for (u32 t = 0; t < turns; t++) {
		for (u32 v = 0; v < sizeof(variants) / sizeof(*variants); v++) {
			const u32 warm = warming(GROUP * k);
			double sum = 0;

			for (u32 g = 0; g < warm + COUNTED; g++) {
				u64 start, took;

				carry(b, &r.shape, bytes, &r.seq, recent, k);
				other_log(&r, bytes);
				/* The last one of a group comes, so that each group ends where it is counted. */
				for (u32 j = 0; j < GROUP; j++) {
					drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
					gone[j] = variants[v].in && j + 1 < GROUP && (drawn >> 33) % variants[v].in == 0;
				}
				start = now();
				if (variants[v].log)
					by_log(b, &r, bytes, gone, own_at);
				else
					gathered(b, &r, bytes);
				took = now() - start;
				count_in(ticks, g, warm, took);
				if (!variants[v].log) {
					/* The log goes on behind them. */
					r.core.put = r.core.applied = r.seq;
					history_write(recover_entry(r.group, 0, r.seq), r.seq, HISTORY_LOST, 0, NULL, 0);
					recover_publish(r.group, &r.core);
				}
				if (r.core.applied != r.seq)
					exit(6);
			}
			/* Losses are rare: what they cost is in the mean, of all but the slowest twentieth. */
			if (variants[v].in) {
				qsort(ticks, COUNTED, sizeof(*ticks), by_value);
				for (u32 i = 0; i < COUNTED - COUNTED / 20; i++)
					sum += (double)ticks[i];
				printf("%s %f\n", variants[v].name, sum / (COUNTED - COUNTED / 20) * ns_per_tick / GROUP);
			} else {
				printf("%s %f\n", variants[v].name, calm(ticks, COUNTED) / GROUP);
			}
		}
		fflush(stdout);
	}
	sure(r.core.recovered > 0 && r.core.lost >= r.core.recovered, "no row was recovered");
}

int main(int argc, char **argv)
{
	static struct running a, b;
	struct timespec from, to;
	const u8 *bytes, *initial;
	long length, initial_length;
	u64 ticks;
	u32 turns;

	sure(argc >= 7, "turns ALONE REPLICATED FRAMES INITIAL TURNS one|two|recover ...");
	bytes = read_all(argv[3], &length);
	memcpy(&opening, bytes, 4);
	memcpy(&measured, bytes + 4, 4);
	sure(length == 8 + (long)(opening + measured) * (long)sizeof(struct frame), "the length of FRAMES");
	frames = (struct frame *)(bytes + 8);
	a.module = load(argv[1]);
	b.module = load(argv[2]);
	if (b.module->history)
		fprintf(stderr, "rows of %u bytes\n", b.module->history->bytes);
	sure(b.module->history != NULL && b.module->history->bytes == ROW_BYTES, "rows that fit");
	initial = read_all(argv[4], &initial_length);
	initials(&a, &initial);
	initials(&b, &initial);
	turns = (u32)atoi(argv[5]);
	clock_gettime(CLOCK_MONOTONIC, &from);
	ticks = __rdtsc();
	do
		clock_gettime(CLOCK_MONOTONIC, &to);
	while (to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9 < 0.05);
	ns_per_tick = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / (double)(__rdtsc() - ticks);
	if (!strcmp(argv[6], "two")) {
		two(&a, &b, turns, argv + 7, argc - 7);
		return 0;
	}
	create(&a);
	create(&b);
	open_flows(&a);
	open_flows(&b);
	if (!strcmp(argv[6], "one"))
		one(&a, &b, turns, (u32)atoi(argv[7]));
	else
		recover(&b, turns, (u32)atoi(argv[7]));
	return 0;
}

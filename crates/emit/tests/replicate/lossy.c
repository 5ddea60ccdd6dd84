/* Runs packets on replicas that lose carriers on the way (the prefix form), and on one core that sees the rows that any of
 * them saw. The replicas recover rows from each other by fastpath/sync/recover.h; a seed chooses in what order they run.
 *
 * In: u32 packets, u32 cores, u32 slots, u32 most and u32 rate, u32 rounds, u64 seed; per object u32 whether it is
 * compared, u32 length of its initial value, bytes; per packet u32 program, u32 port, u64 time, u32 length, bytes. With
 * rate 0 all patterns of up to `most` losses are tried, else `rounds` patterns in which so many of 1,000 carriers are lost.
 * Out: u32 patterns, u32 of them wrong, u32 the first wrong one (its number, or the bits of what was lost), u32 why; u64 rows recovered, u64 rows that all
 * lost, u64 rows in all.
 */
#ifdef PLANTED
#define HISTORY_FAULT(n) ((n) == PLANTED)
#endif
#include "../support/host.h"
#include "sync/recover.h"

#define CORES 16u
#define LOG 512u
#define STEPS 2000000u

enum why { RIGHT, STATE, FATE, STOPPED, STUCK };

struct input {
	u32 program, length;
	u8 *bytes;
	u64 seq; /* of its row, or of the last one before it */
	u32 own; /* it has a row */
	struct carrier carrier;
	u8 *slots;
};

struct side {
	struct mr_instance *self;
	struct recover r;
	u32 next;       /* the next packet that may be this core's */
	u32 waiting[3]; /* packets whose rows are in the log, oldest first */
	u32 waits;
	u32 beaten; /* it has the last heartbeat */
};

static struct input *input;
static struct mr_packet *descriptor, *outcome, *wanted;
static u8 *row_of; /* all rows, from number 1 */
static u32 packets, cores, slots, bytes;
static u64 rows, state, sum_recovered, sum_gone, sum_rows;
static u8 *lost, *seen;
static struct carrier_shape shape;
static struct carrier last;

static u64 draw(void)
{
	u64 z = state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static struct mr_instance *instance(void)
{
	return started(descriptor[0].time);
}

/* A packet as it came. */
static struct mr_packet *fresh(struct mr_packet *all, u32 i)
{
	struct mr_packet *p = &all[i];
	u8 *data = p->floor;

	*p = descriptor[i];
	memcpy(data, input[i].bytes, input[i].length);
	p->data = p->meta = p->floor = p->bared = data;
	p->end = p->ceiling = data + input[i].length;
	p->fate = 77;
	return p;
}

static void process(struct mr_instance *self, struct mr_packet *all, u32 i)
{
	const u8 *row = input[i].own ? row_of + (input[i].seq - 1) * bytes : NULL;

	module->history->process(self, input[i].program, fresh(all, i), row, input[i].own ? input[i].seq - 1 : 0);
}

/* One core that has the rows that any core has, and the packets that came. */
static struct mr_instance *reference(void)
{
	struct mr_instance *self = instance();

	memset(seen, 0, rows + 2);
	for (u64 n = last.oldest; n <= rows; n++)
		seen[n] = 1;
	for (u32 i = 0; i < packets; i++)
		for (u64 n = input[i].carrier.oldest; !lost[i] && n <= input[i].seq; n++)
			seen[n] = 1;
	for (u32 i = 0; i < packets; i++) {
		u64 n = input[i].seq;

		if (!lost[i])
			process(self, wanted, i);
		else if (input[i].own && seen[n] &&
			 module->history->replay(self, row_of + (n - 1) * bytes, 1, n - 1, descriptor[i].time, i))
			exit(7);
	}
	return self;
}

/* Receives up to three carriers, and shows their rows. */
static int receive(struct recover_group *g, struct side *s, u32 core)
{
	u32 most = 1 + draw() % 3;

	while (s->waits < most) {
		const struct carrier *c;

		while (s->next < packets && (s->next % cores != core || lost[s->next]))
			s->next++;
		if (s->next == packets && s->beaten)
			break;
		c = s->next < packets ? &input[s->next].carrier : &last;
		if (recover_put(g, &s->r, &shape, c) != RECOVER_TAKEN)
			return 0;
		if (s->next == packets) {
			s->beaten = 1;
			break;
		}
		s->waiting[s->waits++] = s->next++;
	}
	recover_publish(g, &s->r);
	return 1;
}

static void done(struct side *s)
{
	process(s->self, outcome, s->waiting[0]);
	memmove(s->waiting, s->waiting + 1, --s->waits * sizeof(*s->waiting));
}

/* One step of a core; 1: it is through. */
static int step(struct recover_group *g, struct side *s, u32 core, enum why *why)
{
	struct history_row e;
	u64 n;

	while (s->waits && !input[s->waiting[0]].own && s->r.applied >= input[s->waiting[0]].seq)
		done(s);
	if (!s->waits && s->r.applied == s->r.put) {
		if (s->beaten)
			return 1;
		if (!receive(g, s, core))
			*why = STOPPED;
		return 0;
	}
	switch (recover_next(g, &s->r, &e)) {
	case RECOVER_APPLY:
		n = s->r.applied;
		if (s->waits && input[s->waiting[0]].own && input[s->waiting[0]].seq == n) {
			done(s);
			break;
		}
		/* What came: the log's bytes, not the sequencer's. */
		if (module->history->replay(s->self, (const u8 *)e.word, 1, n - 1, descriptor[s->next ? s->next - 1 : 0].time,
					    s->next))
			*why = STOPPED;
		break;
	case RECOVER_GONE:
		sum_gone += core == 0;
		break;
	case RECOVER_STOPPED:
		*why = STOPPED;
		break;
	default:
		break;
	}
	return 0;
}

static enum why pattern(struct recover_group *g)
{
	static struct side side[CORES];
	struct mr_instance *one;
	enum why why = RIGHT;
	u32 through = 0;

	memset(g, 0, recover_bytes(cores, LOG));
	recover_create(g, cores, LOG);
	for (u32 c = 0; c < cores; c++)
		side[c] = (struct side){ .self = instance(), .r = { .self = c } };
	for (u32 steps = 0; through < cores && why == RIGHT; steps++) {
		u32 c = draw() % cores;

		through = 0;
		for (u32 other = 0; other < cores; other++)
			through += side[other].beaten && !side[other].waits && side[other].r.applied == side[other].r.put;
		step(g, &side[c], c, &why);
		if (steps > STEPS)
			why = STUCK;
	}
	one = reference();
	for (u32 c = 0; c < cores; c++) {
		if (why == RIGHT && apart(one, side[c].self))
			why = STATE;
		sum_recovered += side[c].r.recovered;
		end(side[c].self);
	}
	for (u32 i = 0; why == RIGHT && i < packets; i++) {
		struct mr_packet *a = &outcome[i], *b = &wanted[i];

		if (!lost[i] && (a->fate != b->fate || a->out != b->out || a->end - a->data != b->end - b->data ||
				 memcmp(a->data, b->data, (size_t)(a->end - a->data))))
			why = FATE;
	}
	end(one);
	sum_rows += rows;
	return why;
}

static struct carrier carrier_of(u64 seq, u32 flags, u8 **memory)
{
	struct carrier c = { .seq = seq, .flags = flags, .oldest = seq > slots ? seq - slots + 1 : 1 };

	*memory = must(calloc(slots, bytes));
	for (u64 n = c.oldest; n <= seq && n <= rows; n++)
		memcpy(*memory + (n - 1) % slots * bytes, row_of + (n - 1) * bytes, bytes);
	c.slot = *memory;
	c.newest = seq ? (u32)((seq - 1) % slots) : 0;
	return c;
}

int main(int argc, char **argv)
{
	u32 head[6], tried = 0, wrong = 0, first = 0, reason = 0;
	u64 seed;
	u8 *memory;
	struct recover_group *g;
	struct mr_instance *maker;

	load(argc, argv);
	bytes = module->history->bytes;
	take(head, sizeof(head));
	take(&seed, 8);
	packets = head[0];
	cores = head[1];
	slots = head[2];
	if (cores > CORES || packets > LOG / 2)
		exit(9);
	take_objects(1);
	input = must(calloc(packets + 1, sizeof(*input)));
	descriptor = must(calloc(packets + 1, sizeof(*descriptor)));
	outcome = must(calloc(packets + 1, sizeof(*outcome)));
	wanted = must(calloc(packets + 1, sizeof(*wanted)));
	row_of = must(calloc(packets + 1, bytes));
	lost = must(calloc(packets + 1, 1));
	seen = must(calloc(packets + 2, 1));
	for (u32 i = 0; i < packets; i++) {
		struct mr_packet *p = &descriptor[i];

		take(&input[i].program, 4);
		take(&p->port, 4);
		take(&p->time, 8);
		take(&input[i].length, 4);
		p->ports = 2;
		p->number = i;
		input[i].bytes = must(malloc(input[i].length + 1));
		take(input[i].bytes, input[i].length);
		outcome[i].floor = must(malloc(input[i].length + 1));
		wanted[i].floor = must(malloc(input[i].length + 1));
	}
	config.time = descriptor[0].time;
	maker = instance();
	for (u32 i = 0; i < packets; i++) {
		input[i].own = module->history->extract(maker, input[i].program, fresh(outcome, i), row_of + rows * bytes);
		rows += input[i].own;
		input[i].seq = rows;
	}
	end(maker);
	shape = (struct carrier_shape){ .slots = (u8)slots, .row_bytes = (u8)bytes, .time = CARRIER_NO_TIME };
	for (u32 i = 0; i < packets; i++)
		input[i].carrier = carrier_of(input[i].seq, input[i].own ? CARRIER_TOUCH : 0, &input[i].slots);
	last = carrier_of(rows + 1, CARRIER_BEAT, &memory);
	last.beats = 1ull << last.newest;
	g = must(aligned_alloc(64, (recover_bytes(cores, LOG) + 63) / 64 * 64));
	state = seed;
	if (head[4]) {
		for (tried = 0; tried < head[5]; tried++) {
			enum why why;

			for (u32 i = 0; i < packets; i++)
				lost[i] = draw() % 1000 < head[4];
			why = pattern(g);
			if (why != RIGHT && wrong++ == 0) {
				reason = why;
				first = tried;
			}
		}
	} else {
		for (u64 mask = 0; mask < 1ull << packets; mask++) {
			enum why why;

			if ((u32)__builtin_popcountll(mask) > head[3])
				continue;
			for (u32 i = 0; i < packets; i++)
				lost[i] = mask >> i & 1;
			why = pattern(g);
			if (why != RIGHT && wrong++ == 0) {
				reason = why;
				first = (u32)mask;
			}
			tried++;
		}
	}
	give(&tried, 4);
	give(&wrong, 4);
	give(&first, 4);
	give(&reason, 4);
	give(&sum_recovered, 8);
	give(&sum_gone, 8);
	give(&sum_rows, 8);
	return 0;
}

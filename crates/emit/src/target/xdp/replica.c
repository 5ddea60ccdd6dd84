
/* A replica: it brings its state up to each packet by the rows of the prefix, takes the prefix off, and runs the program. Load
 * this object once for each core: the maps of each load are one replica's state, but for `replica_log` and `replica_group`,
 * which all loads share; `replica_number` says which of them it is.
 *
 * Rows that are lost between sequencer and core are taken from another core's log (Xu et al., algorithm 1): each core writes the
 * rows of its carriers into a log of its own, and `lost` for numbers that none of them held. A row that it lost it looks for in the
 * other logs. A program of the kernel's cannot wait: while another core has not come that far, the packet is dropped (`waiting`), and
 * state goes on with the next carrier. A row that all cores lost is left out by all (`gone`).
 *
 * What comes is not trusted. What is no carrier of this form is dropped, and counted by what is wrong with it. A packet whose
 * bytes do not give its own row is dropped, and state goes the row's way. A carrier that has another row than an earlier one under
 * its number, or an earlier time, stops the group (`contradicted`: two sequencers, one that began again, two clocks, or forging), and
 * so does a log that overwrote a row before another core had it (`lost`): all drop everything from then on (`stopped`).
 */
#define LOG 1024 /* rows of a core's log */

/* A row of a log. */
struct logged {
	u64 number; /* 0: it is being written */
	u64 time;
	u32 what; /* enum what */
	u8 row[(ROW + 3) / 4 * 4];
};

enum what { LOGGED_LOST, LOGGED_ROW, LOGGED_BEAT };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CORES * LOG);
	__type(key, u32);
	__type(value, struct logged);
} replica_log SEC(".maps");

/* By core, the last row of which its log says what came of it; behind them whether the group has stopped. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CORES + 1);
	__type(key, u32);
	__type(value, u64);
} replica_group SEC(".maps");

/* Which of the cores this one is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} replica_number SEC(".maps");

struct scratch {
	u8 head[HEAD];
	u64 row[(ROW + 7) / 8];
	u64 own[(ROW + 7) / 8];
	u64 times[SLOTS];
	u64 time;
	u8 slots[SLOT_BYTES];
	struct prefix prefix;
};

enum count {
	COUNT_PACKETS, COUNT_BEATS, COUNT_REPLAYED, COUNT_LATE, COUNT_LOST, COUNT_STOPPED, COUNT_OTHER,
	COUNT_SHORT, COUNT_FOREIGN, COUNT_SHAPED, COUNT_FLAGS, COUNT_NUMBER, COUNT_INDEX, COUNT_SLOT, COUNT_TIMES,
	COUNT_RECOVERED, COUNT_GONE, COUNT_WAITING, COUNT_CONTRADICTED, COUNTS
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} replica_scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, u32);
	__type(value, u64);
} replica_counts SEC(".maps");

/* By port, the interface that a packet goes back to (XDP_TX). Without one it leaves where the replica is. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u32);
} back SEC(".maps");

/* Global functions are verified each by itself, once: what is in loops here would be verified once an iteration. Weak: so that
 * the compiler assumes nothing of them, such as that an argument is not needed. */
__attribute__((noinline, weak)) int count(u32 what, int verdict)
{
	u64 *number = bpf_map_lookup_elem(&replica_counts, &what);

	if (number)
		*number += 1;
	return verdict;
}

/* Whether there is something in a slot behind the rows, which fill `bytes`. */
__attribute__((noinline, weak)) int beyond(struct scratch *s, u32 bytes)
{
	u32 all = 0;

	if (!s)
		return 1;
	for (u32 i = 0; i < SLOT_BYTES; i++) {
		/* All ones from there on. */
		u32 mask = (u32)((s32)(bytes - 1 - i) >> 31);

		BARE(mask);
		all |= s->slots[i] & mask;
	}
	return all != 0;
}

/* The times of all rows, newest first: each is the last moment at or before the one behind it that has its 40 bits. */
__attribute__((noinline, weak)) int times(struct scratch *s, u32 held, u32 own, u32 flags)
{
	u64 behind;

	if (!s || TIME < 0)
		return 0;
	behind = bpf_be64_to_cpu(s->prefix.stamp);
	for (u32 i = 0; i < SLOTS; i++) {
		u32 slot = own >= i ? own - i : own + SLOTS - i;
		u64 low = 0, gap;

		BARE(slot);
		if (i >= held || slot >= SLOTS)
			break;
		for (u32 b = 0; b < 5; b++)
			low = low << 8 | s->slots[slot * ROW + TIME + b];
		gap = (behind - low) & TIME_MASK;
		if (gap > GAP || gap > behind || (!i && flags && gap))
			return 1;
		behind -= gap;
		s->times[slot] = behind;
	}
	return 0;
}

/* What is wrong with a carrier, in the order of docs/replication.md; COUNTS: nothing. */
INLINE u32 wrong(struct xdp_md *ctx, struct scratch *s, struct replica_head *r)
{
	u32 length = bpf_xdp_get_buff_len(ctx), flags, held, own;
	u64 sequence, marks = 0;

	if (length < PREFIX || bpf_xdp_load_bytes(ctx, 0, &s->prefix, sizeof(s->prefix)) ||
	    bpf_xdp_load_bytes(ctx, sizeof(s->prefix), s->slots, SLOT_BYTES))
		return COUNT_SHORT;
	if (s->prefix.type != bpf_htons(0x88b5) || s->prefix.flags >> 4 != 1)
		return COUNT_FOREIGN;
	if (s->prefix.slots != SLOTS || s->prefix.row_bytes != ROW)
		return COUNT_SHAPED;
	flags = s->prefix.flags & 15;
	sequence = bpf_be64_to_cpu(s->prefix.sequence);
	if (flags > FLAG_BEAT || (flags && !sequence) || (flags == FLAG_BEAT && length != PREFIX))
		return COUNT_FLAGS;
	if (sequence > LAST)
		return COUNT_NUMBER;
	if (s->prefix.index != sequence % SLOTS)
		return COUNT_INDEX;
	held = sequence < SLOTS ? sequence : SLOTS;
	for (u32 i = 0; i < MARKS; i++)
		marks |= (u64)s->prefix.marks[i] << (8 * i);
	if (held < 64 && marks >> held)
		return COUNT_SLOT;
	if (beyond(s, held * ROW))
		return COUNT_SLOT;
	own = (sequence - 1) % SLOTS;
	if (flags && (marks >> own & 1) != (flags == FLAG_BEAT))
		return COUNT_FLAGS;
	return times(s, held, own, flags) ? COUNT_TIMES : COUNTS;
}

/* Does to state what a row does, at its time. */
__attribute__((noinline, weak)) int apply(struct scratch *s, u64 time)
{
	u32 zero = 0;
	struct replica_head *r = bpf_map_lookup_elem(&replica_state, &zero);
	struct row row = {};

	if (!s || !r)
		return 0;
	for (u32 i = 0; i < ROW; i++)
		row.bytes[i] = ((u8 *)s->row)[i];
	r->clock = time;
	return replay(&row);
}

/* The whole group ends: no replica changes its state any more. */
__attribute__((noinline, weak)) int stop(u32 why)
{
	u32 at = CORES;
	u64 *stopped = bpf_map_lookup_elem(&replica_group, &at);

	if (stopped)
		*stopped = 1;
	return count(why, XDP_DROP);
}

/* The place of a row in a core's log. */
INLINE struct logged *place(u32 core, u64 number)
{
	u32 at = core * LOG + number % LOG;

	return bpf_map_lookup_elem(&replica_log, &at);
}

/* Rows of a carrier, one after the other. */
struct walk {
	struct scratch *s;
	u64 number, last, first; /* the next one, the last one; the first one that the carrier holds */
	u64 logged;              /* the last one that was there before */
	u64 stamp;
	u32 me;
	int contradicts;
};

/* Writes what came of a row into the log; of one that is there compares. */
static long note(u32 i, void *context)
{
	struct walk *w = context;
	struct scratch *s = w->s;
	u64 number = w->number++;
	struct logged *l = place(w->me, number);
	u32 slot = (number - 1) % SLOTS, differ = 0, beat;

	BARE(slot);
	if (number > w->last || !l || slot >= SLOTS)
		return 1;
	if (number < w->first) {
		__sync_lock_test_and_set(&l->number, 0);
		l->what = LOGGED_LOST;
		__sync_lock_test_and_set(&l->number, number);
		return 0;
	}
	beat = s->prefix.marks[slot / 8] >> slot % 8 & 1;
	if (number <= w->logged) {
		/* Lost, and it comes after all: a later carrier came before, and others may have left it out. */
		if (l->number != number || l->what == LOGGED_LOST)
			return 0;
		for (u32 b = 0; b < ROW && slot < SLOTS; b++)
			differ |= l->row[b] ^ s->slots[slot * ROW + b];
		if (!differ && (l->what == LOGGED_BEAT) == beat)
			return 0;
		w->contradicts = 1;
		return 1;
	}
	__sync_lock_test_and_set(&l->number, 0);
	l->what = beat ? LOGGED_BEAT : LOGGED_ROW;
	l->time = TIME < 0 ? w->stamp : s->times[slot];
	for (u32 b = 0; b < ROW && slot < SLOTS; b++)
		l->row[b] = s->slots[slot * ROW + b];
	__sync_lock_test_and_set(&l->number, number);
	return 0;
}

/* Takes a row out of a log: enum what, LOG_BEHIND where that core has not come so far, LOG_OVER where it is gone. */
enum { LOG_BEHIND = 16, LOG_OVER };

__attribute__((noinline, weak)) int read_log(struct scratch *s, u32 core, u64 number)
{
	u64 *head = bpf_map_lookup_elem(&replica_group, &core);
	struct logged *l;
	u32 what;

	if (!s || !head || core >= CORES)
		return LOG_OVER;
	if (*(volatile u64 *)head < number)
		return LOG_BEHIND;
	l = place(core, number);
	if (!l)
		return LOG_OVER;
	what = l->what;
	s->time = l->time;
	for (u32 b = 0; b < ROW; b++)
		((u8 *)s->row)[b] = l->row[b];
	/* Its owner has not begun to write another one meanwhile. */
	if (__sync_fetch_and_add(&l->number, 0) != number)
		return LOG_OVER;
	return what;
}

/* What came of a row, over all cores. */
__attribute__((noinline, weak)) int found(struct scratch *s, u32 me, u64 number)
{
	int what = read_log(s, me, number), behind = 0;

	for (u32 core = 0; core < CORES && what == LOGGED_LOST; core++) {
		int other = core == me ? LOGGED_LOST : read_log(s, core, number);

		if (other == LOG_BEHIND)
			behind = 1;
		else if (other != LOGGED_LOST) {
			if (other != LOG_OVER)
				count(COUNT_RECOVERED, 0);
			return other;
		}
	}
	return what == LOGGED_LOST && behind ? LOG_BEHIND : what;
}

/* Brings state behind the next row; 1: it cannot, for now or any more. */
static long follow(u32 i, void *context)
{
	struct walk *w = context;
	u32 zero = 0;
	struct replica_head *r = bpf_map_lookup_elem(&replica_state, &zero);
	int what;

	if (!r || w->number > w->last)
		return 1;
	what = found(w->s, w->me, w->number);
	if (what == LOG_OVER)
		stop(COUNT_LOST);
	if (what == LOG_OVER || what == LOG_BEHIND)
		return 1;
	r->applied = w->number++;
	if (what == LOGGED_LOST) {
		count(COUNT_GONE, 0);
	} else if (what == LOGGED_ROW) {
		apply(w->s, w->s->time);
		count(COUNT_REPLAYED, 0);
	}
	return 0;
}

/* Whether the packet's first bytes give another row than the one in a slot; without FLAG_TOUCH: whether they give one. */
__attribute__((noinline, weak)) int other(struct scratch *s, u32 length, u32 port, u32 slot, u32 flags)
{
	u32 differ = 0;
	u64 touch;

	if (!s || slot >= SLOTS)
		return 1;
	__builtin_memset(s->own, 0, sizeof(s->own));
	touch = extract(s->head, length, port, (u8 *)s->own);
	if (flags != FLAG_TOUCH || !touch)
		return touch != (flags == FLAG_TOUCH);
	BARE(slot);
	for (u32 i = 0; i < ROW && slot < SLOTS; i++)
		if (TIME < 0 || i < TIME || i >= TIME + 5)
			differ |= ((u8 *)s->own)[i] ^ s->slots[slot * ROW + i];
	return differ != 0;
}

SEC("xdp")
int replica(struct xdp_md *ctx)
{
	u32 zero = 0, why, flags, length, taken, own, port;
	struct replica_head *r = bpf_map_lookup_elem(&replica_state, &zero);
	struct scratch *s = bpf_map_lookup_elem(&replica_scratch, &zero);
	u32 *me = bpf_map_lookup_elem(&replica_number, &zero), all = CORES;
	u64 sequence, stamp, first, *head, *stopped;
	struct walk walk = {};
	int verdict;

	if (!r || !s || !me)
		return XDP_ABORTED;
	stopped = bpf_map_lookup_elem(&replica_group, &all);
	if (!stopped || *stopped)
		return count(COUNT_STOPPED, XDP_DROP);
	why = wrong(ctx, s, r);
	if (why != COUNTS)
		return count(why, XDP_DROP);
	flags = s->prefix.flags & 15;
	sequence = bpf_be64_to_cpu(s->prefix.sequence);
	stamp = bpf_be64_to_cpu(s->prefix.stamp);
	first = sequence < SLOTS ? 1 : sequence - SLOTS + 1;
	if (sequence < r->logged || (flags && sequence == r->logged))
		return count(COUNT_LATE, XDP_DROP);
	/* Its sequencer has no other clock. */
	if (stamp < r->stamp)
		return stop(COUNT_CONTRADICTED);
	r->stamp = stamp;
	/* What it says it has missed does not fit into its log. */
	if (first > r->logged + LOG - SLOTS)
		return stop(COUNT_LOST);
	walk.s = s;
	walk.me = *me;
	walk.stamp = stamp;
	walk.first = first;
	walk.logged = r->logged;
	walk.number = first < r->logged + 1 ? first : r->logged + 1;
	walk.last = sequence;
	if (walk.number <= walk.last)
		bpf_loop(LOG, note, &walk, 0);
	if (walk.contradicts)
		return stop(COUNT_CONTRADICTED);
	r->logged = sequence;
	head = bpf_map_lookup_elem(&replica_group, me);
	if (!head || *me >= CORES)
		return XDP_ABORTED;
	/* All of it is there before others see that it is. */
	__sync_lock_test_and_set(head, sequence);
	walk.number = r->applied + 1;
	walk.last = sequence - (flags == FLAG_TOUCH);
	if (walk.number <= walk.last)
		bpf_loop(LOG, follow, &walk, 0);
	if (r->applied < walk.last)
		return *stopped ? XDP_DROP : count(COUNT_WAITING, XDP_DROP);
	if (flags == FLAG_BEAT)
		return count(COUNT_BEATS, XDP_DROP);
	if (bpf_xdp_adjust_head(ctx, PREFIX))
		return XDP_ABORTED;
	count(COUNT_PACKETS, 0);
	own = (sequence - 1) % SLOTS;
	__builtin_memset(s->head, 0, sizeof(s->head));
	length = bpf_xdp_get_buff_len(ctx);
	taken = length < WINDOW ? length : WINDOW;
	BARE(taken);
	if (taken < 1 || taken > WINDOW || bpf_xdp_load_bytes(ctx, 0, s->head, taken))
		return XDP_ABORTED;
	if (flags == FLAG_TOUCH)
		r->applied = sequence;
	port = bpf_ntohs(s->prefix.port);
	if (other(s, length, port, own, flags)) {
		if (flags == FLAG_TOUCH && read_log(s, *me, sequence) == LOGGED_ROW)
			apply(s, stamp);
		return count(COUNT_OTHER, XDP_ABORTED);
	}
	r->clock = stamp;
	/* The program is called as it is written, by its own convention. */
	asm volatile("r1 = %[ctx]; call " PROGRAM "; %[verdict] = r0"
		     : [verdict] "=r"(verdict)
		     : [ctx] "r"(ctx)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
	return verdict == XDP_TX ? bpf_redirect_map(&back, port, XDP_TX) : verdict;
}

char _license[] SEC("license") = LICENSE;


/* A replica: it brings its state up to each packet by the rows of the prefix, takes the prefix off, and runs the program. Load
 * this object once for each core: the maps of each load are one replica's state.
 *
 * What comes is not trusted. What is no carrier of this form is dropped, and counted by what is wrong with it. A packet whose
 * bytes do not give its own row is dropped, and state goes the row's way. There is no other core's log here: a replica that
 * missed a row stops, and drops all from then on (`lost`).
 */
struct scratch {
	u8 head[HEAD];
	u64 row[(ROW + 7) / 8];
	u64 own[(ROW + 7) / 8];
	u64 times[SLOTS];
	u8 slots[SLOT_BYTES];
	struct prefix prefix;
};

enum count {
	COUNT_PACKETS, COUNT_BEATS, COUNT_REPLAYED, COUNT_LATE, COUNT_LOST, COUNT_STOPPED, COUNT_OTHER,
	COUNT_SHORT, COUNT_FOREIGN, COUNT_SHAPED, COUNT_FLAGS, COUNT_NUMBER, COUNT_INDEX, COUNT_SLOT, COUNT_TIMES, COUNTS
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

/* Does to state what the row in a slot does, at its time. */
__attribute__((noinline, weak)) int apply(struct scratch *s, u32 slot, u64 time)
{
	u32 zero = 0;
	struct replica_head *r = bpf_map_lookup_elem(&replica_state, &zero);
	struct row row = {};

	if (!s || !r || slot >= SLOTS)
		return 0;
	BARE(slot);
	for (u32 i = 0; i < ROW && slot < SLOTS; i++)
		row.bytes[i] = s->slots[slot * ROW + i];
	r->clock = time;
	return replay(&row);
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
	u64 sequence, stamp, first, done;
	int verdict;

	if (!r || !s)
		return XDP_ABORTED;
	if (r->stopped)
		return count(COUNT_STOPPED, XDP_DROP);
	why = wrong(ctx, s, r);
	if (why != COUNTS)
		return count(why, XDP_DROP);
	flags = s->prefix.flags & 15;
	sequence = bpf_be64_to_cpu(s->prefix.sequence);
	stamp = bpf_be64_to_cpu(s->prefix.stamp);
	first = sequence < SLOTS ? 1 : sequence - SLOTS + 1;
	if (sequence < r->applied || (flags && sequence == r->applied))
		return count(COUNT_LATE, XDP_DROP);
	if (first > r->applied + 1) {
		r->stopped = 1;
		return count(COUNT_LOST, XDP_DROP);
	}
	done = r->applied;
	for (u32 i = 0; i < SLOTS; i++) {
		u64 number = first + i;
		u32 slot = (number - 1) % SLOTS;

		if (number > sequence || (flags == FLAG_TOUCH && number == sequence))
			break;
		if (number <= done)
			continue;
		BARE(slot);
		if (slot >= SLOTS)
			break;
		r->applied = number;
		if (s->prefix.marks[slot / 8] >> slot % 8 & 1)
			continue;
		apply(s, slot, TIME < 0 ? stamp : s->times[slot]);
		count(COUNT_REPLAYED, 0);
	}
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
		if (flags == FLAG_TOUCH)
			apply(s, own, stamp);
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

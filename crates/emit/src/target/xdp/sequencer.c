
/* The sequencer: it takes the packets of all ports (map `ports`: interface to port), prefixes each with the rows of the last
 * SLOTS of them, and redirects it to CORES interfaces in turn (map `cores`), behind each of which a replica runs.
 *
 * The kernel has no heartbeats of its own: when one is due, packets wait for it no longer than they must, that is they are
 * dropped and counted (`due`). Who loads this sends CORES frames of 14 bytes, of any content, into an interface whose port is
 * TICK at the due time; each becomes the heartbeat of one core, core 0 first.
 */
#define TICK 0xffffffffu

struct sequencer {
	struct bpf_spin_lock lock;
	u32 turn;
	u32 index; /* sequence mod SLOTS */
	u32 beats; /* cores that still have no copy of the last heartbeat */
	u64 sequence;
	u64 row_time;
	u64 stamp;
	u64 marks;
	u64 slots[(SLOT_BYTES + 7) / 8 + 8];
};

struct scratch {
	u8 head[HEAD];
	u64 row[(ROW + 7) / 8];
	u64 slots[(SLOT_BYTES + 7) / 8 + 8];
	struct prefix prefix;
};

enum count { COUNT_SENT, COUNT_BEATS, COUNT_PORT, COUNT_DUE, COUNT_EARLY, COUNT_ENDED, COUNT_ROOM, COUNTS };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sequencer);
} sequencer_state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTS);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

/* The time in ns; 0: the kernel's clock. For tests. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} given_time SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, CORES);
	__type(key, u32);
	__type(value, u32);
} cores SEC(".maps");

INLINE int count(u32 what, int verdict)
{
	u64 *number = bpf_map_lookup_elem(&counts, &what);

	if (number)
		*number += 1;
	return verdict;
}

SEC("xdp")
int sequencer(struct xdp_md *ctx)
{
	u32 zero = 0, length = bpf_xdp_get_buff_len(ctx), interface = ctx->ingress_ifindex;
	struct sequencer *q = bpf_map_lookup_elem(&sequencer_state, &zero);
	struct scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	u64 *given = bpf_map_lookup_elem(&given_time, &zero);
	u32 *port = bpf_map_lookup_elem(&ports, &interface), taken = length, core = 0, at, refused = COUNTS;
	u64 now, stamp, due, touch = 0;
	u8 flags = 0, *slots;
	int tick;

	if (!q || !s || !given)
		return XDP_ABORTED;
	if (!port)
		return count(COUNT_PORT, XDP_PASS);
	tick = *port == TICK;
	__builtin_memset(s->row, 0, sizeof(s->row));
	if (!tick) {
		__builtin_memset(s->head, 0, sizeof(s->head));
		if (taken > WINDOW)
			taken = WINDOW;
		BARE(taken);
		if (taken < 1 || taken > WINDOW || bpf_xdp_load_bytes(ctx, 0, s->head, taken))
			return XDP_ABORTED;
		touch = extract(s->head, length, *port, (u8 *)s->row);
	}
	now = *given ? *given : bpf_ktime_get_ns();

	bpf_spin_lock(&q->lock);
	stamp = now > q->stamp ? now : q->stamp;
	due = q->row_time + PERIOD;
	if (tick) {
		flags = FLAG_BEAT;
		if (!q->beats) {
			if (!q->sequence || due > now)
				refused = COUNT_EARLY;
			else
				q->beats = CORES;
			stamp = due;
		} else {
			stamp = q->stamp;
		}
		core = CORES - q->beats;
	} else {
		flags = touch ? FLAG_TOUCH : 0;
		if (q->beats || (q->sequence && due <= stamp))
			refused = COUNT_DUE;
		core = q->turn;
	}
	if (refused == COUNTS && (touch || (tick && !core)) && q->sequence == LAST) {
		refused = COUNT_ENDED;
		q->beats = 0;
	}
	if (refused == COUNTS) {
		if (tick)
			q->beats--;
		else
			q->turn = q->turn + 1 == CORES ? 0 : q->turn + 1;
		q->stamp = stamp;
		if (touch || (tick && !core)) {
			at = q->index;
			BARE(at);
			if (at < SLOTS) {
				q->marks = (q->marks & ~(1ull << at)) | (u64)tick << at;
				slots = (u8 *)q->slots + at * ROW;
				for (u32 i = 0; i < ROW; i++)
					slots[i] = ((u8 *)s->row)[i];
				/* The low 40 bits of the stamp, big-endian. */
				for (u32 i = 0; TIME >= 0 && i < 5; i++)
					slots[TIME + i] = stamp >> (32 - 8 * i);
			}
			q->sequence++;
			q->row_time = stamp;
			q->index = at + 1 == SLOTS ? 0 : at + 1;
		}
		s->prefix.index = q->index;
		s->prefix.sequence = bpf_cpu_to_be64(q->sequence);
		for (u32 i = 0; i < MARKS; i++)
			s->prefix.marks[i] = q->marks >> (8 * i);
		for (u32 i = 0; i < (SLOT_BYTES + 7) / 8; i++)
			s->slots[i] = q->slots[i];
	}
	bpf_spin_unlock(&q->lock);
	if (refused != COUNTS)
		return count(refused, XDP_DROP);

	*(u32 *)s->prefix.to = bpf_htonl(0x024d5200);
	*(u32 *)s->prefix.from = bpf_htonl(0x024d5201);
	s->prefix.core = bpf_htons(core);
	s->prefix.port = tick ? 0 : bpf_htons(*port);
	s->prefix.type = bpf_htons(0x88b5);
	s->prefix.flags = 1 << 4 | flags;
	s->prefix.slots = SLOTS;
	s->prefix.row_bytes = ROW;
	s->prefix.stamp = bpf_cpu_to_be64(stamp);
	if (bpf_xdp_adjust_head(ctx, -PREFIX) || (tick && bpf_xdp_adjust_tail(ctx, -(int)length)))
		return count(COUNT_ROOM, XDP_DROP);
	if (bpf_xdp_store_bytes(ctx, 0, &s->prefix, sizeof(s->prefix)) ||
	    bpf_xdp_store_bytes(ctx, sizeof(s->prefix), s->slots, SLOT_BYTES))
		return XDP_ABORTED;
	count(tick ? COUNT_BEATS : COUNT_SENT, 0);
	return bpf_redirect_map(&cores, core, XDP_DROP);
}

char _license[] SEC("license") = "GPL";

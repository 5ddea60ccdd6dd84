/* The backends, and the table by which new flows are spread over them: Maglev hashing (Eisenbud et
 * al., NSDI 2016, 3.4). Each backend has its own order of preference over the table's entries, and
 * they take turns in claiming their next free one. So all get the same share to within one entry, and
 * when one leaves nearly all flows of the others stay.
 */
#ifndef LB_MAGLEV_H
#define LB_MAGLEV_H

#include <millrace/nf.h>

/* A prime, so that every step width visits every entry; the paper asks for a table much larger than
 * the number of backends. */
#define TABLE_SIZE    1021
#define MOST_BACKENDS 64

struct backend {
	__be32 address;
	__u16 mac[3];
	__u16 zero;
};

/* A backend's place in its permutation while the table is being built. */
struct turn {
	__u32 at;   /* the entry it prefers next */
	__u32 skip; /* from there to the one after */
};

/* Who is alive, and its index in `slots`. Every packet of a backend refreshes it. */
MAP(backends, __be32, __u32, .capacity = MOST_BACKENDS, .expire_after = SECONDS(10));

/* The backends as of the last rebuild, by ascending address: the table then depends on who is there
 * and not on who came first, and every load balancer before the same backends builds the same. */
VECTOR(slots, struct backend, .capacity = MOST_BACKENDS);
VECTOR(turns, struct turn, .capacity = MOST_BACKENDS);
VECTOR(table, __u32, .capacity = TABLE_SIZE); /* index in `slots` plus 1; 0: free */

static __u32 backend_count; /* of `slots` */

/* The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit depends on every bit. */
MILLRACE_INLINE __u64 mix(__u64 x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* A number below `range` from the upper half of a hash, by multiplication instead of division. */
MILLRACE_INLINE __u32 reduce(__u64 hash, __u32 range)
{
	return (hash >> 32) * range >> 32;
}

/* The backend with an address if it is alive, else NULL. */
MILLRACE_INLINE struct backend *find_backend(__be32 address)
{
	__u32 *slot = map_get(&backends, &address);

	return slot ? vector_at(&slots, *slot) : NULL;
}

/* Removes from `slots` who is gone, and who is `new`: one who went and came back between two rebuilds
 * still stands there. */
MILLRACE_INLINE __u32 keep_living(const struct backend *new)
{
	__u32 kept = 0;

	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *from, *to;
		__be32 address;

		if (i >= backend_count)
			break;
		from = vector_at(&slots, i);
		to = vector_at(&slots, kept);
		if (!from || !to)
			break;
		address = from->address;
		if (!map_get(&backends, &address) || (new && address == new->address))
			continue;
		*to = *from;
		kept++;
	}
	return kept;
}

/* Puts one in its place among `count` that are in order. */
MILLRACE_INLINE void insert(const struct backend *new, __u32 count)
{
	__u32 place = count;

	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *before, *here;

		if (!place)
			break;
		before = vector_at(&slots, place - 1);
		here = vector_at(&slots, place);
		if (!before || !here || ntohl(before->address) < ntohl(new->address))
			break;
		*here = *before;
		place--;
	}
	{
		struct backend *here = vector_at(&slots, place);

		if (here)
			*here = *new;
	}
}

/* Tells `backends` the new indices, and gives each its permutation: offset and skip are two
 * independent hashes of its address. */
MILLRACE_INLINE void number_backends(void)
{
	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *backend;
		struct turn *turn;
		__be32 address;
		__u32 *slot;
		__u64 hash;

		if (i >= backend_count)
			break;
		backend = vector_at(&slots, i);
		turn = vector_at(&turns, i);
		if (!backend || !turn)
			break;
		address = backend->address;
		slot = map_get(&backends, &address);
		if (slot)
			*slot = i;
		hash = mix(ntohl(address));
		turn->at = reduce(hash, TABLE_SIZE);
		turn->skip = 1 + reduce(hash << 32, TABLE_SIZE - 1);
	}
}

/* Lets the backends claim entries in turn until none is free. Each meets every entry once, so the
 * tries are no more than backends times entries. */
MILLRACE_INLINE void fill_table(void)
{
	__u32 left = TABLE_SIZE, who = 0;

	MILLRACE_ROLLED
	for (__u32 i = 0; i < TABLE_SIZE; i++) {
		__u32 *entry = vector_at(&table, i);

		if (entry)
			*entry = 0;
	}
	if (!backend_count)
		return;
	MILLRACE_ROLLED
	for (__u32 tries = 0; tries < MOST_BACKENDS * TABLE_SIZE; tries++) {
		struct turn *turn = vector_at(&turns, who);
		__u32 *entry;

		if (!turn)
			break;
		entry = vector_at(&table, turn->at);
		turn->at += turn->skip;
		if (turn->at >= TABLE_SIZE)
			turn->at -= TABLE_SIZE;
		if (!entry || *entry)
			continue;
		*entry = who + 1;
		if (!--left)
			break;
		if (++who >= backend_count)
			who = 0;
	}
}

/* Makes the table anew for those who are alive, one of them new or none. Rare and long, so it is a
 * function of its own. */
static __attribute__((noinline)) void rebuild(const struct backend *new)
{
	backend_count = keep_living(new);
	if (new && backend_count < MOST_BACKENDS) {
		insert(new, backend_count);
		backend_count++;
	}
	number_backends();
	fill_table();
}

/* Whether one of `slots` is gone. */
MILLRACE_INLINE _Bool any_backend_gone(void)
{
	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *backend;

		if (i >= backend_count)
			break;
		backend = vector_at(&slots, i);
		if (!backend || !find_backend(backend->address))
			return 1;
	}
	return 0;
}

/* The backend that the table has for a flow, or NULL when there is none. */
MILLRACE_INLINE struct backend *look_up(__u64 hash)
{
	__u32 *entry = vector_at(&table, reduce(hash, TABLE_SIZE));
	struct backend *backend;

	if (!entry || !*entry)
		return NULL;
	backend = vector_at(&slots, *entry - 1);
	return backend ? find_backend(backend->address) : NULL;
}

/* The backend for a new flow, always a living one; NULL when there is none. */
MILLRACE_INLINE struct backend *choose_backend(const struct flow4 *f)
{
	__u64 hash = mix(mix(load64(&f->src)) ^ load64(&f->sport));
	struct backend *backend = look_up(hash);

	if (backend || !backend_count)
		return backend;
	/* The table names one that has just gone. */
	rebuild(NULL);
	return look_up(hash);
}

#endif

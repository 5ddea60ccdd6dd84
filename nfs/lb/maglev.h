/* The table by which new flows are spread over the backends: Maglev hashing (Eisenbud et al., NSDI 2016,
 * 3.4). Each backend has its own order of preference over the table's entries, and they take turns in
 * claiming their next free one. So all get the same share to within one entry, and when one leaves
 * nearly all flows of the others stay.
 *
 * Building takes about TABLE_SIZE ln TABLE_SIZE tries, far too long for the time of one packet, so a
 * timer does it in pieces, in the half of `table` that does not serve, and then the halves change
 * places. Until then the old half serves: an entry whose backend is gone is stood in for.
 */
#ifndef LB_MAGLEV_H
#define LB_MAGLEV_H

#include "backends.h"

/* A prime, so that every step width visits every entry. */
#define TABLE_SIZE    1021
#define TRIES_A_PIECE 4096

struct entry {
	__be32 address;
	__u32 build; /* that claimed it */
};
VECTOR(table, struct entry, .capacity = 2 * TABLE_SIZE);

/* A backend's way through the entries, in the order of its preference. */
struct walk {
	__u32 at;
	__u32 step;
};
VECTOR(walks, struct walk, .capacity = MOST_BACKENDS);

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

/* Begins a table for those in `slots`: where each starts, and how wide its steps are, are two
 * independent hashes of its address. */
MILLRACE_INLINE void begin_table(struct progress *state)
{
	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *backend = vector_at(&slots, i);
		struct walk *walk = vector_at(&walks, i);
		__u64 hash;

		if (!backend || !walk || i >= state->backends)
			break;
		hash = mix(ntohl(backend->address));
		walk->at = reduce(hash, TABLE_SIZE);
		walk->step = 1 + reduce(hash << 32, TABLE_SIZE - 1);
	}
	state->changed = 0;
	state->turn = 0;
	state->build++;
	state->left = state->backends ? TABLE_SIZE : 0;
}

/* Lets the backends claim entries in turn. Each meets every entry once in its walk, so they find one
 * as long as there is one. */
MILLRACE_INLINE void continue_table(struct progress *state)
{
	MILLRACE_ROLLED
	for (__u32 tries = 0; tries < TRIES_A_PIECE; tries++) {
		struct walk *walk = vector_at(&walks, state->turn);
		struct backend *backend = vector_at(&slots, state->turn);
		struct entry *entry;

		if (!state->left || !walk || !backend)
			break;
		entry = vector_at(&table, walk->at + (state->serving ? 0 : TABLE_SIZE));
		walk->at += walk->step;
		if (walk->at >= TABLE_SIZE)
			walk->at -= TABLE_SIZE;
		if (!entry || entry->build == state->build)
			continue;
		entry->build = state->build;
		entry->address = backend->address;
		if (++state->turn >= state->backends)
			state->turn = 0;
		if (!--state->left)
			state->serving ^= 1;
	}
}

/* Stands in for an entry whose backend is gone or that was never claimed: the first living backend from
 * a place that the flow's hash gives. */
MILLRACE_INLINE struct backend *stand_in(const struct progress *state, __u64 hash)
{
	__u32 place = reduce(hash << 32, state->backends);

	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *backend = vector_at(&slots, place);

		if (!backend || i >= state->backends)
			break;
		backend = find_backend(backend->address);
		if (backend)
			return backend;
		if (++place >= state->backends)
			place = 0;
	}
	return NULL;
}

/* The backend for a new flow, always a living one; NULL when there is none. */
MILLRACE_INLINE struct backend *choose_backend(const struct progress *state, const struct flow4 *f)
{
	__u64 hash = mix(mix(load64(&f->src)) ^ load64(&f->sport));
	struct entry *entry =
		vector_at(&table, reduce(hash, TABLE_SIZE) + (state->serving ? TABLE_SIZE : 0));
	struct backend *backend = entry ? find_backend(entry->address) : NULL;

	return backend ? backend : stand_in(state, hash);
}

#endif

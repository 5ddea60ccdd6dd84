/* Which backends there are: registered by their packets, gone when they have been silent. */
#ifndef LB_BACKENDS_H
#define LB_BACKENDS_H

#include <millrace/nf.h>

#define MOST_BACKENDS 64

struct backend {
	__be32 address;
	__u16 mac[3];
	__u16 zero;
};

/* Who is alive, and its place in `slots`. Every packet of a backend refreshes it. */
MAP(backends, __be32, __u32, .capacity = MOST_BACKENDS, .expire_after = SECONDS(10));

/* Who lives but shall get nothing: set from outside, by who asks the backends for their health. The value is
 * theirs. */
MAP(unhealthy, __be32, __u32, .capacity = MOST_BACKENDS);

/* By ascending address, so that what is built from them depends on who is there and not on who came
 * first. Who is gone stays until the next change. */
VECTOR(slots, struct backend, .capacity = MOST_BACKENDS);

/* How far the table is; see maglev.h. One element. */
struct progress {
	__u32 backends; /* in `slots` */
	__u32 changed;  /* since the table was begun */
	__u32 left;     /* entries that nobody has claimed yet; 0: not building */
	__u32 turn;     /* whose turn it is to claim one */
	__u32 serving;  /* which half of `table` serves, 0 or 1 */
	__u32 build;    /* number of the build, from 1 */
};
VECTOR(progress, struct progress, .capacity = 1);

/* The backend with an address if it is alive, else NULL. */
MILLRACE_INLINE struct backend *find_backend(__be32 address)
{
	__u32 *slot = map_get(&backends, &address);

	return slot ? vector_at(&slots, *slot) : NULL;
}

/* Removes from `slots` who is gone, and one that is about to be put in: who went and came back between
 * two changes still stands there. Gives the others their new places. */
MILLRACE_INLINE void keep_living(struct progress *state, __be32 except)
{
	__u32 count = state->backends;

	state->backends = 0;
	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *from = vector_at(&slots, i);
		struct backend *to = vector_at(&slots, state->backends);
		__be32 address;
		__u32 *slot;

		if (i >= count || !from || !to)
			break;
		address = from->address;
		slot = map_get(&backends, &address);
		if (!slot || address == except)
			continue;
		/* Registers again with its first packet after it has recovered. */
		if (map_get(&unhealthy, &address)) {
			map_delete(&backends, &address);
			continue;
		}
		*slot = state->backends++;
		*to = *from;
	}
	state->changed = 1;
}

/* Puts one that `backends` has into its place in `slots`: those behind it move up by one. */
MILLRACE_INLINE void insert(struct progress *state, const struct backend *new)
{
	struct backend carried = *new;

	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *here = vector_at(&slots, i), moved;
		__u32 *slot;

		if (!here || i > state->backends)
			break;
		if (i < state->backends && ntohl(here->address) < ntohl(carried.address))
			continue;
		moved = *here;
		*here = carried;
		slot = map_get(&backends, &carried.address);
		if (slot)
			*slot = i;
		carried = moved;
	}
	state->backends++;
}

/* Whether one of `slots` is gone, or unhealthy and so has to go. */
MILLRACE_INLINE _Bool any_backend_gone(const struct progress *state)
{
	MILLRACE_ROLLED
	for (__u32 i = 0; i < MOST_BACKENDS; i++) {
		struct backend *backend = vector_at(&slots, i);

		if (!backend || i >= state->backends)
			break;
		if (!find_backend(backend->address) || map_get(&unhealthy, &backend->address))
			return 1;
	}
	return 0;
}

#endif

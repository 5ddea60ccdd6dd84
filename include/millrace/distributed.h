/* Numbers that all packets add to, and that some read: a counter of flows, a highest rate, a set of marks.
 *
 *     DISTRIBUTED(name, struct { __u64 flows; __u64 one; }, .staleness = NS);
 *
 *     distributed_add(&name, member, n)     adds n; what is negative takes away
 *     distributed_max(&name, member, n)     n, if that is more
 *     distributed_or(&name, member, bits)   sets bits
 *     distributed_read(&name)               a copy of all members
 *
 * Each member is a __u64, 0 at the start, and changed by one of the three alone: of these it does not matter in which
 * order they are done, so that parts of them can be merged. No pointer to a member is to be had.
 *
 * A read is consistent: it has all that a packet did to the members, or nothing of it. What a packet did itself it
 * sees. What others did before it sees as well with .staleness = 0; else what is older than `staleness` ns of the
 * packets' time for certain, and what is younger perhaps.
 */
#ifndef MILLRACE_DISTRIBUTED_H
#define MILLRACE_DISTRIBUTED_H

#include <millrace/state.h>

#define DISTRIBUTED(name, T, ...)                                                              \
	typedef T MILLRACE_PARTS(name);                                                        \
	MILLRACE_STATE(name, MILLRACE_VECTOR, __u32, MILLRACE_PARTS(name), .capacity = 1,      \
		       __VA_ARGS__)

#define MILLRACE_PARTS(name) millrace_parts_of_##name

#define MILLRACE_MERGED(object, member, n, does)                                               \
	do {                                                                                   \
		MILLRACE_VALUE(object) millrace_all = vector_at(object, 0);                    \
		__u64 millrace_n = (n);                                                        \
                                                                                               \
		_Static_assert(__builtin_types_compatible_p(typeof(millrace_all->member),      \
							    __u64),                            \
			       "a member of DISTRIBUTED is a __u64");                          \
		if (millrace_all)                                                              \
			does(millrace_all->member, millrace_n);                                \
	} while (0)

#define distributed_add(object, member, n) MILLRACE_MERGED(object, member, n, MILLRACE_ADD)
#define distributed_max(object, member, n) MILLRACE_MERGED(object, member, n, MILLRACE_MAX)
#define distributed_or(object, member, n)  MILLRACE_MERGED(object, member, n, MILLRACE_OR)

#define MILLRACE_ADD(of, n) ((of) += (n))
#define MILLRACE_OR(of, n)  ((of) |= (n))
#define MILLRACE_MAX(of, n)                                                                    \
	do {                                                                                   \
		if ((n) > (of))                                                                \
			(of) = (n);                                                            \
	} while (0)

#define distributed_read(object)                                                               \
	({                                                                                     \
		const typeof(*(object)->value) *millrace_all = vector_at(object, 0);           \
		typeof(*(object)->value) millrace_copy = {};                                   \
                                                                                               \
		if (millrace_all)                                                              \
			millrace_copy = *millrace_all;                                         \
		millrace_copy;                                                                 \
	})

#endif

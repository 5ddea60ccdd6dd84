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
 * A read is consistent: it has all that a packet did to the members, or nothing of it. What packets of its own core did
 * it sees. What others did before it sees as well with .staleness = 0; else what they had done when its core began
 * its first packet of the last `staleness` ns for certain, and what they did since perhaps (docs/packet-sets.md).
 */
#ifndef MILLRACE_DISTRIBUTED_H
#define MILLRACE_DISTRIBUTED_H

#include <millrace/state.h>

static __u64 (*const millrace_distributed_add)(void *, __u64, __u64) = (void *)0x10070;
static __u64 (*const millrace_distributed_max)(void *, __u64, __u64) = (void *)0x10071;
static __u64 (*const millrace_distributed_or)(void *, __u64, __u64) = (void *)0x10072;
static __u64 (*const millrace_distributed_read)(void *, __u64) = (void *)0x10073;

#define DISTRIBUTED(name, T, ...)                                                              \
	typedef T MILLRACE_PARTS(name);                                                        \
	MILLRACE_STATE(name, MILLRACE_DISTRIBUTED, __u32, MILLRACE_PARTS(name), .capacity = 1, \
		       __VA_ARGS__)

#define MILLRACE_PARTS(name) millrace_parts_of_##name

/* The place of a member, a constant. */
#define MILLRACE_MEMBER(object, member)                                                        \
	({                                                                                     \
		_Static_assert(                                                                \
			__builtin_types_compatible_p(typeof((object)->value->member), __u64),  \
			"a member of DISTRIBUTED is a __u64");                                 \
		__builtin_offsetof(typeof(*(object)->value), member) / 8;                      \
	})

#define distributed_add(object, member, n)                                                     \
	((void)millrace_distributed_add((object), MILLRACE_MEMBER(object, member), (n)))
#define distributed_max(object, member, n)                                                     \
	((void)millrace_distributed_max((object), MILLRACE_MEMBER(object, member), (n)))
#define distributed_or(object, member, n)                                                      \
	((void)millrace_distributed_or((object), MILLRACE_MEMBER(object, member), (n)))

#define distributed_read(object)                                                               \
	({                                                                                     \
		union {                                                                        \
			typeof(*(object)->value) all;                                          \
			__u64 each[sizeof(typeof(*(object)->value)) / 8];                      \
		} millrace_copy;                                                               \
                                                                                               \
		_Pragma("clang loop unroll(full)")                                             \
		for (__u64 millrace_i = 0;                                                     \
		     millrace_i < sizeof(millrace_copy.each) / 8; millrace_i++)                \
			millrace_copy.each[millrace_i] =                                       \
				millrace_distributed_read((object), millrace_i);               \
		millrace_copy.all;                                                             \
	})

#endif

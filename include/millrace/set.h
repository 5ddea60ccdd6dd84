/* Packet sets: packets that belong together, such as those of a flow, and what is known of them.
 *
 *     PACKET_SET(name, KEY, STATE, .capacity = N, .expire_after = NS);
 *
 *     SET_KEY(p, key)           { …; return 1; }     writes the key of the packet's set; 0: it is in none
 *     ON_FIRST_PACKET(p, key)   { return verdict; }  of a set that is not there; set_open(&name, key, &state) makes it
 *     ON_PACKET(p, key, state)  { return verdict; }  of a set that is; its age is 0 from now. Also ON_PACKET(p, state)
 *     ON_ORPHAN(p)              { return verdict; }  of a packet in no set
 *     ON_EXPIRY(p, key, state)  { … }                a set had no packet for .expire_after; may be left out
 *
 * The sets of a program are declared once, before these handlers. A set is an entry of a map, and everything that is
 * said of MAP (state.h) is said of it: set_open refuses (NULL) when `capacity` sets are there; a STATE is its own
 * set's alone, so that where packets are steered by the key no other core touches it.
 *
 * SET_KEY says what packets belong together: header fields, or anything that it computes of them. It names the protocol by
 * the packets for which it returns 0, and may do something else at each port (p->port): `return packet_flow(p, key);` is
 * a set for each direction of each flow; flow_symmetric makes one set of both, and flow_reverse at one of two ports makes
 * the answers part of the flow that the other port opened. All bytes of the key must be written.
 *
 * ON_EXPIRY runs exactly once for each set that expires, at the moment at which its age reaches .expire_after: before the
 * next packet that comes to its core at or after that moment, and within a millisecond if none comes. The set is not there
 * any more; `key` and `state` are copies of what it had, and p is a packet of no bytes, for p->time. Sets that expire
 * at the same moment do so in any order. set_close ends a set without it.
 *
 * Where time goes back, what has expired stays so, and a set is no younger than before.
 */
#ifndef MILLRACE_SET_H
#define MILLRACE_SET_H

#include <millrace/flow.h>
#include <millrace/handler.h>
#include <millrace/state.h>

/* A handler that is missing is an error of the compiler, not of a linker. */
#pragma clang diagnostic error "-Wundefined-internal"
#pragma clang diagnostic error "-Wundefined-inline"

#define PACKET_SET(name, K, V, ...)                                                            \
	typedef K millrace_set_key;                                                            \
	typedef V millrace_set_state;                                                          \
	MILLRACE_STATE(name, MILLRACE_MAP, millrace_set_key, millrace_set_state, __VA_ARGS__); \
	static const void *const millrace_set                                                  \
		__attribute__((section("millrace/set"), used)) = &name;                        \
	MILLRACE_INLINE int millrace_set_find(struct packet *, millrace_set_key *);            \
	MILLRACE_INLINE int millrace_set_first(struct packet *, const millrace_set_key *);     \
	MILLRACE_INLINE int millrace_set_live(struct packet *, const millrace_set_key *,       \
					      millrace_set_state *);                           \
	MILLRACE_INLINE int millrace_set_orphan(struct packet *);                              \
	int millrace_on_packet(struct packet *);                                               \
	__attribute__((section("millrace/on_packet"), used)) int millrace_on_packet(           \
		struct packet *p)                                                              \
	{                                                                                      \
		millrace_set_key key = {};                                                     \
		millrace_set_state *state;                                                     \
                                                                                               \
		MILLRACE_IN_MEMORY(&key);                                                      \
		if (!millrace_set_find(p, &key))                                               \
			return millrace_set_orphan(p);                                         \
		state = map_refresh(&name, &key);                                              \
		return state ? millrace_set_live(p, &key, state) :                             \
			       millrace_set_first(p, &key);                                    \
	}                                                                                      \
	static const __u64 millrace_set_declared __attribute__((unused)) = 0

#define SET_KEY(p, key)                                                                        \
	MILLRACE_INLINE int millrace_set_find(struct packet *p __attribute__((unused)),        \
					      millrace_set_key *key)

#define ON_FIRST_PACKET(p, key)                                                                \
	MILLRACE_INLINE int millrace_set_first(struct packet *p __attribute__((unused)),       \
					       const millrace_set_key *key                     \
					       __attribute__((unused)))

#define MILLRACE_ON_SET(p, key, state)                                                         \
	MILLRACE_INLINE int millrace_set_live(struct packet *p __attribute__((unused)),        \
					      const millrace_set_key *key                      \
					      __attribute__((unused)),                         \
					      millrace_set_state *state                        \
					      __attribute__((unused)))

#define MILLRACE_ON_STATE(p, state) MILLRACE_ON_SET(p, millrace_key, state)

#define ON_ORPHAN(p) \
	MILLRACE_INLINE int millrace_set_orphan(struct packet *p __attribute__((unused)))

#define ON_EXPIRY(p, key, state)                                                               \
	void millrace_on_expiry(struct packet *, const millrace_set_key *,                     \
				const millrace_set_state *);                                   \
	__attribute__((section("millrace/on_expiry"), used)) void millrace_on_expiry(          \
		struct packet *p __attribute__((unused)),                                      \
		const millrace_set_key *key __attribute__((unused)),                           \
		const millrace_set_state *state __attribute__((unused)))

/* The state of the new set, or NULL: as many are there as fit. */
#define set_open(set, k, ...) map_put(set, k, __VA_ARGS__)
/* Ends a set, without ON_EXPIRY; whether it was there. */
#define set_close(set, ...) map_delete(set, __VA_ARGS__)

/* The 5-tuple, one name for both directions: the end with the lower address and port comes first. Whether the ends were
 * exchanged. */
MILLRACE_LIBRARY _Bool flow_symmetric(struct flow *f)
{
	_Bool later = 0;

	if (f->src.words[0] != f->dst.words[0])
		later = f->src.words[0] > f->dst.words[0];
	else if (f->src.words[1] != f->dst.words[1])
		later = f->src.words[1] > f->dst.words[1];
	else
		later = f->sport > f->dport;
	if (later)
		flow_reverse(f);
	return later;
}

#endif

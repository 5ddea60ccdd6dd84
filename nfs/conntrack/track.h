/* The state machine of RFC 9293, seen from between the two ends.
 *
 * Everything that an end has sent passed here, so the highest sequence number seen of it is at least
 * what the other end can have received: an acknowledgment beyond it is forged. Windows are not
 * followed: without the scale (RFC 7323) they mean nothing, and with it a window is at most 2^30, so
 * half of that space of numbers is what cannot belong to the connection.
 */
#ifndef CONNTRACK_TRACK_H
#define CONNTRACK_TRACK_H

#include <linux/types.h>

enum flag {
	FIN = 0x01,
	SYN = 0x02,
	RST = 0x04,
	ACK = 0x10,
};

/* One end's name. */
struct end {
	__be32 address;
	__be16 port;
	__u16 zero;
};

/* The 4-tuple, the same in both directions: the lower end, then the upper. */
struct pair {
	struct end lower;
	struct end upper;
};

struct segment {
	__u32 seq;
	__u32 end; /* the number after its last */
	__u32 ack;
	__u32 flags; /* enum flag */
};

enum state {
	SYN_SENT = 1, /* a SYN one way */
	SYN_RECEIVED, /* SYNs both ways; not both are acknowledged */
	ESTABLISHED,
	FIN_WAIT,  /* a FIN one way */
	CLOSING,   /* FINs both ways; not both are acknowledged */
	TIME_WAIT, /* both are */
};

/* What is known of what one end sent. */
struct side {
	__u32 isn;   /* the number of its SYN */
	__u32 next;  /* the highest number after a segment: its SND.NXT, as far as seen */
	__u32 acked; /* the highest that the other end acknowledged, its SND.UNA; the ISN: nothing */
};

struct connection {
	__u64 time;  /* of the last segment let through, ns */
	__u32 state; /* enum state */
	__u8 syn;    /* sides that sent a SYN, a bit each */
	__u8 fin;    /* … a FIN */
	__u16 zero;
	struct side sides[2]; /* the lower end, the upper */
};

/* How long a connection is kept without a segment: RFC 5382, REQ-5. */
#define TRANSITORY  (240ull * 1000000000)
#define KEPT        (7440ull * 1000000000)

/* The largest window, 65535 scaled by 14, is just less (RFC 7323, 2.3). */
#define LARGEST_WINDOW (1u << 30)

/* Sequence numbers are compared modulo 2^32 (RFC 9293, 3.4): whether a comes after b. */
static __always_inline int after(__u32 a, __u32 b)
{
	return (__s32)(a - b) > 0;
}

/* By value, not through an index that a verifier would have to bound. */
static __always_inline struct side *side_of(struct connection *c, __u32 side)
{
	return side ? &c->sides[1] : &c->sides[0];
}

static __always_inline void begin(struct connection *c, __u32 side, const struct segment *s,
				  __u64 now)
{
	struct side first = { s->seq, s->end, s->seq }, none = {};

	c->time = now;
	c->state = SYN_SENT;
	c->syn = 1 << side;
	c->fin = 0;
	c->zero = 0;
	c->sides[0] = side ? none : first;
	c->sides[1] = side ? first : none;
}

/* Whether the entry stands in nobody's way: it has been silent for too long, or it is in TIME-WAIT and
 * a SYN comes with a higher number than the connection used (RFC 9293, 3.6.1). */
static __always_inline int may_begin_again(struct connection *c, __u32 side,
					   const struct segment *s, __u64 now)
{
	__u64 limit = c->state == ESTABLISHED || c->state == FIN_WAIT ? KEPT : TRANSITORY;

	if (now > c->time && now - c->time >= limit)
		return 1;
	return c->state == TIME_WAIT && s->flags == SYN && after(s->seq, side_of(c, side)->next);
}

enum outcome {
	REFUSED,
	ALLOWED,
	ENDED, /* allowed, and the connection is gone with it */
};

/* A reset is believed with the number that the receiver expects, and that lies between what it
 * acknowledged and what was sent (RFC 9293, 3.5.3; RFC 5961, 3.2). One that answers the first SYN
 * acknowledges it (3.10.7.3). */
static __always_inline int reset_allowed(const struct connection *c, __u32 side,
					 const struct side *own, const struct side *peer,
					 const struct segment *s)
{
	if (s->flags & (SYN | FIN))
		return 0;
	if (!(c->syn >> side & 1))
		return s->flags & ACK && s->ack == peer->next;
	return !after(own->acked, s->seq) && !after(s->seq, own->next);
}

/* 3.10.7.4: what was not sent yet must not be acknowledged, nor what lies further back than a window;
 * the first acknowledgment of an end is of its SYN at least. */
static __always_inline int ack_allowed(const struct side *peer, const struct segment *s)
{
	if (after(s->ack, peer->next))
		return 0;
	if (peer->acked == peer->isn)
		return after(s->ack, peer->isn);
	return !after(peer->acked - LARGEST_WINDOW, s->ack);
}

/* A SYN of an end: its first, which acknowledges the other's unless both opened at once (3.5, figure
 * 7), or the same once more. */
static __always_inline int syn_allowed(const struct connection *c, __u32 side,
				       const struct side *own, const struct side *peer,
				       const struct segment *s)
{
	if (s->flags & FIN || (s->flags & ACK && !ack_allowed(peer, s)))
		return 0;
	return !(c->syn >> side & 1) || (s->seq == own->isn && !after(s->end, own->next));
}

/* Anything else acknowledges (3.10.7.4) and comes after both SYNs, within a window of what its sender
 * sent before, and not beyond its FIN, which nothing follows. */
static __always_inline int data_allowed(const struct connection *c, __u32 side,
					const struct side *own, const struct side *peer,
					const struct segment *s)
{
	if (!(s->flags & ACK) || c->syn != 3 || !ack_allowed(peer, s))
		return 0;
	if (after(s->end, own->next + LARGEST_WINDOW) || after(own->next - LARGEST_WINDOW, s->end))
		return 0;
	if (s->flags & FIN && after(own->next, s->end))
		return 0;
	return !(c->fin >> side & 1) || !after(s->end, own->next);
}

/* Where the SYNs, FINs and acknowledgments so far have led. */
static __always_inline __u32 state_of(const struct connection *c)
{
	const struct side *a = &c->sides[0], *b = &c->sides[1];

	if (c->syn != 3)
		return SYN_SENT;
	if (a->acked == a->isn || b->acked == b->isn)
		return SYN_RECEIVED;
	if (!c->fin)
		return ESTABLISHED;
	if (c->fin != 3)
		return FIN_WAIT;
	return a->acked == a->next && b->acked == b->next ? TIME_WAIT : CLOSING;
}

/* A segment of a connection that is known: whether it is allowed, and where it leads. One that is
 * refused changes nothing. */
static __always_inline enum outcome proceed(struct connection *c, __u32 side,
					    const struct segment *s)
{
	struct side *own = side_of(c, side), *peer = side_of(c, !side);

	if (s->flags & RST)
		return reset_allowed(c, side, own, peer, s) ? ENDED : REFUSED;
	if (s->flags & SYN) {
		if (!syn_allowed(c, side, own, peer, s))
			return REFUSED;
		if (!(c->syn >> side & 1))
			*own = (struct side){ s->seq, s->end, s->seq };
		c->syn |= 1 << side;
	} else if (!data_allowed(c, side, own, peer, s)) {
		return REFUSED;
	}
	if (s->flags & ACK && after(s->ack, peer->acked))
		peer->acked = s->ack;
	if (after(s->end, own->next))
		own->next = s->end;
	if (s->flags & FIN)
		c->fin |= 1 << side;
	c->state = state_of(c);
	return ALLOWED;
}

#endif

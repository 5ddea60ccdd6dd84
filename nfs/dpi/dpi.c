/* A deep packet inspector: what protocol a session speaks, by the first bytes of its payload, whatever its ports are. */
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

PARAM(__u64, blocked, 0); /* protocols whose sessions are dropped: bit n for protocol n */
PARAM(__u64, looks, 4);   /* packets with payload after which a session stays unknown */

enum protocol { UNKNOWN, HTTP, TLS, SSH, SMTP, DNS, QUIC, BITTORRENT, PROTOCOLS };

/* A session is both directions of a flow, as the LAN sees it. */
PACKET_SET(sessions, struct flow4, struct { __u64 protocol; __u64 looked; }, .capacity = 65536,
	   .expire_after = SECONDS(120));

struct traffic {
	__u64 packets, bytes;
};

VECTOR(protocols, struct traffic, .capacity = PROTOCOLS);

SET_KEY(p, key)
{
	struct flow4_headers headers;
	struct flow4 f;

	if (packet_find_flow4(p, &f, &headers) != FLOW_OWN)
		return 0;
	if (p->port == WAN)
		flow4_reverse(&f);
	*key = f;
	return 1;
}

/* Eight bytes, the first one highest. */
#define WORD(a, b, c, d, e, f, g, h)                                                           \
	((__u64)(a) << 56 | (__u64)(b) << 48 | (__u64)(c) << 40 | (__u64)(d) << 32 |           \
	 (__u64)(e) << 24 | (__u64)(f) << 16 | (__u64)(g) << 8 | (__u64)(h))

/* The first eight bytes behind the transport header; 0: there are fewer. */
MILLRACE_INLINE __u64 first_bytes(const struct packet *p, __u8 *protocol)
{
	struct ipv4 *ip;
	struct tcp *tcp;
	__be16 type;
	void *at;
	__u32 header = packet_network(p, &type);

	if (!header)
		return 0;
	ip = ipv4_at(p, header);
	if (!ip)
		return 0;
	*protocol = ip->protocol;
	header += ipv4_header_bytes(ip);
	if (*protocol == PROTOCOL_TCP) {
		tcp = packet_at(p, header, struct tcp);
		if (!tcp)
			return 0;
		header += tcp_header_bytes(tcp);
	} else {
		header += sizeof(struct udp);
	}
	at = packet_bytes(p, header, 8);
	return at ? __builtin_bswap64(load64(at)) : 0;
}

/* Which words begin a protocol over TCP. */
MILLRACE_INLINE enum protocol of_stream(__u64 word)
{
	__u64 four = word >> 32;

	if (four == WORD(0, 0, 0, 0, 'G', 'E', 'T', ' ') || four == WORD(0, 0, 0, 0, 'P', 'O', 'S', 'T') ||
	    four == WORD(0, 0, 0, 0, 'H', 'E', 'A', 'D') || four == WORD(0, 0, 0, 0, 'P', 'U', 'T', ' ') ||
	    four == WORD(0, 0, 0, 0, 'H', 'T', 'T', 'P'))
		return HTTP;
	/* A handshake record of version 3.x (RFC 8446, 5.1). */
	if (word >> 48 == 0x1603)
		return TLS;
	if (four == WORD(0, 0, 0, 0, 'S', 'S', 'H', '-'))
		return SSH;
	if (four == WORD(0, 0, 0, 0, '2', '2', '0', ' ') || four == WORD(0, 0, 0, 0, 'E', 'H', 'L', 'O'))
		return SMTP;
	return word == WORD(19, 'B', 'i', 't', 'T', 'o', 'r', 'r') ? BITTORRENT : UNKNOWN;
}

/* And over UDP. */
MILLRACE_INLINE enum protocol of_datagram(__u64 word)
{
	/* A long header of version 1 (RFC 9000, 17.2). */
	if ((word >> 24 & 0xc0ffffffffull) == 0xc000000001ull)
		return QUIC;
	/* A query or an answer with one question (RFC 1035, 4.1.1): opcode 0, no reserved bit. */
	return (word >> 16 & 0x7840ffffull) == 0x00000001ull ? DNS : UNKNOWN;
}

MILLRACE_INLINE int judged(const struct packet *p, __u64 protocol)
{
	struct traffic *of = vector_at(&protocols, protocol);

	if (of) {
		of->packets++;
		of->bytes += packet_length(p);
	}
	if (protocol != UNKNOWN && blocked >> (protocol & 63) & 1)
		return DROP_BECAUSE(blocked_protocol);
	return FORWARD(peer(p));
}

MILLRACE_INLINE enum protocol speaks(const struct packet *p, __u64 *looked)
{
	__u8 protocol = 0;
	__u64 word = first_bytes(p, &protocol);

	if (!word)
		return UNKNOWN;
	++*looked;
	return protocol == PROTOCOL_TCP ? of_stream(word) : of_datagram(word);
}

ON_FIRST_PACKET(p, key)
{
	millrace_set_state session = {};

	session.protocol = speaks(p, &session.looked);
	if (!set_open(&sessions, key, &session))
		return DROP_BECAUSE(table_full);
	return judged(p, session.protocol);
}

ON_PACKET(p, session)
{
	if (session->protocol == UNKNOWN && session->looked < looks)
		session->protocol = speaks(p, &session->looked);
	return judged(p, session->protocol);
}

ON_ORPHAN(p)
{
	return FORWARD(peer(p));
}

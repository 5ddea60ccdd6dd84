/* Abacus: what each client is charged for, which is not what TCP sends again (the accounting of mOS, Jamshed et al., NSDI
 * 2017). By sequence numbers; whether the same bytes come again, nobody looks. */
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

/* What one end has sent. */
struct side {
	__u32 known;
	__u32 next; /* the sequence number behind all that came */
};

PACKET_SET(connections, struct flow4, struct { struct side sides[2]; }, .capacity = 65536,
	   .expire_after = SECONDS(300));

struct account {
	__u64 bytes, charged;
};

MAP(clients, __be32, struct account, .capacity = 65536, .expire_after = MINUTES(60));

/* The connection as the client in the LAN sees it. */
SET_KEY(p, key)
{
	struct flow4_headers headers;
	struct flow4 f;

	if (packet_find_flow4(p, &f, &headers) != FLOW_OWN || f.protocol != PROTOCOL_TCP)
		return 0;
	if (p->port == WAN)
		flow4_reverse(&f);
	*key = f;
	return 1;
}

/* How far `n` bytes from sequence number `from` on advance an end. What is missing in between is charged with them, and
 * not when it comes. */
MILLRACE_INLINE __u32 advance(struct side *side, __u32 from, __u32 n)
{
	__s32 ahead = side->known ? (__s32)(from + n - side->next) : (__s32)n;

	if (ahead <= 0 && side->known)
		return 0;
	side->known = 1;
	side->next = from + n;
	return ahead;
}

/* Charges the client for a segment. */
MILLRACE_INLINE void segment(struct packet *p, const struct flow4 *key, struct side *side)
{
	__u32 header, bytes, fresh;
	struct account *client;
	struct ipv4 *ip;
	struct tcp *tcp;
	__be16 type;
	__u32 at = packet_network(p, &type);

	ip = at ? ipv4_at(p, at) : NULL;
	if (!ip)
		return;
	header = ipv4_header_bytes(ip);
	bytes = ntohs(ip->length);
	tcp = packet_at(p, at + header, struct tcp);
	if (!tcp)
		return;
	/* Not below zero: packet_find_flow4 has held the lengths against each other. */
	bytes -= header + tcp_header_bytes(tcp);
	/* A SYN has a number of its own, before the first byte. */
	fresh = advance(side, ntohl(tcp->sequence) + (tcp->flags & TCP_SYN ? 1 : 0), bytes);
	if (bytes == 0)
		return;
	client = map_refresh(&clients, &key->src);
	if (!client)
		client = map_put(&clients, &key->src, &(struct account){});
	if (client) {
		client->bytes += bytes;
		client->charged += fresh;
	}
}

ON_FIRST_PACKET(p, key)
{
	millrace_set_state state = {};

	segment(p, key, p->port == LAN ? &state.sides[0] : &state.sides[1]);
	if (!set_open(&connections, key, &state))
		return DROP_BECAUSE(table_full);
	return FORWARD(peer(p));
}

ON_PACKET(p, key, state)
{
	segment(p, key, p->port == LAN ? &state->sides[0] : &state->sides[1]);
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return FORWARD(peer(p));
}

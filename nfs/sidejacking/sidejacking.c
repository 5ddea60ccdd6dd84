/* A detector of sidejacking: a session's cookie that two clients send has been stolen by one of them (Borders et al., Chimera, USENIX
 * Security 2012). */
#include <millrace/nf.h>
#include <millrace/search.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

/* A connection, as the LAN sees it, and whether it has sent another client's cookie. */
PACKET_SET(connections, struct flow4, struct { __u64 stolen; }, .capacity = 65536, .expire_after = SECONDS(120));

#define COOKIE_WORDS 4

/* How a cookie begins: as many whole words of 8 bytes as it has, at most four; zeros behind them. */
struct cookie {
	__u64 words[COOKIE_WORDS];
};

/* Who sent a cookie first. */
MAP(cookies, struct cookie, struct { __be32 client; __be32 zero; }, .capacity = 65536, .expire_after = MINUTES(30));

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

/* Where the payload of a TCP segment begins; the headers were looked at before. 0: there is none. */
MILLRACE_INLINE __u32 payload(const struct packet *p)
{
	__be16 type;
	__u32 at = packet_network(p, &type);
	struct ipv4 *ip = at ? packet_at(p, at, struct ipv4) : NULL;
	struct tcp *tcp;

	if (!ip)
		return 0;
	at += ipv4_header_bytes(ip);
	tcp = packet_at(p, at, struct tcp);
	return tcp ? at + tcp_header_bytes(tcp) : 0;
}

/* The first cookie of a request (RFC 6265, 4.2), in a header field by this name. Whether it has one of 8 bytes or more. */
MILLRACE_INLINE _Bool cookie_of(const struct packet *p, struct cookie *cookie)
{
	static const char field[] = "\r\nCookie: ";
	__u32 first = payload(p), bytes;
	long at, end, next;

	if (!first)
		return 0;
	at = packet_find(p, first, field, sizeof(field) - 1);
	if (at < 0)
		return 0;
	at += sizeof(field) - 1;
	end = packet_find(p, at, field, 2);
	next = packet_find(p, at, ";", 1);
	if (next >= 0 && next < end)
		end = next;
	if (end < at + 8 || !packet_bytes(p, at, 8))
		return 0;
	bytes = end - at;
	for (__u32 i = 0; i < COOKIE_WORDS; i++) {
		__u8 *word = packet_bytes(p, at + 8 * i, 8);

		if (!word || 8 * i + 8 > bytes)
			break;
		cookie->words[i] = load64(word);
	}
	return 1;
}

/* Whether a packet of the LAN sends the cookie of another client. */
MILLRACE_INLINE _Bool steals(const struct packet *p, const struct flow4 *f)
{
	typeof(*cookies.value) *owner;
	struct cookie cookie = {};

	if (p->port != LAN || !cookie_of(p, &cookie))
		return 0;
	owner = map_refresh(&cookies, &cookie);
	if (owner)
		return owner->client != f->src;
	/* Where there is no room for it nobody is accused. */
	map_put(&cookies, &cookie, &(typeof(*cookies.value)){ f->src, 0 });
	return 0;
}

ON_FIRST_PACKET(p, key)
{
	_Bool stolen = steals(p, key);

	if (!set_open(&connections, key, &(millrace_set_state){ stolen }))
		return DROP_BECAUSE(table_full);
	return stolen ? DROP_BECAUSE(sidejacking) : FORWARD(peer(p));
}

ON_PACKET(p, key, connection)
{
	if (!connection->stolen && steals(p, key))
		connection->stolen = 1;
	return connection->stolen ? DROP_BECAUSE(sidejacking) : FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return FORWARD(peer(p));
}

/* A DNS tunnel detector: a client that is told addresses and never goes there asks for something else (Borders et al.,
 * Chimera, USENIX Security 2012, orphan DNS responses). */
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

PARAM(__u64, threshold, 16); /* orphan answers more than this make a tunnel */

/* An answer that awaits a connection: who was told which address. */
struct answer {
	__be32 client, address;
};

PACKET_SET(answers, struct answer, struct {}, .capacity = 65536, .expire_after = SECONDS(300));

MAP(clients, __be32, struct { __u64 orphans; }, .capacity = 65536, .expire_after = MINUTES(60));

/* The header of a message (RFC 1035, 4.1.1). */
struct dns {
	__be16 id, flags, questions, answers, authorities, additional;
};

/* The address record that ends an answer to one question (RFC 1035, 4.1.3). */
struct record {
	__be16 name, type, class, ttl[2], length;
	__be16 address[2];
};

/* The address that a small answer tells: one question, one record of type A, and no other, so that it is the last of
 * the message. 0: there is none. */
MILLRACE_INLINE __be32 told(const struct packet *p, __u32 at)
{
	struct udp *udp = packet_at(p, at, struct udp);
	struct dns *dns = packet_at(p, at + sizeof(struct udp), struct dns);
	struct record *record;
	__u32 bytes;

	if (!udp || !dns || udp->sport != htons(53))
		return 0;
	if (!(dns->flags & htons(0x8000)) || dns->questions != htons(1) || dns->answers != htons(1) ||
	    dns->authorities || dns->additional)
		return 0;
	bytes = ntohs(udp->length);
	if (bytes < sizeof(struct udp) + sizeof(struct dns) + 5 + sizeof(struct record))
		return 0;
	record = packet_at(p, at + bytes - sizeof(struct record), struct record);
	if (!record || record->name != htons(0xc00c) || record->type != htons(1) ||
	    record->class != htons(1) || record->length != htons(4))
		return 0;
	return load32(record->address);
}

SET_KEY(p, key)
{
	struct ipv4 *ip;
	__be32 address;
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at || type != htons(ETHERTYPE_IPV4))
		return 0;
	ip = ipv4_at(p, at);
	if (!ip || ipv4_later_fragment(ip))
		return 0;
	if (p->port == LAN) {
		*key = (struct answer){ ip->src, ip->dst };
		return 1;
	}
	if (ip->protocol != PROTOCOL_UDP)
		return 0;
	address = told(p, at + ipv4_header_bytes(ip));
	*key = (struct answer){ ip->dst, address };
	return address != 0;
}

/* An answer, or a packet of the LAN that no answer has led to. */
ON_FIRST_PACKET(p, key)
{
	typeof(*clients.value) *client;

	if (p->port == LAN)
		return FORWARD(WAN);
	client = map_get(&clients, &key->client);
	if (client && client->orphans > threshold)
		return DROP_BECAUSE(tunnel);
	set_open(&answers, key, &(millrace_set_state){});
	return FORWARD(LAN);
}

/* The client goes where it was told, or is told again. */
ON_PACKET(p, key, state)
{
	if (p->port == LAN)
		set_close(&answers, key);
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return FORWARD(peer(p));
}

/* It never went there. */
ON_EXPIRY(p, key, state)
{
	typeof(*clients.value) *client = map_refresh(&clients, &key->client);

	if (client)
		client->orphans++;
	else
		map_put(&clients, &key->client, &(typeof(*clients.value)){ 1 });
}

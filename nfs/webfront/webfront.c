/* A front of web caches: who asks for a page by the Internet Cache Protocol (RFC 2186) is answered by the cache that has
 * pages of this URL's hash. */
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(CLIENTS, CACHE0, CACHE1, CACHE2, CACHE3);

#define CACHES 4
#define ICP_PORT 3130
#define ICP_QUERY 1
#define ICP_VERSION 2
#define WORDS 8 /* of eight bytes: of longer URLs the first 64 bytes and the last eight count */

struct icp {
	__u8 opcode, version;
	__be16 length;
	__be32 number, options, data, sender;
	__be32 requester; /* of a query; the URL is behind it, ended by a zero byte */
};

struct page {
	__u32 hash;
};

/* Queries for one URL. */
PACKET_SET(pages, struct page, struct { __u64 queries; }, .capacity = 65536,
	   .expire_after = MINUTES(5));

static __u64 forgotten;

MILLRACE_INLINE __u32 hash_of(const struct packet *p, __u32 at, __u32 bytes)
{
	__u32 hash = bytes;
	__u32 *word;

	MILLRACE_ROLLED
	for (__u32 i = 0; i < WORDS; i++) {
		if (8 * i + 8 > bytes)
			break;
		word = packet_bytes(p, at + 8 * i, 8);
		if (!word)
			break;
		hash = crc32c(hash, load64(word));
	}
	word = packet_bytes(p, at + bytes - 8, 8);
	return word ? crc32c(hash, load64(word)) : hash;
}

SET_KEY(p, key)
{
	struct ipv4 *ip;
	struct udp *udp;
	struct icp *icp;
	__u32 bytes, at;
	__be16 type;

	if (p->port != CLIENTS)
		return 0;
	at = packet_network(p, &type);
	if (!at || type != htons(ETHERTYPE_IPV4))
		return 0;
	ip = ipv4_at(p, at);
	if (!ip || ip->protocol != PROTOCOL_UDP || ipv4_later_fragment(ip))
		return 0;
	at += ipv4_header_bytes(ip);
	udp = packet_at(p, at, struct udp);
	icp = packet_at(p, at + sizeof(struct udp), struct icp);
	if (!udp || !icp || udp->dport != htons(ICP_PORT) || icp->opcode != ICP_QUERY ||
	    icp->version != ICP_VERSION)
		return 0;
	bytes = ntohs(icp->length);
	if (bytes < sizeof(struct icp) + 8)
		return 0;
	*key = (struct page){ hash_of(p, at + sizeof(struct udp) + sizeof(struct icp),
				      bytes - sizeof(struct icp)) };
	return 1;
}

ON_FIRST_PACKET(p, key)
{
	set_open(&pages, key, &(millrace_set_state){ 1 });
	return FORWARD(CACHE0 + key->hash % CACHES);
}

ON_PACKET(p, key, page)
{
	page->queries++;
	return FORWARD(CACHE0 + key->hash % CACHES);
}

/* Replies, and what is no query. */
ON_ORPHAN(p)
{
	return p->port == CLIENTS ? DROP_BECAUSE(no_query) : FORWARD(CLIENTS);
}

ON_EXPIRY(p, key, page)
{
	forgotten++;
}

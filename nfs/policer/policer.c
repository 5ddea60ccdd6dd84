/* A policer: each destination behind the LAN receives at a rate, with a burst. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

PARAM(__u64, rate, 1000000); /* bytes a second, at least 1 */
PARAM(__u64, burst, 100000); /* bytes; at most what `rate` gives in a minute */

/* A bucket that is not used for as long as this has filled up: forgetting it gives nothing away. */
#define FORGET 60

/* Tokens are billionths of a byte, because that is what one nanosecond adds at one byte a second: no
 * division, no remainder lost, so the rate is exact over any time. */
#define SCALE 1000000000ull

struct bucket {
	__u64 tokens;
	__u64 time; /* until when the tokens are counted, ns */
};

MAP(buckets, struct address, struct bucket, .capacity = 65536, .expire_after = SECONDS(FORGET));

/* The destination of an IP packet: 1, or 0 when it is not IP, or -1 when its header is broken. */
MILLRACE_INLINE int find_destination(const struct packet *p, struct address *to)
{
	__be16 type;
	__u32 at = packet_network(p, &type);

	if (!at)
		return 0;
	if (type == htons(ETHERTYPE_IPV4)) {
		struct ipv4 *ip = ipv4_at(p, at);

		if (!ip)
			return -1;
		*to = address_from_ipv4(ip->dst);
		return 1;
	}
	if (type == htons(ETHERTYPE_IPV6)) {
		struct ipv6 *ip = ipv6_at(p, at);

		if (!ip)
			return -1;
		*to = address_from_ipv6(ip->dst);
		return 1;
	}
	return 0;
}

/* The most tokens that a bucket holds, bounded so that scaled they fit 64 bits. */
static __u64 full;

ON_START()
{
	__u64 minute, most = ~0ull / SCALE;

	if (multiply_high(rate, FORGET) == 0) {
		minute = rate * FORGET;
		if (minute < most)
			most = minute;
	}
	full = (burst < most ? burst : most) * SCALE;
}

/* What the bucket holds `elapsed` ns later. */
MILLRACE_INLINE __u64 fill(__u64 tokens, __u64 elapsed)
{
	__u64 room = full - tokens;
	__u64 earned = elapsed * rate;

	if (multiply_high(elapsed, rate) || earned >= room)
		return full;
	return tokens + earned;
}

ON_PACKET(p)
{
	__u64 cost = packet_length(p) * SCALE;
	__u64 now = p->time, tokens;
	struct bucket *bucket;
	struct address to;

	if (p->port == LAN)
		return FORWARD(WAN);
	switch (find_destination(p, &to)) {
	case 0:
		return FORWARD(LAN);
	case -1:
		return DROP_BECAUSE(bad_header);
	}
	bucket = map_refresh(&buckets, &to);
	if (bucket) {
		tokens = bucket->tokens;
		if (now > bucket->time) {
			tokens = fill(tokens, now - bucket->time);
			bucket->tokens = tokens;
			bucket->time = now;
		}
	} else {
		tokens = full;
		bucket = map_put(&buckets, &to, &(struct bucket){ tokens, now });
		if (!bucket)
			return DROP_BECAUSE(table_full);
	}
	if (tokens < cost)
		return DROP_BECAUSE(over_rate);
	bucket->tokens = tokens - cost;
	return FORWARD(LAN);
}

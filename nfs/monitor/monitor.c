/* A traffic monitor: sessions, and what is seen of the hosts that have them, as PRADS (passive real-time asset detection)
 * keeps it. */
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

/* A session is both directions of a flow, as the LAN sees it. */
PACKET_SET(sessions, struct flow, struct {
	__u64 packets;
	__u64 bytes;
	__u64 opener; /* the port at which the first packet came */
	__u64 answered;
}, .capacity = 65536,
	   .expire_after = SECONDS(60));

struct host {
	__u64 accepted, opened; /* sessions: that it answered, and that it began */
};

MAP(hosts, struct address, struct host, .capacity = 65536, .expire_after = MINUTES(30));

static __u64 opened, ended, orphans;

/* Sessions that ended with so many packets: 1, 2 to 3, 4 to 7 … */
VECTOR(lengths, __u64, .capacity = 16);

SET_KEY(p, key)
{
	struct flow f = {};

	if (!packet_flow(p, &f))
		return 0;
	if (p->port == WAN)
		flow_reverse(&f);
	*key = f;
	return 1;
}

MILLRACE_INLINE struct host *seen(const struct address *address)
{
	struct host *host = map_refresh(&hosts, address);

	return host ? host : map_put(&hosts, address, &(struct host){});
}

/* The address from which a packet of the session comes. */
#define SENDER(p, key) ((p)->port == LAN ? &(key)->src : &(key)->dst)

ON_FIRST_PACKET(p, key)
{
	struct host *host;

	if (!set_open(&sessions, key, &(millrace_set_state){ 1, packet_length(p), p->port }))
		return FORWARD(peer(p)); /* a monitor is in nobody's way */
	opened++;
	host = seen(SENDER(p, key));
	if (host)
		host->opened++;
	return FORWARD(peer(p));
}

ON_PACKET(p, key, session)
{
	struct host *host;

	if (!session->answered && p->port != session->opener) {
		session->answered = 1;
		host = seen(SENDER(p, key));
		if (host)
			host->accepted++;
	}
	session->packets++;
	session->bytes += packet_length(p);
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	orphans++;
	return FORWARD(peer(p));
}

/* The place of the highest bit, without a loop. */
MILLRACE_INLINE __u32 magnitude(__u64 n)
{
	__u32 bits = 0;

	if (n >> 8) {
		bits += 8;
		n >>= 8;
	}
	if (n >> 4) {
		bits += 4;
		n >>= 4;
	}
	if (n >> 2) {
		bits += 2;
		n >>= 2;
	}
	return bits + (n >> 1 ? 1 : 0);
}

ON_EXPIRY(p, key, session)
{
	__u64 *of = vector_at(&lengths, magnitude(session->packets < 65535 ? session->packets : 65535));

	ended++;
	if (of)
		++*of;
}

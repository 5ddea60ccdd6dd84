/* A port scan detector: hosts of the LAN that try to reach what does not answer (Schechter, Jung, Berger: Fast
 * Detection of Scanning Worm Infections, RAID 2004). */
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

PARAM(__u64, threshold, 4); /* failures more than answers, at least 1 */

/* First contacts: the packets between a host of the LAN and one that it tries to reach. */
struct contact {
	struct address source, target;
};

PACKET_SET(contacts, struct contact, struct { __u64 known; }, .capacity = 65536,
	   .expire_after = SECONDS(3));

/* How far each host has walked towards the verdict that it scans. */
struct walk {
	__u64 steps;
};

MAP(hosts, struct address, struct walk, .capacity = 65536, .expire_after = MINUTES(10));

MILLRACE_INLINE void failed(const struct address *source)
{
	struct walk *host = map_refresh(&hosts, source);

	if (!host)
		map_put(&hosts, source, &(struct walk){ 1 });
	else if (host->steps < threshold)
		host->steps++;
}

MILLRACE_INLINE void answered(const struct address *source)
{
	struct walk *host = map_get(&hosts, source);

	if (host && host->steps > 0)
		host->steps--;
}

SET_KEY(p, key)
{
	struct flow f = {};

	if (!packet_flow(p, &f) || f.protocol != PROTOCOL_TCP)
		return 0;
	if (p->port == WAN)
		flow_reverse(&f);
	*key = (struct contact){ f.src, f.dst };
	return 1;
}

ON_FIRST_PACKET(p, key)
{
	struct tcp *tcp = packet_tcp(p);
	struct walk *host;

	if (p->port == WAN || !tcp || (tcp->flags & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return FORWARD(peer(p));
	host = map_get(&hosts, &key->source);
	if (host && host->steps >= threshold)
		return DROP_BECAUSE(scanner);
	set_open(&contacts, key, &(millrace_set_state){});
	return FORWARD(WAN);
}

ON_PACKET(p, key, contact)
{
	struct tcp *tcp = packet_tcp(p);

	if (p->port == WAN && !contact->known && tcp) {
		contact->known = 1;
		if (tcp->flags & TCP_RST)
			failed(&key->source);
		else
			answered(&key->source);
	}
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return FORWARD(peer(p));
}

/* Nobody answered. */
ON_EXPIRY(p, key, contact)
{
	if (!contact->known)
		failed(&key->source);
}

/* Port scan detection: how many ports a source of the WAN may try in a second. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

PARAM(__u32, limit, 60); /* new ports in a source's window */

#define WINDOW SECONDS(1)

/* A source's window: it begins with a packet to a port, when the last one is over. */
struct window {
	__u64 start; /* ns */
	__u32 ports; /* different ones so far, those refused left out */
	__u32 zero;
};

struct attempt {
	struct address src;
	__be16 port;
	__u16 zero[3];
};

/* When the window began in which the port was counted; it is new to every other. */
struct touch {
	__u64 window;
};

MAP(scans, struct address, struct window, .capacity = 65536, .expire_after = WINDOW);
MAP(touched, struct attempt, struct touch, .capacity = 262144, .expire_after = WINDOW);

/* Counts a packet to a port, if the port is new. */
MILLRACE_INLINE int judge(const struct packet *p, const struct flow *f)
{
	struct attempt attempt = { f->src, f->dport, {} };
	struct window *window = map_get(&scans, &f->src);
	struct window fresh = { .start = p->time };
	struct touch *touch, now = { p->time };

	if (window) {
		touch = map_get(&touched, &attempt);
		now.window = window->start;
		if (touch && touch->window == window->start)
			return FORWARD(LAN);
	}
	if ((window ? window->ports : 0) >= limit)
		return DROP_BECAUSE(over_limit);
	/* The port before the window: the other way round, a window could begin for a packet that is
	 * dropped. */
	if (!map_put(&touched, &attempt, &now))
		return DROP_BECAUSE(table_full);
	if (!window) {
		window = map_put(&scans, &f->src, &fresh);
		if (!window) {
			map_delete(&touched, &attempt);
			return DROP_BECAUSE(table_full);
		}
	}
	window->ports++;
	return FORWARD(LAN);
}

ON_PACKET(p)
{
	struct flow f;

	if (p->port == LAN)
		return FORWARD(WAN);
	switch (packet_find_flow(p, &f)) {
	case FLOW_NONE:
	case FLOW_CARRIED:
		return FORWARD(LAN);
	case FLOW_BAD:
		return DROP_BECAUSE(bad_header);
	case FLOW_FRAGMENT:
		return DROP_BECAUSE(fragment);
	case FLOW_OWN:
		break;
	}
	/* An echo has no port. */
	if (f.protocol != PROTOCOL_TCP && f.protocol != PROTOCOL_UDP)
		return FORWARD(LAN);
	return judge(p, &f);
}

/* A learning bridge: a frame goes where its destination was last heard from, or everywhere. */
#include <millrace/mac.h>
#include <millrace/nf.h>

PARAM(__u64, refresh, 0); /* s; a station's entry is written again when it is at least so old */

struct station {
	__u64 time; /* when the entry was written, ns */
	__u32 port;
	__u32 zero;
};

MAP(stations, struct mac, struct station, .capacity = 65536, .expire_after = SECONDS(120));

/* Whether an entry, or an absent one, does not say what this packet says of its source. */
MILLRACE_INLINE _Bool outdated(const struct station *known, const struct packet *p)
{
	__u64 age;

	if (!known || known->port != p->port)
		return 1;
	age = p->time > known->time ? p->time - known->time : 0;
	/* `refresh` in nanoseconds could be too large for a word; the age in seconds is not. */
	return age / SECONDS(1) >= refresh;
}

ON_PACKET(p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct station *station, heard = { .time = p->time, .port = p->port };
	struct mac src, dst;

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	src = mac_from(ethernet->src);
	dst = mac_from(ethernet->dst);
	/* No station sends from a group's address; to learn one would draw the group's frames here. */
	if (!mac_is_group(&src) && outdated(map_get(&stations, &src), p) &&
	    !map_put(&stations, &src, &heard))
		return DROP_BECAUSE(table_full);
	if (mac_is_group(&dst))
		return FLOOD;
	station = map_get(&stations, &dst);
	if (!station)
		return FLOOD;
	return station->port == p->port ? DROP_BECAUSE(same_port) : FORWARD(station->port);
}

/* A learning bridge: a frame goes where its destination was last heard from, or everywhere. */
#include <millrace/mac.h>
#include <millrace/nf.h>

struct station {
	__u32 port;
};

MAP(stations, struct mac, struct station, .capacity = 65536, .expire_after = SECONDS(120));

ON_PACKET(p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct station *station, heard = { .port = p->port };
	struct mac src, dst;

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	src = mac_from(ethernet->src);
	dst = mac_from(ethernet->dst);
	/* No station sends from a group's address; to learn one would draw the group's frames here. */
	if (!mac_is_group(&src)) {
		/* Most frames say what is known, which they keep known and do not write. */
		station = map_refresh(&stations, &src);
		if ((!station || station->port != p->port) && !map_put(&stations, &src, &heard))
			return DROP_BECAUSE(table_full);
	}
	if (mac_is_group(&dst))
		return FLOOD;
	station = map_get(&stations, &dst);
	if (!station)
		return FLOOD;
	return station->port == p->port ? DROP_BECAUSE(same_port) : FORWARD(station->port);
}

/* A bridge whose stations are known beforehand: it is told where they are, and never learns. */
#include <millrace/mac.h>
#include <millrace/nf.h>

/* Set before the first packet: which port a station is behind. */
MAP(stations, struct mac, __u32, .capacity = 65536);

ON_PACKET(p)
{
	struct ethernet *ethernet = packet_at(p, 0, struct ethernet);
	struct mac dst;
	__u32 *port;

	if (!ethernet)
		return DROP_BECAUSE(bad_header);
	dst = mac_from(ethernet->dst);
	if (mac_is_group(&dst))
		return FLOOD;
	port = map_get(&stations, &dst);
	if (!port)
		return FLOOD;
	if (*port == p->port)
		return DROP_BECAUSE(same_port);
	return *port < p->ports ? FORWARD(*port) : DROP_BECAUSE(no_port);
}

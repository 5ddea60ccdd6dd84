#include <millrace/nf.h>
PORTS(LAN, WAN);
PARAM(__u32, most, 100);
struct rule {
	__u32 host;
	__u32 port;
};
MAP(acl, struct rule, struct session, .capacity = 4);
MAP(flows, struct flow, struct session, .capacity = 100, .expire_after = SECONDS(10));

ON_PACKET(p)
{
	struct flow f;

	if (!packet_flow(p, &f))
		return DROP_BECAUSE(no_flow);
	if (map_get(&acl, &(struct rule){ 1, ntohs(f.dport) }))
		return DROP_BECAUSE(denied);
	if (packet_length(p) > most || !map_put(&flows, &f, &(struct session){ 0 }))
		return DROP_BECAUSE(full);
	return FORWARD(peer(p));
}

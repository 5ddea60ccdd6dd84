/* An anti-DDoS function: where most flows have one packet, somebody sends them, and no new flow gets in (Yan et al.,
 * Transparent Multicore Scaling of Single-Threaded Network Functions, EuroSys 2024, listing 2). */
#include <millrace/distributed.h>
#include <millrace/nf.h>
#include <millrace/set.h>

PORTS(LAN, WAN);

PARAM(__u64, percent, 80); /* of all flows may have one packet, 1 to 100 */
PARAM(__u64, least, 1000); /* flows below which nothing is said */

PACKET_SET(flows, struct flow, struct { __u64 one; }, .capacity = 65536, .expire_after = SECONDS(60));

/* Flows that are there, and those of them that have had one packet. */
DISTRIBUTED(counts, struct { __u64 flows; __u64 one; }, .staleness = MICROSECONDS(100));

SET_KEY(p, key)
{
	if (!packet_flow(p, key))
		return 0;
	if (p->port == WAN)
		flow_reverse(key);
	return 1;
}

ON_FIRST_PACKET(p, key)
{
	typeof(distributed_read(&counts)) now = distributed_read(&counts);

	if (now.flows >= least && now.one * 100 > now.flows * percent)
		return DROP_BECAUSE(attack);
	if (!set_open(&flows, key, &(millrace_set_state){ 1 }))
		return DROP_BECAUSE(table_full);
	distributed_add(&counts, flows, 1);
	distributed_add(&counts, one, 1);
	return FORWARD(peer(p));
}

ON_PACKET(p, flow)
{
	if (flow->one) {
		flow->one = 0;
		distributed_add(&counts, one, -1);
	}
	return FORWARD(peer(p));
}

ON_ORPHAN(p)
{
	return FORWARD(peer(p));
}

ON_EXPIRY(p, key, flow)
{
	distributed_add(&counts, flows, -1);
	if (flow->one)
		distributed_add(&counts, one, -1);
}

/* One entry that every packet reads and writes, and a counter that all look at. */
#include <millrace/nf.h>

PORTS(LAN, WAN);

struct count {
	__u64 packets;
};

MAP(total, struct address, struct count, .capacity = 8);

static __u64 seen;

ON_PACKET(p)
{
	struct address nobody = {};
	struct count *found = map_get(&total, &nobody);

	if (!found)
		found = map_put(&total, &nobody, &(struct count){ 0 });
	if (!found || ++found->packets > 1000 || ++seen > 2000)
		return DROP_BECAUSE(over_limit);
	return FORWARD(peer(p));
}

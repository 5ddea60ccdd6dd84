#include <millrace/nf.h>
PORTS(LAN, WAN);
MAP(seen, struct flow, struct session, .capacity = 100, .expire_after = SECONDS(1));
ON_PACKET(p)
{
	__u8 *data = (__u8 *)(long)p->data;
	__u8 *end = (__u8 *)(long)p->data_end;
	__u32 payload = 0;
	struct flow f;

	if (data + 38 > end)
		return DROP_BECAUSE(small);
	if (!packet_flow(p, &f))
		return DROP_BECAUSE(no_flow);
	for (int i = 14; i < 34; i++)
		payload += data[i];
	if (f.protocol == PROTOCOL_TCP && data + 54 <= end)
		payload += data[47] & TCP_SYN;
	if (!map_put(&seen, &f, &(struct session){ payload }))
		return DROP_BECAUSE(full);
	data[15] = end - data > 1000;
	return FORWARD(peer(p));
}

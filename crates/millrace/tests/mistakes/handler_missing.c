#include <millrace/nf.h>
PORTS(LAN, WAN);

int handle(struct packet *p)
{
	return FORWARD(peer(p));
}
//> handler_missing.c: no packet program among the sections .text
//> help: write `SEC("xdp") int name(struct xdp_md *ctx)`, or ON_PACKET of nf.h

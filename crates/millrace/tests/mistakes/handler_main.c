#include <millrace/nf.h>
PORTS(LAN, WAN);

int main(void)
{
	return 0;
}
//> handler_main.c: no packet program among the sections .text
//> help: write `SEC("xdp") int name(struct xdp_md *ctx)`, or ON_PACKET of nf.h

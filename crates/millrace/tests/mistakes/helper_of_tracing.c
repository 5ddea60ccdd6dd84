#include <millrace/nf.h>
PORTS(LAN, WAN);
static long (*const probe_read)(void *to, __u32 size, const void *from) = (void *)4;

ON_PACKET(p)
{
	__u32 x = 0;

	probe_read(&x, 4, p);
	return x ? DROP : FORWARD(peer(p));
}
//> helper_of_tracing.c:9: probe_read(&x, 4, p);
//> unknown-helper: this instruction calls `bpf_probe_read` (helper 4), which packet programs do not have
//> help: Read the packet through `packet_at` or `data` and `data_end`; there is no other memory than that of state objects.

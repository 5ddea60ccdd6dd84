#include <millrace/nf.h>
PORTS(LAN, WAN);
static long (*const store_bytes)(void *, __u32, const void *, __u32, __u64) = (void *)9;

ON_PACKET(p)
{
	return store_bytes(p, 0, p, 0, 0) ? DROP : FORWARD(peer(p));
}
//> helper_of_sockets.c:7: return store_bytes(p, 0, p, 0, 0) ? DROP : FORWARD(peer(p));
//> unknown-helper: this instruction calls `bpf_skb_store_bytes` (helper 9), which packet programs do not have
//> help: This one is for socket buffers. Change the packet's bytes through its pointers, and its ends with `bpf_xdp_adjust_head` or `bpf_xdp_adjust_tail`.

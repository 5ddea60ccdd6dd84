#include "xdp.h"

static long (*bpf_get_current_pid_tgid)(void) = (void *)14;

SEC("xdp") int prog(struct xdp_md *ctx)
{
	return bpf_get_current_pid_tgid() ? XDP_PASS : XDP_DROP;
}

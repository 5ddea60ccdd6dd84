/* What the filters of this folder have in common: headers, and the way on. */
#ifndef FILTER_H
#define FILTER_H

#include <stddef.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Out of the other of interfaces 1 and 2. */
static __always_inline int onward(struct xdp_md *ctx)
{
	return bpf_redirect(ctx->ingress_ifindex == 1 ? 2 : 1, 0);
}

/* The IPv4 header of a frame without tags; NULL for other frames. */
static __always_inline struct iphdr *ipv4(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = data + sizeof(*eth);

	if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP))
		return NULL;
	return ip;
}

char _license[] SEC("license") = "GPL";

#endif

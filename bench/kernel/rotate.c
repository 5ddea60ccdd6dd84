/* The kernel runs a program over one packet again and again (BPF_PROG_TEST_RUN); a table of flows then
 * sees one flow. This puts another flow's source address into the packet before each run of the
 * unmodified program of NF_SOURCE, which the harness renames to an inline function, because libbpf lets
 * no program call another. Without EMPTY, `rotate` is that plus the program; with it, that alone: the
 * difference is the program.
 *
 * Multiplying by an odd number permutes 2^16 flows, so that every flow comes once in 2^16 runs, in an
 * order that a processor cannot guess.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* The library's own adds `used`, which would keep the inlined function as a program of its own. */
#undef SEC
#define SEC(name) __attribute__((section(name)))

#include NF_SOURCE

__u32 runs;

SEC("xdp")
int rotate(struct xdp_md *ctx)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u32 flow = (runs++ * 40503) & 0xffff;

	if (data + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_ABORTED;
	*(__be32 *)(data + 26) = bpf_htonl(0x0a000000 + flow);
#ifdef EMPTY
	return XDP_DROP;
#else
	return function(ctx);
#endif
}
